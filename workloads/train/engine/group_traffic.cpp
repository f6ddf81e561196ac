// group_traffic: passes data from the previous rank of its group to the next, without computing.
#include "workloads/train/engine/group_traffic.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <thread>

#include "probes/gloo/mesh.h"

namespace assay::train {
namespace {

constexpr std::uint64_t kFirstTag = 11;  // one for each kind, after that of edge_times

}  // namespace

class GroupTraffic::Ring {
 public:
  Ring(gloo::Mesh& mesh, const std::vector<std::int64_t>& members, std::int64_t rank, std::uint64_t tag,
       std::int64_t bytes)
      : rounds_(members.size() - 1),
        tag_(tag),
        sent_(sized(bytes)),
        received_(sized(bytes)),
        out_(mesh.window(sent_.data(), sent_.size())),
        in_(mesh.window(received_.data(), received_.size())) {
    const auto place = static_cast<std::size_t>(std::ranges::find(members, rank) - members.begin());
    next_ = static_cast<int>(members[(place + 1) % members.size()]);
    before_ = static_cast<int>(members[(place + members.size() - 1) % members.size()]);
  }
  /// The time of one, in s.
  double pass(std::int64_t count) {
    const auto begin = std::chrono::steady_clock::now();
    for (std::int64_t i = 0; i < count * static_cast<std::int64_t>(rounds_); ++i) {
      in_.receive(before_, tag_, 0, received_.size());
      out_.send(next_, tag_, 0, sent_.size());
      in_.wait_received();
      out_.wait_sent();
    }
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / static_cast<double>(count);
  }

 private:
  std::size_t rounds_;
  std::uint64_t tag_;
  std::vector<std::byte> sent_, received_;
  gloo::Window out_, in_;
  int next_ = 0, before_ = 0;
};

GroupTraffic::GroupTraffic(gloo::Mesh& mesh, const ModelShape& model, const ParallelPlan& plan, std::int64_t rank)
    : mesh_(mesh), rings_(kGroupKinds.size()) {
  const auto messages = group_messages(model, plan);
  for (const std::size_t kind : group_kinds(plan))
    rings_[kind] =
        std::make_unique<Ring>(mesh, members_of(plan, kGroupKinds[kind], rank), rank, kFirstTag + kind, messages[kind]);
}

GroupTraffic::~GroupTraffic() = default;

std::vector<double> GroupTraffic::run(const std::vector<std::int64_t>& passes) {
  std::vector<double> times(rings_.size(), 0);
  std::vector<std::exception_ptr> failures(rings_.size());
  mesh_.barrier();
  {
    std::vector<std::jthread> running;
    for (std::size_t kind = 0; kind < rings_.size(); ++kind) {
      if (!rings_[kind] || passes.at(kind) == 0) continue;
      running.emplace_back([&, kind] {
        try {
          times[kind] = rings_[kind]->pass(passes[kind]);
        } catch (...) {  // thrown on below, in the thread that asked
          failures[kind] = std::current_exception();
        }
      });
    }
  }
  for (const auto& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
  return times;
}

}  // namespace assay::train
