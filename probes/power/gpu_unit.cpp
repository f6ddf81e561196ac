// gpu_unit: launches short graphs of products and keeps one queued while another runs.
// The load of a training job on a GPU, besides its products and at the same time: copies, and a walk through
// the rest of the memory; and the checks of all of it. Compiled for each vendor's runtime (CMakeLists.txt).
#include "probes/power/gpu_unit.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "probes/cuda/detection.h"
#include "probes/cuda/device.h"
#include "probes/cuda/device_words.h"
#include "probes/cuda/gemm_check.h"
#include "probes/cuda/gemm_library.h"
#include "probes/cuda/gemm_operands.h"
#include "probes/cuda/gemm_type.h"
#include "probes/cuda/graph.h"
#include "probes/cuda/hbm_walk.h"
#include "probes/cuda/memory_kernels.h"
#include "probes/cuda/mixed.h"

namespace assay::cuda {
namespace {

/// The checks of one GPU. Its device must be current in every call.
class GpuJob {
 public:
  /// Takes the memory that is left on `device`, which is current. `operands` are those of the products; a copy has
  /// `copied`, a step of the walk four times that.
  GpuJob(const Device& device, const GemmOperands& operands, Bytes copied);

  /// Enqueues the sums of the products in `products`, one copy with its check, and one step of the walk, which run
  /// at once. `turn` is 0 or 1, in turns.
  void enqueue(const Stream& products, std::size_t turn);
  /// Waits for what `turn` enqueued, and counts its errors.
  void finish(std::size_t turn);
  /// Adds results that a check of the caller's found wrong.
  void add_wrong(std::uint64_t results) { wrong_results_ += results; }
  /// Results of products, words of copies and words of the walk that were wrong so far.
  [[nodiscard]] std::uint64_t mismatches() const { return wrong_results_ + wrong_words_; }
  /// Records mismatches and the conditions of power::kJobConditions and kWalkConditions; nothing may be enqueued.
  void record(Recorder& record) const;

 private:
  /// Results of one turn, for the host.
  struct Turn {
    Event summed = make_event(), copied = make_event(), walked = make_event();
    DeviceBuffer sums;
    PinnedBuffer told;  ///< sums of the results of all sets, wrong words of copies, and of the walk
    bool open = false;  ///< whether it is still to be waited for
  };
  void enqueue_checked_copy();
  void tell(const std::byte* source, std::size_t words, std::size_t place, Turn& turn, const Stream& stream);

