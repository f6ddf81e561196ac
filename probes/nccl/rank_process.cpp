// rank_process: one GPU's part of every request. A failure is an answer; only the leader decides on it.
#include "probes/nccl/rank_process.h"

#include <chrono>
#include <iostream>
#include <span>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "probes/collective/limits.h"
#include "probes/collective/rank_loop.h"
#include "probes/collective/rank_session.h"
#include "probes/cuda/device.h"
#include "probes/cuda/gate.h"
#include "probes/cuda/patience.h"
#include "probes/cuda/progress.h"
#include "probes/nccl/check.h"
#include "probes/nccl/rank_log.h"

namespace assay::nccl {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

/// Buffers in memory of one GPU, and the communicator that works on them.
class NcclRank {
 public:
  NcclRank(const RankPlace& place, const Product& product)
      : place_(place),
        device_(cuda::entered(place.gpu)),
        nccl_(product),
        stream_(cuda::make_stream()),
        own_done_(cuda::make_event()) {}

  [[nodiscard]] json hello() const { return {{"free", cuda::free_memory().count}, {"version", nccl_.version()}}; }
  [[nodiscard]] json introduce() const { return {{"word", place_.rank == 0 ? nccl_.unique_id() : ""}}; }
  json enter(const json& words) {
    const std::string id = words.at(0);
    communicator_ = std::make_unique<Communicator>(nccl_, id, place_.ranks, place_.rank, collective::kEnterLimit);
    return json::object();
  }

  void allocate(Bytes sent, Bytes received) {
    source_ = CollectiveBuffer(nccl_, sent);
    target_ = CollectiveBuffer(nccl_, received);
    mismatches_ = cuda::DeviceBuffer({sizeof(std::uint64_t)});
  }
  [[nodiscard]] std::span<std::byte> sent() const { return {source_.data(), source_.size().count}; }
  [[nodiscard]] std::span<std::byte> received() const { return {target_.data(), target_.size().count}; }

  std::uint64_t check(const collective::Iteration& at, const collective::Pattern& pattern) {
    constexpr int kAllOnes = 0xff;  // a NaN in every type, which no sum is, and next to no moved word
    cuda::clear(mismatches_.data(), mismatches_.size(), stream_);
    fill(at.source, at.shape.sent, at.element, pattern, stream_);
    // Bytes that the collective does not write cannot pass.
    cuda::clear(at.target, {at.shape.received * collective::size_of(at.element)}, stream_, kAllOnes);
    const auto due = begin(at, 1);
    enqueue(at);
    count_mismatches(at.target, at.shape.received, at.element, pattern, mismatches_.as<std::uint64_t>(), stream_);
    finish();
    std::uint64_t found = 0;
    cuda::copy_to_host(std::as_writable_bytes(std::span(&found, 1)), mismatches_.data());
    return found;
  }

  template <class IterationOf>
  std::vector<double> time(std::int64_t lead, std::int64_t counted, IterationOf iteration) {
    std::vector<std::pair<cuda::Event, cuda::Event>> marks;
    marks.reserve(static_cast<std::size_t>(counted));
    for (std::int64_t i = 0; i < counted; ++i) marks.emplace_back(cuda::make_event(), cuda::make_event());
    if (gated_) gate_.close(stream_);
    const auto due = begin(iteration(0), lead + counted);
    for (std::int64_t i = 0; i < lead + counted; ++i) {
      const collective::Iteration at = iteration(i);
      if (i >= lead) cuda::mark(marks[static_cast<std::size_t>(i - lead)].first, stream_);
      enqueue(at);
      if (i >= lead) cuda::mark(marks[static_cast<std::size_t>(i - lead)].second, stream_);
    }
    gate_.open();
    finish();
    notice_gate();
    std::vector<double> times;
    times.reserve(marks.size());
    for (const auto& [begin, end] : marks) times.push_back(cuda::elapsed(begin, end).count);
    return times;
  }

