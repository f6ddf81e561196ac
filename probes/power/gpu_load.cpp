// gpu_load: launches short graphs of products and keeps one queued while another runs.
#include "probes/power/gpu_load.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <optional>
#include <stdexcept>
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

namespace assay::power {
namespace {

constexpr cuda::GemmShape kShape{.m = 4096, .n = 4096, .k = 4096};  // large enough for all multiprocessors, and short
constexpr std::uint64_t kSeed = 1;
constexpr Seconds kSlice = {0.001};         // a tenth of the engine's period
constexpr std::size_t kMostAlgorithms = 8;  // that are tried until the library runs one

/// Objects of the GPU; made and freed by the unit's own thread.
struct GpuWork {
  GpuWork(const cuda::GemmLibrary& library, const cuda::Device& device, bool with_job)
      : stream(cuda::make_stream()),
        operands(device, type(), kShape, cuda::Pattern::gaussian, kSeed),
        matmul(library, type(), kShape, false) {
    std::optional<cuda::AlgorithmRefused> refusal;
    for (const auto& algorithm : matmul.algorithms(operands.set(0), kMostAlgorithms)) {
      try {
        matmul.enqueue(algorithm, operands.set(0), stream);  // loads its kernel
        cuda::wait(stream);
        settle(algorithm, with_job ? Seconds{0} : kSlice);
        if (with_job) begin_job(device, algorithm);
        return;
      } catch (const cuda::AlgorithmRefused& refused) {
        if (!refusal) refusal = refused;
      }
    }
    if (refusal) throw *refusal;
    throw Skip(
        fmt::format("cuBLASLt {} has no algorithm for bf16 on {} ({})", library.version(), device.uuid, device.name));
  }

  static const cuda::GemmType& type() { return cuda::gemm_type("bf16"); }

  /// Times one turn through the sets and records as many products as fill `slice`: a whole turn at least.
  void settle(const cuda::Algorithm& algorithm, Seconds slice) {
    const auto enqueue = [&](std::size_t products) {
      for (std::size_t i = 0; i < products; ++i) matmul.enqueue(algorithm, operands.set(i % operands.sets()), stream);
    };
    cuda::mark(marks[0], stream);
    enqueue(operands.sets());
    cuda::mark(marks[1], stream);
    const double turn_s = cuda::elapsed(marks[0], marks[1]).count;
    plan = cuda::plan_sample({turn_s / static_cast<double>(operands.sets())}, operands.sets(), slice);
    graph = cuda::capture(stream, [&] { enqueue(plan.products); });
  }

  /// Whether the algorithm is right, before later results are compared with its first ones: samples of the results,
  /// and products of whole numbers.
  void begin_job(const cuda::Device& device, const cuda::Algorithm& algorithm) {
    std::uint64_t wrong = 0;
    for (std::size_t i = 0; i < operands.sets(); ++i)
      wrong += cuda::check_elements(operands.sample(i), type().exactness, matmul.stored_parts(algorithm)).wrong;
    {
      cuda::GemmOperands whole(device, type(), kShape, cuda::Pattern::constant, kSeed);
      for (const cuda::WholeForm form : cuda::kWholeForms) {
        whole.make_whole(stream, form);
        matmul.enqueue(algorithm, whole.set(0), stream);
        wrong += whole.wrong_whole_lines(stream, form);
      }
    }  // its memory is walked through
    job.emplace(device, operands);
    job->add_wrong(wrong);
  }

  cuda::Stream stream;
  std::array<cuda::Event, 2> marks = {cuda::make_event(), cuda::make_event()};
  cuda::GemmOperands operands;
  cuda::Matmul matmul;
  cuda::SamplePlan plan;
  cuda::Graph graph;
  std::optional<GpuJob> job;
  std::size_t turn = 0;  ///< of marks: the next
  bool queued = false;   ///< whether the other mark is still to be waited for
};

class GpuUnit : public LoadUnit {
 public:
  GpuUnit(std::shared_ptr<const cuda::GemmLibrary> library, cuda::Device device, bool job)
      : library_(std::move(library)), device_(std::move(device)), job_(job) {}

  void prepare() override {
    cuda::use(device_);
    work_.emplace(*library_, device_, job_);
    flop_ = kShape.flop() * static_cast<double>(work_->plan.products * work_->plan.launches);
    count();
  }
  void work() override {
    GpuWork& gpu = *work_;
    for (std::size_t i = 0; i < gpu.plan.launches; ++i) cuda::launch(gpu.graph, gpu.stream);
    if (gpu.job) gpu.job->enqueue(gpu.stream, gpu.turn);
    cuda::mark(gpu.marks[gpu.turn], gpu.stream);
    gpu.turn = 1 - gpu.turn;
    if (std::exchange(gpu.queued, true)) cuda::wait(gpu.marks[gpu.turn]);
    if (gpu.job) gpu.job->finish(gpu.turn);
    count();
  }
  void finish() override {
    if (std::exchange(work_->queued, false)) cuda::wait(work_->stream);
    if (work_->job) work_->job->finish(1 - work_->turn);
    count();
  }
  void close() override { work_.reset(); }
  [[nodiscard]] double flop_of_work() const override { return flop_; }
  [[nodiscard]] std::uint64_t mismatches() const override { return mismatches_; }
  void record(Recorder& record) const override {
    if (!work_ || !work_->job) return;
    cuda::use(device_);
    work_->job->record(record);
  }

 private:
  void count() {
    if (work_->job) mismatches_ = work_->job->mismatches();
  }

  std::shared_ptr<const cuda::GemmLibrary> library_;
  cuda::Device device_;
  bool job_;
  std::optional<GpuWork> work_;
  std::atomic<std::uint64_t> mismatches_{0};
  double flop_ = 0;
};

}  // namespace

std::vector<LoadedGpu> gpu_load(std::string_view device, std::string_view library_path, bool job) {
  const auto devices = cuda::choose_devices(cuda::all_devices(), device);
  const auto library = std::make_shared<const cuda::GemmLibrary>(library_path);
  std::vector<LoadedGpu> all;
  for (const auto& one : devices) {
    LoadedGpu& gpu = all.emplace_back();
    gpu.part.unit = std::make_unique<GpuUnit>(library, one, job);
    gpu.subject = one.subject();
    gpu.pci_bus_id = one.pci_bus_id;
    gpu.words = fmt::format("{}, bf16, cuBLASLt {}", one.name, library->version());
  }
  return all;
}

}  // namespace assay::power
