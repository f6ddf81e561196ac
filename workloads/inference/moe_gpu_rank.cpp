// moe_gpu_rank: one GPU's part of every request. A failure is an answer; only the leader decides on it.
#include <algorithm>
#include <chrono>
#include <iostream>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <stdexcept>
#include <thread>
#include <vector>

#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "probes/collective/limits.h"
#include "probes/collective/rank_loop.h"
#include "probes/cuda/device.h"
#include "probes/cuda/gate.h"
#include "probes/cuda/patience.h"
#include "probes/cuda/progress.h"
#include "probes/nccl/communicator.h"
#include "probes/nccl/rank_log.h"
#include "workloads/inference/device_exchange.h"
#include "workloads/inference/moe_gpus.h"
#include "workloads/inference/moe_job.h"
#include "workloads/inference/put_kernels.h"
#include "workloads/inference/row_kernels.h"
#include "workloads/inference/row_plan.h"

namespace assay::inference {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

/// The device of DeviceExchange: the current GPU, one stream, and memory that NCCL can map into its peers.
class CudaRows {
 public:
  explicit CudaRows(const nccl::Nccl& nccl) : nccl_(nccl), stream_(cuda::make_stream()) {
    for (std::size_t i = 0; i < kExchangeMarks; ++i) marks_.push_back(cuda::make_event());
  }

  [[nodiscard]] const cuda::Stream& stream() const { return stream_; }
  /// Where memory comes from.
  [[nodiscard]] const char* source() const { return rooms_.empty() ? "none" : rooms_.front().source(); }
  /// Whether every gate so far held until all was enqueued.
  [[nodiscard]] bool gated() {
    try {
      gate_.check_held();
    } catch (const std::runtime_error&) {  // enqueueing waits for the device: it is done without a gate, and said so
      gated_ = false;
    }
    return gated_;
  }

  std::byte* take(std::uint64_t bytes) { return rooms_.emplace_back(nccl_, Bytes{bytes}).data(); }
  void put(void* to, std::span<const std::byte> bytes) {
    cuda::check(cudaMemcpyAsync(to, bytes.data(), bytes.size(), cudaMemcpyHostToDevice, stream_.get()),
                "copying a table to the GPU");
    cuda::wait(stream_);
  }
  void get(std::span<std::byte> bytes, const void* from) {
    cuda::copy_to_host(bytes, static_cast<const std::byte*>(from));
  }
  void overwrite(void* memory, std::uint64_t bytes) { set(memory, 0xff, bytes); }
  void clear(void* memory, std::uint64_t bytes) { set(memory, 0, bytes); }
  void run(RowWork work, const RowView& view, std::uint64_t rows) { enqueue_rows(work, view, rows, stream_); }
  void mark(std::size_t mark) { cuda::mark(marks_.at(mark), stream_); }
  [[nodiscard]] bool has_passed(std::size_t mark) const { return cuda::has_passed(marks_.at(mark)); }
  double seconds(std::size_t from, std::size_t to) { return cuda::elapsed(marks_.at(from), marks_.at(to)).count; }
  void close() {
    if (gated()) gate_.close(stream_);
  }
  void open() { gate_.open(); }

 private:
  void set(void* memory, int value, std::uint64_t bytes) {
    cuda::check(cudaMemsetAsync(memory, value, bytes, stream_.get()), "overwriting slots");
  }

  const nccl::Nccl& nccl_;
  cuda::Stream stream_;
  cuda::Gate gate_;
  bool gated_ = true;
  std::vector<cuda::Event> marks_;
  std::vector<nccl::CollectiveBuffer> rooms_;
};

/// The wire of DeviceExchange in the stream of the device: groups of sends and receives, or puts by kernels.
class NcclWire {
 public:
  NcclWire(const nccl::Nccl& nccl, const std::string& id, const ExchangeJob& job, const cuda::Stream& stream)
      : stream_(stream),
        word_(Bytes{sizeof(float)}),
        counts_memory_(nccl, Bytes{kMostPutRanks * sizeof(std::uint64_t)}),
        communicator_(nccl, id, static_cast<int>(job.routing.ranks), static_cast<int>(job.rank),
                      collective::kEnterLimit) {
    cuda::check(cudaMemsetAsync(word_.data(), 0, sizeof(float), stream_.get()), "clearing a word");
    if (!job.puts) return;
    communicator_.demand_reach(nccl_of_put_kernels());
    counts_.emplace(train::sized(job.routing.ranks), train::sized(job.rank));
    cuda::clear(counts_memory_.data(), counts_memory_.size(), stream_);
    counts_window_ = communicator_.share(counts_memory_.data(), counts_memory_.size());
    barrier();  // no count is raised before it is cleared
    finish();
  }

  /// Parts will land in `memory`; see DeviceExchange.
  void lands(std::uint64_t* memory, std::uint64_t bytes) {
    if (counts_) windows_[memory] = communicator_.share(reinterpret_cast<std::byte*>(memory), {bytes});
  }
  void exchange(const std::uint64_t* sent, std::span<const collective::Part> to, std::uint64_t* received,
                std::span<const collective::Part> from, const Landing& landing) {
    const auto* const bytes = reinterpret_cast<const std::byte*>(sent);
    if (!counts_) return communicator_.exchange(bytes, to, reinterpret_cast<std::byte*>(received), from, stream_);
    put(bytes, windows_.at(received), counts_->puts(to, landing), counts_->signals(to, from, landing));
  }
  /// No later work of a rank begins before the earlier work of all is done.
  void barrier() { communicator_.all_reduce(word_.as<float>(), 1, stream_); }
  void finish() { communicator_.finish(stream_, collective::kBatchLimit); }

