// gpu_rank: one GPU's part of every request. A failure is an answer; only the leader decides about its meaning.
#include "workloads/train_gpu/gpu_rank.h"

#include <chrono>
#include <cmath>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "probes/collective/limits.h"
#include "probes/collective/rank_loop.h"
#include "probes/core/json_io.h"
#include "probes/core/statistics.h"
#include "probes/cuda/device.h"
#include "probes/nvml/gpu_watch.h"
#include "workloads/train/engine/executor.h"
#include "workloads/train/engine/host_engine.h"
#include "workloads/train/step/rank_job.h"
#include "workloads/train/step/step_evidence.h"
#include "workloads/train_gpu/cuda_device.h"
#include "workloads/train_gpu/device_core.h"
#include "workloads/train_gpu/device_line.h"
#include "workloads/train_gpu/nccl_groups.h"

namespace assay::train_gpu {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kBlock = 1024;  // queries done together: a batch of
                                      // products of this many rows fills a GPU

/// The GPU of this rank, made current before anything of it is allocated.
cuda::Device enter_gpu(const std::string& uuid) {
  cuda::Device device = cuda::choose_devices(cuda::all_devices(), uuid).front();
  cuda::use(device);
  return device;
}

json words(const train::RankPrint& print) { return {print.shared, print.experts}; }

/// Core, line and executor of one mode of data.
struct RankSetup {
  RankSetup(const train::RankJob& job, CudaDevice& device, NcclGroups& groups)
      : core(job, kBlock, device), line(job, core, groups), executor(core.ops(), job.beside, core, line) {}

  train::StepTimes walk(train::Part part, std::uint64_t number) {
    core.start(number, part);
    return executor.walk(
        part, [](std::size_t) {}, [](std::size_t) {});
  }

  DeviceCore<CudaDevice> core;
  DeviceLine<NcclGroups> line;
  train::Executor<DeviceCore<CudaDevice>, DeviceLine<NcclGroups>> executor;
};

/// The state of one rank between requests.
class GpuSession {
 public:
  explicit GpuSession(const train::RankStart& start)
      : job_(start.job),
        gpu_(enter_gpu(start.address)),
        watch_(gpu_.pci_bus_id),
        ops_(train::step_graph(job_.model, job_.plan, job_.rank)),
        products_(job_.factors) {}

  json answer(const json& request) {
    const std::string what = request.at("do");
    if (what == "hello") return {{"free", cuda::free_memory().count}};
    if (what == "introduce") return {{"word", NcclGroups::ids(nccl_, job_.plan, job_.rank)}};
    if (what == "enter") return enter(request.at("words"));
    if (what == "agree") return agree(request.at("algorithms"));
    if (what == "exact") return exact(request.at("steps").get<std::uint64_t>());
    if (what == "reference") return reference(request.at("steps").get<std::uint64_t>());
    if (what == "prepare") return prepare(job_.data);
    if (what == "steps") return steps(request);
    if (what == "votes") return votes(request.at("number").get<std::uint64_t>());
    if (what == "settle") return settle();
    if (what == "watch") return {{"conditions", to_json(watch_.conditions())}};
    if (what == "facts")
      return {{"cublaslt", products_.version()}, {"nccl", nccl_.version()}, {"gpu", gpu_.name}, {"uuid", gpu_.uuid}};
    throw std::runtime_error(fmt::format("'{}' is no request", what));
  }

 private:
  RankSetup& rig() {
    if (!rig_) throw std::logic_error("the leader has not asked this rank to prepare");
    return *rig_;
  }

  /// Communicators of all groups, and the algorithms that this rank's library would choose.
  json enter(const std::vector<std::vector<std::string>>& ids) {
    const std::size_t marks = 2 * ops_.size() + 1;  // a wait before every operation and one at the end, at most
    device_ = std::make_unique<CudaDevice>(products_, marks);
    const auto largest = train::sized(job_.plan.tokens() * job_.model.hidden);
    const auto posted = train::buckets_of(job_.model, job_.plan, train::position_of(job_.plan, job_.rank).pp).size();
    groups_ = std::make_unique<NcclGroups>(nccl_, job_.plan, job_.rank, ids, largest, posted, *device_,
                                           collective::kEnterLimit);
    for (const train::DataMode data :
         {train::DataMode::ring, job_.data}) {  // equal tokens are routed otherwise: other shapes
      (void)prepare(data);                      // an empty object
      device_->rehearse(true);
      rig().core.rehearse();
      device_->rehearse(false);
      drop();
    }
    return {{"algorithms", products_.choices()}};
  }

  json agree(const AlgorithmTable& table) {
    products_.adopt(table);
    return json::object();
  }