  Device device_;
  Bytes copied_;
  const GemmOperands& operands_;
  Stream copies_ = make_stream(), steps_ = make_stream();
  DeviceBuffer source_, target_;
  DeviceWords wrong_copies_;
  std::array<Turn, 2> turns_;
  std::optional<HbmWalk> walk_;
  std::chrono::steady_clock::time_point begin_, last_;
  std::vector<std::uint64_t> first_sums_;  ///< of each set
  std::uint64_t wrong_results_ = 0, wrong_words_ = 0, rounds_ = 0, walk_steps_ = 0;
};

constexpr std::uint64_t kCopySeed = 0x636f7079;
constexpr std::uint64_t kSliceOfCopies = 4;                   // 1 GiB at full size: written in about a millisecond
constexpr Bytes kJobReserve = {2 * HbmWalk::kReserve.count};  // kernels of the library are loaded later

GpuJob::GpuJob(const Device& device, const GemmOperands& operands, Bytes copied)
    : device_(device), copied_(copied), operands_(operands), source_(copied), target_(copied), wrong_copies_(1) {
  wrong_copies_.clear(copies_);
  wait(copies_);
  const std::size_t sums = operands.sets() * sizeof(std::uint64_t);
  for (Turn& turn : turns_) {
    turn.sums = DeviceBuffer({sums});
    turn.told = PinnedBuffer({sums + 2 * sizeof(std::uint64_t)});
    std::ranges::fill(std::span(turn.told.as<std::uint64_t>(), operands.sets() + 2), 0);
  }
  walk_.emplace(device, Bytes{kSliceOfCopies * copied.count}, kJobReserve);
  begin_ = last_ = std::chrono::steady_clock::now();
}

void GpuJob::tell(const std::byte* source, std::size_t words, std::size_t place, Turn& turn, const Stream& stream) {
  copy_down(turn.told.data() + place * sizeof(std::uint64_t), source, {words * sizeof(std::uint64_t)}, stream);
}

void GpuJob::enqueue_checked_copy() {
  const std::uint64_t seed = mixed(kCopySeed, rounds_);  // other bytes each time: one that was not copied shows
  enqueue_fill(source_.data(), copied_, seed, copies_);
  if (rounds_ % 2 == 0) {
    enqueue_copy(target_.data(), source_.data(), copied_, copies_);
  } else {
    copy_within(target_.data(), source_.data(), copied_, copies_);
  }
  enqueue_payload_check(target_.data(), copied_, seed, wrong_copies_.data(), copies_);
}

void GpuJob::enqueue(const Stream& products, std::size_t turn) {
  Turn& own = turns_.at(turn);
  const std::size_t sets = operands_.sets();
  operands_.sum_results(products, own.sums.as<std::uint64_t>());
  tell(own.sums.data(), sets, 0, own, products);
  mark(own.summed, products);
  enqueue_checked_copy();
  tell(reinterpret_cast<const std::byte*>(wrong_copies_.data()), 1, sets, own, copies_);
  mark(own.copied, copies_);
  if (walk_->slices() > 0) {
    walk_->enqueue_step(1 + walk_steps_ / walk_->slices(), UINT64_MAX, walk_steps_ % walk_->slices(), steps_);
    ++walk_steps_;
    tell(walk_->counter(), 1, sets + 1, own, steps_);
  }
  mark(own.walked, steps_);
  ++rounds_;
  own.open = true;
}

void GpuJob::finish(std::size_t turn) {
  Turn& own = turns_.at(turn);
  if (!own.open) return;
  own.open = false;
  for (const Event* event : {&own.summed, &own.copied, &own.walked}) wait(*event);
  last_ = std::chrono::steady_clock::now();
  const std::span<const std::uint64_t> told(own.told.as<std::uint64_t>(), operands_.sets() + 2);
  const auto sums = told.first(operands_.sets());
  if (first_sums_.empty()) first_sums_.assign(sums.begin(), sums.end());
  for (std::size_t i = 0; i < sums.size(); ++i) wrong_results_ += sums[i] != first_sums_[i] ? 1 : 0;
  wrong_words_ = told[sums.size()] + told[sums.size() + 1];
}

void GpuJob::record(Recorder& record) const {
  const Subject subject = device_.subject();
  const double time_s = std::chrono::duration<double>(last_ - begin_).count(), rounds = static_cast<double>(rounds_);
  record.measurement("mismatches", static_cast<double>(mismatches()), subject);
  record.condition("job_s", time_s, subject);
  record.condition("job_products", rounds * static_cast<double>(operands_.sets()), subject);
  record.condition("job_copied_bytes", rounds * static_cast<double>(copied_.count), subject);
  constexpr double kHour_s = 3600;
  if (time_s > 0) record.condition("detects_wrong_rate", rate_seen(time_s / kHour_s), subject);
  if (time_s > 0)
    record_faults(record, subject, kResultFaults, operands_.put_faults(steps_),
                  hour_of_results(1, rounds * static_cast<double>(operands_.sets()) / time_s * kHour_s,
                                  static_cast<double>(operands_.sets())));
  if (walk_steps_ == 0) return;
  record.condition("walk_slices", static_cast<std::int64_t>(walk_->slices()), subject);
  walk_->record_checks(record, static_cast<double>(walk_steps_), time_s);
}

constexpr std::uint64_t kSeed = 1;
constexpr std::uint64_t kCopied = 16;  // B of a job's copy for each element of a result: 256 MiB for an order of 4096,
                                       // there and back in some 0.2 ms, as long as a product
constexpr Seconds kSlice = {0.001};    // a tenth of the engine's period
constexpr std::size_t kMostAlgorithms = 8;  // that are tried until the library runs one

/// Objects of the GPU; made and freed by the unit's own thread.
struct GpuWork {
  GpuWork(const GemmLibrary& library, const Device& device, const power::GpuLoad& asked)
      : shape{.m = asked.order, .n = asked.order, .k = asked.order},
        operands(device, type(), shape, Pattern::gaussian, kSeed),
        matmul(library, type(), shape, false) {
    std::optional<AlgorithmRefused> refusal;
    for (const auto& algorithm : matmul.algorithms(operands.set(0), kMostAlgorithms)) {
      try {
        matmul.enqueue(algorithm, operands.set(0), stream);  // loads its kernel
        wait(stream);
        settle(algorithm, asked.job ? Seconds{0} : kSlice);
        if (asked.job) begin_job(device, algorithm);
        return;
      } catch (const AlgorithmRefused& refused) {
        if (!refusal) refusal = refused;
      }
    }
    if (refusal) throw *refusal;
    throw Skip(fmt::format("{} {} has no algorithm for bf16 with m, n and k {} on {} ({})", GemmLibrary::kTitle,
                           library.version(), asked.order, device.uuid, device.name));
  }

  static const GemmType& type() { return gemm_type("bf16"); }