 private:
  void put(const std::byte* sent, ncclWindow_vidmem* window, const PutPlan& puts, const SignalPlan& signals) {
    enqueue_puts(sent, window, puts, stream_);
    enqueue_signals(counts_window_, signals, collective::kBatchLimit, stream_);
  }

  const cuda::Stream& stream_;
  cuda::DeviceBuffer word_;
  nccl::CollectiveBuffer counts_memory_;
  std::optional<PutCounts> counts_;
  ncclWindow_vidmem* counts_window_ = nullptr;
  std::map<const std::uint64_t*, ncclWindow_vidmem*> windows_;  ///< by memory that parts land in
  nccl::Communicator communicator_;                             // last: aborted first
};

/// The state of one rank between requests.
class GpuSession {
 public:
  explicit GpuSession(const MoeStart& start) : job_(start.job), gpu_(cuda::entered(start.address)), rows_(nccl_) {}

  json answer(const json& request) {
    const std::string what = request.at("do");
    if (what == "hello") return {{"free", cuda::free_memory().count}, {"version", nccl_.version()}};
    if (what == "introduce") return {{"word", job_.rank == 0 ? nccl_.unique_id() : ""}};
    if (what == "enter") return enter(request.at("words").at(0));
    if (what == "prepare") return prepare(request.at("nonce").get<std::uint64_t>());
    if (what == "steps") return steps(request);
    if (what == "edges") return edges();
    if (what == "facts") return facts();
    throw std::runtime_error(fmt::format("'{}' is no request", what));
  }

 private:
  json enter(const std::string& id) {
    wire_ = std::make_unique<NcclWire>(nccl_, id, job_, rows_.stream());
    return json::object();
  }

  json prepare(std::uint64_t nonce) {
    job_.nonce = nonce;
    exchange_ = std::make_unique<DeviceExchange<CudaRows, NcclWire>>(job_, rows_, *wire_);
    return json::object();
  }

  DeviceExchange<CudaRows, NcclWire>& exchange() {
    if (!exchange_) throw std::logic_error("the leader has not asked this rank to prepare");
    return *exchange_;
  }

  json steps(const json& request) {
    const auto family = request.at("family").get<Family>();
    const Router router(job_.routing, family);
    const std::chrono::duration<double> rest(request.at("rest_s").get<double>());
    const std::uint64_t count = request.at("count"), lead = request.at("lead");
    const double pairs = static_cast<double>(lead + 2 * count);  // the steps, and the row of pairs after them
    // A family that was not run yet sends all to one rank at worst, which then has as much as all have when it is even.
    const bool anew = families_.insert(family).second;
    const auto ranks = static_cast<double>(job_.routing.ranks);
    const auto due =
        due_in("steps", pace_.limit(untimed(pairs), anew ? ranks * pairs : pairs, anew).count + rest.count());
    const auto begin = Clock::now();
    json taken = to_words(
        exchange().steps(router, request.at("first"), count, lead, [&] { std::this_thread::sleep_for(rest); }));
    if (!anew) pace_.took({std::chrono::duration<double>(Clock::now() - begin - rest).count()}, pairs);
    return taken;
  }

  /// The longest wait for the first steps, with so many pairs of dispatch and combine.
  [[nodiscard]] Seconds untimed(double pairs) const {
    const double bytes = pairs * static_cast<double>(RowRooms(job_).all());
    const double together = collective::batch_limit({static_cast<std::uint64_t>(bytes)}, ranks()).count;
    return {std::min(collective::kBatchLimit.count, collective::kStartOfWork.count + together)};
  }
  [[nodiscard]] int ranks() const { return static_cast<int>(job_.routing.ranks); }

  cuda::Deadline::Due due_in(const char* what, double limit_s) {
    return deadline_.set(what, {limit_s}, [this] {
      return exchange_->in_hand([&](std::size_t mark) { return rows_.has_passed(mark); });
    });
  }

  json edges() {
    const auto due = due_in("round trips of pairs", untimed(0).count);
    json edges = edges_of(
        job_, [&] { wire_->barrier(), wire_->finish(); },
        [&](std::int64_t peer) { return exchange().round_trip(peer); });
    return {{"edges", std::move(edges)}};
  }

  json facts() {
    json result = log_.facts();
    result.update({{"library", nccl_.path()},
                   {"version", nccl_.version()},
                   {"buffers", rows_.source()},
                   {"launch_excluded", rows_.gated()}});
    return result;
  }

  ExchangeJob job_;
  cuda::Device gpu_;
  cuda::Deadline deadline_;
  collective::Pace pace_;      ///< of pairs of dispatch and combine
  std::set<Family> families_;  ///< that were run
  nccl::RankLog log_;          // before the library, which reads where its log goes
  nccl::Nccl nccl_;
  CudaRows rows_;
  std::unique_ptr<NcclWire> wire_;  // after the memory that it may still use
  std::unique_ptr<DeviceExchange<CudaRows, NcclWire>> exchange_;
};

}  // namespace

std::optional<int> gpu_rank_main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv, argv + argc);
  const auto start = moe_start(arguments);
  if (!start) return std::nullopt;
  if (!collective::tie_to_leader(arguments.at(1))) return 1;
  try {
    std::optional<GpuSession> session;  // made by the first request, so that a failure in it is an answer
    collective::answer_leader([&](const json& request) {
      if (!session) session.emplace(*start);
      return session->answer(request);
    });
    return 0;
  } catch (const std::exception& error) {
    std::cerr << fmt::format("moe_dispatch rank {}: {}\n", start->job.rank, error.what());
    return 1;
  }
}

}  // namespace assay::inference