  json prepare(train::DataMode data) {
    drop();
    train::RankJob job = job_;
    job.data = data;
    rig_ = std::make_unique<RankSetup>(job, *device_, *groups_);
    return json::object();
  }
  void drop() {
    rig_.reset();
    device_->release();
  }

  /// Gradients of every step twice from the same weights, in exact arithmetic, then the update.
  json exact(std::uint64_t count) {
    (void)prepare(train::DataMode::ring);  // an empty object
    json differ = json::array(), prints = json::array();
    for (std::uint64_t step = 0; step < count; ++step) {
      const train::RankPrint once = gradients(step), again = gradients(step);
      differ.push_back(once != again);
      (void)rig().walk(train::Part::update, step);  // its times are not a step's
      prints.push_back(words(rig().core.print(false)));
    }
    drop();
    return {{"differ", differ}, {"prints", prints}};
  }

  /// Rank 0: the prints of one rank of the engine on hosts that does all of it.
  json reference(std::uint64_t count) {
    if (job_.rank != 0) return json::object();
    train::HostEngine engine({.model = job_.model, .plan = train::undivided(job_.plan), .data = train::DataMode::ring});
    json prints = json::array();
    for (std::uint64_t step = 0; step < count; ++step) {
      (void)engine.step(train::Variant::full, step);  // nothing is timed
      prints.push_back(words(engine.print(false)));
    }
    return {{"prints", prints}};
  }

  train::RankPrint gradients(std::uint64_t number) {
    (void)rig().walk(train::Part::gradients, number);  // its times are not a step's
    return rig().core.print(true);
  }

  json steps(const json& request) {
    const auto variant = static_cast<train::Variant>(request.at("variant").get<int>());
    const auto first = request.at("first").get<std::uint64_t>(), count = request.at("count").get<std::uint64_t>();
    const train::Part part = variant == train::Variant::full           ? train::Part::full
                             : variant == train::Variant::compute_only ? train::Part::computation
                                                                       : train::Part::communication;
    train::RankSteps taken;
    std::map<std::pair<train::Role, train::Pass>, Moments> alone;
    auto begin = Clock::now();
    for (std::uint64_t step = first; step < first + count; ++step) {
      const train::StepTimes times = rig().walk(part, step);
      const auto end = Clock::now();  // from the end of a step to the end of the
                                      // next: nothing is left out
      taken.wall.push_back(std::chrono::duration<double>(end - begin).count());
      begin = end;
      taken.collective.push_back(times.collective_s);
      taken.optimizer.push_back(times.optimizer_s);
      if (variant == train::Variant::full) continue;
      const auto spans = rig().executor.spans();
      for (std::size_t i = 0; i < spans.size(); ++i) {
        if (spans[i].end_s > 0) alone[{ops_[i].role, ops_[i].pass}].add(spans[i].end_s - spans[i].begin_s);
      }
    }
    groups_->check_alive();
    if (!watches_) watch_.start();
    watches_ = true;
    json times = json::array();
    for (const auto& [key, all] : alone)
      times.push_back({static_cast<int>(key.first), static_cast<int>(key.second), all.mean});
    return {{"wall", taken.wall}, {"collective", taken.collective}, {"optimizer", taken.optimizer}, {"alone", times}};
  }

  json votes(std::uint64_t number) { return {{"print", words(gradients(number))}}; }

  json settle() {
    watch_.stop();
    json answer = {{"print", words(rig().core.print(false))}, {"not_finite", rig().core.not_finite()}};
    drop();
    return answer;
  }

  train::RankJob job_;
  cuda::Device gpu_;
  nvml::GpuWatch watch_;  ///< from the end of the first steps, which warm up, to settle()
  bool watches_ = false;
  std::vector<train::Op> ops_;
  nccl::Nccl nccl_;
  Products products_;
  std::unique_ptr<CudaDevice> device_;
  std::unique_ptr<NcclGroups> groups_;
  std::unique_ptr<RankSetup> rig_;
};

}  // namespace

std::optional<int> gpu_rank_main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv, argv + argc);
  const auto start = train::rank_start(arguments);
  if (!start) return std::nullopt;
  if (!collective::tie_to_leader(arguments.at(1))) return 1;
  try {
    std::optional<GpuSession> session;  // made by the first request, so that
                                        // what fails in it is an answer
    collective::answer_leader([&](const json& request) {
      if (!session) session.emplace(*start);
      return session->answer(request);
    });
    return 0;
  } catch (const std::exception& error) {
    std::cerr << fmt::format("cuda_train_step rank {}: {}\n", start->job.rank, error.what());
    return 1;
  }
}

}  // namespace assay::train_gpu