  /// Times one turn through the sets and records as many products as fill `slice`: a whole turn at least.
  void settle(const Algorithm& algorithm, Seconds slice) {
    const auto enqueue = [&](std::size_t products) {
      for (std::size_t i = 0; i < products; ++i) matmul.enqueue(algorithm, operands.set(i % operands.sets()), stream);
    };
    mark(marks[0], stream);
    enqueue(operands.sets());
    mark(marks[1], stream);
    const double turn_s = elapsed(marks[0], marks[1]).count;
    plan = plan_sample({turn_s / static_cast<double>(operands.sets())}, operands.sets(), slice);
    graph = capture(stream, [&] { enqueue(plan.products); });
  }

  /// Whether the algorithm is right, before later results are compared with its first ones: samples of the results,
  /// and products of whole numbers.
  void begin_job(const Device& device, const Algorithm& algorithm) {
    std::uint64_t wrong = 0;
    for (std::size_t i = 0; i < operands.sets(); ++i)
      wrong += check_elements(operands.sample(i), type().exactness, matmul.stored_parts(algorithm)).wrong;
    {
      GemmOperands whole(device, type(), shape, Pattern::constant, kSeed);
      for (const WholeForm form : kWholeForms) {
        whole.make_whole(stream, form);
        matmul.enqueue(algorithm, whole.set(0), stream);
        wrong += whole.wrong_whole_lines(stream, form);
      }
    }  // its memory is walked through
    job.emplace(device, operands, Bytes{kCopied * shape.m * shape.n});
    job->add_wrong(wrong);
  }

  GemmShape shape;
  Stream stream = make_stream();
  std::array<Event, 2> marks = {make_event(), make_event()};
  GemmOperands operands;
  Matmul matmul;
  SamplePlan plan;
  Graph graph;
  std::optional<GpuJob> job;
  std::size_t turn = 0;  ///< of marks: the next
  bool queued = false;   ///< whether the other mark is still to be waited for
};

class GpuUnit : public power::LoadUnit {
 public:
  GpuUnit(std::shared_ptr<const GemmLibrary> library, Device device, power::GpuLoad asked)
      : library_(std::move(library)), device_(std::move(device)), asked_(std::move(asked)) {}

  void prepare() override {
    use(device_);
    work_.emplace(*library_, device_, asked_);
    flop_ = work_->shape.flop() * static_cast<double>(work_->plan.products * work_->plan.launches);
    count();
  }
  void work() override {
    GpuWork& gpu = *work_;
    for (std::size_t i = 0; i < gpu.plan.launches; ++i) launch(gpu.graph, gpu.stream);
    if (gpu.job) gpu.job->enqueue(gpu.stream, gpu.turn);
    mark(gpu.marks[gpu.turn], gpu.stream);
    gpu.turn = 1 - gpu.turn;
    if (std::exchange(gpu.queued, true)) wait(gpu.marks[gpu.turn]);
    if (gpu.job) gpu.job->finish(gpu.turn);
    count();
  }
  void finish() override {
    if (std::exchange(work_->queued, false)) wait(work_->stream);
    if (work_->job) work_->job->finish(1 - work_->turn);
    count();
  }
  void close() override { work_.reset(); }
  [[nodiscard]] double flop_of_work() const override { return flop_; }
  [[nodiscard]] std::uint64_t mismatches() const override { return mismatches_; }
  void record(Recorder& record) const override {
    if (!work_ || !work_->job) return;
    use(device_);
    work_->job->record(record);
  }

 private:
  void count() {
    if (work_->job) mismatches_ = work_->job->mismatches();
  }

  std::shared_ptr<const GemmLibrary> library_;
  Device device_;
  power::GpuLoad asked_;
  std::optional<GpuWork> work_;
  std::atomic<std::uint64_t> mismatches_{0};
  double flop_ = 0;
};

}  // namespace

std::vector<power::LoadedGpu> loaded_gpus(const power::GpuLoad& asked, const LoadVendor& vendor) {
  const auto devices = choose_devices(all_devices(), asked.device);
  const auto library = std::make_shared<const GemmLibrary>(asked.library_path);
  std::vector<power::LoadedGpu> all;
  for (const auto& one : devices) {
    power::LoadPart part;
    part.unit = std::make_unique<GpuUnit>(library, one, asked);
    all.push_back({.part = std::move(part),
                   .subject = one.subject(),
                   .words = fmt::format("{}, bf16, {} {}", one.name, GemmLibrary::kTitle, library->version()),
                   .watch = vendor.watch(one.pci_bus_id),
                   .partitions = vendor.partitions(one.pci_bus_id)});
  }
  return all;
}

}  // namespace assay::cuda
