// gpu_unit: launches short graphs of products and keeps one queued while another runs.
#include "probes/power/gpu_unit.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "probes/core/probe.h"
#include "probes/cuda/choice.h"
#include "probes/cuda/device.h"
#include "probes/cuda/gemm_check.h"
#include "probes/cuda/gemm_library.h"
#include "probes/cuda/gemm_operands.h"
#include "probes/cuda/gemm_type.h"
#include "probes/cuda/graph.h"
#include "probes/power/gpu_job.h"

namespace assay::cuda {
namespace {

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