  [[nodiscard]] json facts() const {
    json result = log_.facts();
    result.update({{"library", nccl_.path()},
                   {"version", nccl_.version()},
                   {"buffers", source_.source()},
                   {"launch_excluded", gated_}});
    return result;
  }

 private:
  /// The own work of this GPU is enqueued, and `count` iterations like `at` follow, which must be done in time: of the
  /// first of a size as those of the size before, which is smaller.
  cuda::Deadline::Due begin(const collective::Iteration& at, std::int64_t count) {
    const std::size_t bytes = (at.shape.sent + at.shape.received) * collective::size_of(at.element);
    anew_ = bytes != bytes_;
    if (anew_) of_size_before_ = std::exchange(pace_, {});
    bytes_ = bytes;
    moved_ = bytes * static_cast<std::size_t>(count);
    const auto amount = static_cast<double>(moved_);
    const Seconds untimed = of_size_before_.limit(collective::batch_limit({moved_}, place_.ranks), amount, anew_);
    auto due = deadline_.set(fmt::format("{} iterations of {} B", count, bytes), pace_.limit(untimed, amount), [this] {
      if (!cuda::has_passed(own_done_)) return cuda::InHand{.words = "its own work before the collective"};
      return cuda::InHand{.words = "the collective", .waits = true};
    });
    begun_ = Clock::now();
    cuda::mark(own_done_, stream_);
    return due;
  }
  void finish() {
    communicator_->finish(stream_, collective::kBatchLimit);
    if (!anew_) pace_.took({std::chrono::duration<double>(Clock::now() - begun_).count()}, static_cast<double>(moved_));
  }
  void enqueue(const collective::Iteration& at) {
    communicator_->enqueue(at.operation, at.element, at.shape.chunk, at.source, at.target, stream_);
  }

  /// A gate that opened by its time limit means that enqueueing waits for the device: then it is done without, and said
  /// so.
  void notice_gate() {
    try {
      gate_.check_held();
    } catch (const std::runtime_error&) {
      gated_ = false;
    }
  }

  RankPlace place_;
  cuda::Device device_;
  RankLog log_;  // before the library, which reads where its log goes
  Nccl nccl_;
  cuda::Stream stream_;
  cuda::Gate gate_;
  bool gated_ = true;
  cuda::Event own_done_;                    ///< behind the GPU's own work
  collective::Pace pace_, of_size_before_;  ///< by B
  std::size_t bytes_ = 0, moved_ = 0;       ///< of an iteration, and of those that were begun
  bool anew_ = true;
  Clock::time_point begun_;
  cuda::Deadline deadline_;
  CollectiveBuffer source_, target_;  // before the communicator, which is aborted first and may still use them
  cuda::DeviceBuffer mismatches_;
  std::unique_ptr<Communicator> communicator_;
};

void run(const RankPlace& place, const Product& product) {
  std::optional<collective::RankSession<NcclRank>>
      session;  // made by the first request, so that a failure in it is an answer
  collective::answer_leader([&](const json& request) {
    if (!session) session.emplace(place.rank, place.ranks, place.operation, place.type, place, product);
    return session->answer(request);
  });
}

}  // namespace

std::optional<int> rank_main(int argc, char** argv, const Product& product) {
  const std::span arguments(argv, static_cast<std::size_t>(argc));
  if (arguments.size() != 8 || std::string_view(arguments[1]) != "--local-rank") return std::nullopt;
  // The leader may be killed at any time, and no rank may keep spinning on a GPU after it.
  if (!collective::tie_to_leader(arguments[2])) return 1;
  try {
    run({.rank = std::stoi(arguments[3]),
         .ranks = std::stoi(arguments[4]),
         .gpu = arguments[5],
         .operation = arguments[6],
         .type = arguments[7]},
        product);
    return 0;
  } catch (const std::exception& error) {
    std::cerr << product.probe << " rank " << arguments[3] << ": " << error.what() << '\n';
    return 1;
  }
}

}  // namespace assay::nccl
