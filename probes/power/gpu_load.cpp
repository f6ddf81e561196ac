// gpu_load: launches short graphs of products and keeps one queued while another runs.
#include "probes/power/gpu_load.h"

#include <algorithm>
#include <array>
#include <optional>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "probes/core/probe.h"
#include "probes/cuda/choice.h"
#include "probes/cuda/cublaslt.h"
#include "probes/cuda/device.h"
#include "probes/cuda/gemm_operands.h"
#include "probes/cuda/gemm_type.h"
#include "probes/cuda/graph.h"

namespace assay::power {
namespace {

constexpr cuda::GemmShape kShape{.m = 4096, .n = 4096, .k = 4096};  // large enough for all multiprocessors, and short
constexpr Seconds kSlice = {0.001};                                 // a tenth of the engine's period
constexpr std::size_t kMostAlgorithms = 8;                          // that are tried until the library runs one

/// Objects of the GPU; made and freed by the unit's own thread.
struct GpuWork {
  GpuWork(const cuda::CublasLt& library, const cuda::Device& device)
      : stream(cuda::make_stream()),
        operands(device, cuda::gemm_type("bf16"), kShape, cuda::Pattern::gaussian),
        matmul(library, cuda::gemm_type("bf16"), kShape, false) {
    std::optional<cuda::AlgorithmRefused> refusal;
    for (const auto& algorithm : matmul.algorithms(operands.set(0), kMostAlgorithms)) {
      try {
        matmul.enqueue(algorithm, operands.set(0), stream);  // loads its kernel
        cuda::wait(stream);
        settle(algorithm);
        return;
      } catch (const cuda::AlgorithmRefused& refused) {
        if (!refusal) refusal = refused;
      }
    }
    if (refusal) throw *refusal;
    throw Skip(
        fmt::format("cuBLASLt {} has no algorithm for bf16 on {} ({})", library.version(), device.uuid, device.name));
  }

  /// Times one turn through the sets and records as many products as fill a slice.
  void settle(const cuda::Algorithm& algorithm) {
    const auto enqueue = [&](std::size_t products) {
      for (std::size_t i = 0; i < products; ++i) matmul.enqueue(algorithm, operands.set(i % operands.sets()), stream);
    };
    cuda::mark(marks[0], stream);
    enqueue(operands.sets());
    cuda::mark(marks[1], stream);
    const double turn_s = cuda::elapsed(marks[0], marks[1]).count;
    plan = cuda::plan_sample({turn_s / static_cast<double>(operands.sets())}, operands.sets(), kSlice);
    graph = cuda::capture(stream, [&] { enqueue(plan.products); });
  }

  cuda::Stream stream;
  std::array<cuda::Event, 2> marks = {cuda::make_event(), cuda::make_event()};
  cuda::GemmOperands operands;
  cuda::Matmul matmul;
  cuda::SamplePlan plan;
  cuda::Graph graph;
  std::size_t turn = 0;  ///< of marks: the next
  bool queued = false;   ///< whether the other mark is still to be waited for
};

class GpuUnit : public LoadUnit {
 public:
  GpuUnit(std::shared_ptr<const cuda::CublasLt> library, cuda::Device device)
      : library_(std::move(library)), device_(std::move(device)) {}

  void prepare() override {
    cuda::use(device_);
    work_.emplace(*library_, device_);
    flop_ = kShape.flop() * static_cast<double>(work_->plan.products * work_->plan.launches);
  }
  void work() override {
    GpuWork& gpu = *work_;
    for (std::size_t i = 0; i < gpu.plan.launches; ++i) cuda::launch(gpu.graph, gpu.stream);
    cuda::mark(gpu.marks[gpu.turn], gpu.stream);
    gpu.turn = 1 - gpu.turn;
    if (std::exchange(gpu.queued, true)) cuda::wait(gpu.marks[gpu.turn]);
  }
  void finish() override {
    if (std::exchange(work_->queued, false)) cuda::wait(work_->stream);
  }
  void close() override { work_.reset(); }
  [[nodiscard]] double flop_of_work() const override { return flop_; }

 private:
  std::shared_ptr<const cuda::CublasLt> library_;
  cuda::Device device_;
  std::optional<GpuWork> work_;
  double flop_ = 0;
};

}  // namespace

std::vector<LoadedGpu> gpu_load(std::string_view device, std::string_view library_path) {
  const auto devices = cuda::choose_devices(cuda::all_devices(), device);
  const auto library = std::make_shared<const cuda::CublasLt>(library_path);
  std::vector<LoadedGpu> all;
  for (const auto& one : devices) {
    LoadedGpu& gpu = all.emplace_back();
    gpu.part.unit = std::make_unique<GpuUnit>(library, one);
    gpu.subject = one.subject();
    gpu.words = fmt::format("{}, bf16, cuBLASLt {}", one.name, library->version());
  }
  return all;
}

}  // namespace assay::power
