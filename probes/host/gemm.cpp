// host_gemm: floating-point rate of the processor on dense matrix products, by OpenBLAS.
#include <algorithm>
#include <optional>
#include <stdexcept>
#include <type_traits>

#include <cblas.h>
#include <fmt/format.h>

#include "probes/core/host_facts.h"
#include "probes/core/machine_tree.h"
#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "probes/core/sampling.h"
#include "probes/core/statistics.h"
#include "probes/host/base_clock.h"
#include "probes/host/blas_kernels.h"
#include "probes/host/fma_peak.h"
#include "probes/host/gemm_check.h"
#include "probes/host/gemm_operands.h"
#include "probes/host/pinned_threads.h"

namespace assay::host {
namespace {

constexpr double kInstrument = 1e-4;                         // barriers of about 20 us in a window of 200 ms or more
constexpr Bytes kUnknownCache = {std::uint64_t{256} << 20};  // where the kernel does not say: larger than most

constexpr Parameter kParameters[] = {
    choice("type", "fp64", "fp64 fp32", "element type"),
    parameter("size", "1", "4096", "n of the n x n matrices", "2048"),
    parameter("threads", "1", "0", "threads, each pinned to a core of its own; 0 for one on every physical core"),
};
constexpr Metric kMetrics[] = {
    higher("throughput", "FLOP/s", "2 n^3 over the wall time of one product", Recorded::always, kInstrument),
    share("efficiency",
          "throughput over the better of the multiply-add peaks measured just before and just after that product",
          Recorded::always, kInstrument),
    fault("mismatches",
          "sampled elements and rows that the independent references refuse, and products that differ from an earlier "
          "one of the same operands"),
};
constexpr ConditionSpec kConditions[] = {
    {.name = "isa", .meaning = "Instruction set of the multiply-add peak."},
    {.name = "peak", .meaning = "Median of the measured multiply-add peaks of all threads together, in FLOP/s."},
    {.name = "clock_hz",
     .meaning = "Median over the products of the slowest core's clock right after each, from dependent integer "
                "additions, in Hz."},
    if_reported("base_clock_hz",
                "Clock that the processor promises under load, in Hz, the lowest of the threads' CPUs, where the "
                "machine tells it."),
    {.name = "flop_per_cycle", .meaning = "Peak over threads and clock: FLOPs a cycle and core."},
    {.name = "threads", .meaning = "Threads that computed."},
    {.name = "pinned", .meaning = "Whether every thread was bound to one CPU, read back from the kernel."},
    {.name = "cpu_list", .meaning = "The CPUs of the threads."},
    {.name = "off_cpu_share",
     .meaning = "Largest share, over the threads, of working time in which a thread did not run: CPU quota, hypervisor "
                "or other processes."},
    {.name = "library", .meaning = "Version and build options of the library in use."},
    {.name = "blas_core", .meaning = "Processor core whose kernels the library used."},
    {.name = "data_pattern", .meaning = "Distribution of the operands."},
    {.name = "operand_sets", .meaning = "Sets of matrices used in turn."},
    {.name = "operand_bytes", .meaning = "Size of all sets together, in B."},
    {.name = "huge_page_share", .meaning = "Share of that memory which huge pages backed."},
};
constexpr ProbeSpec kSpec{
    .name = "host_gemm",
    .revision = 3,
    .sampled = true,
    .measures = "Sustained floating-point rate of the host processor on dense matrix products.",
    .method =
        "C = A B for n x n column-major matrices of standard normal numbers. C is cut into one tile for each thread, "
        "as square as the thread count allows; each thread is pinned to a physical core of its own and computes its "
        "tile by one single-threaded OpenBLAS call. Where the library does not know the processor and has chosen "
        "kernels of narrower vectors, the probe starts itself again and asks for those as wide as the processor's "
        "(OPENBLAS_CORETYPE); kernels that stay narrower are a skip, not a rate. The window runs from the moment all "
        "threads are ready until the last is done, in wall time; 2 n^3 FLOPs are counted. Sets of operands that "
        "together pass twice the last-level cache are used in turn. Between the products a register-only multiply-add "
        "loop of the widest instruction set runs on the same threads for 20 ms of CPU time, so that what holds a "
        "thread off its CPU lowers the product's rate and not the peak; the better of the two bursts around a product "
        "is the peak of its efficiency: both see the same clock, and a disturbance can only lower a burst. Outside the "
        "window every result is compared bit by bit with earlier ones of the same operands, and at the end 4096 "
        "elements of every set are recomputed in long double and the whole is put to Freivalds' check.",
    .source =
        "OpenBLAS cblas_dgemm and cblas_sgemm; rounding bounds of Higham & Mary 2019, SIAM J. Sci. Comput. 41(5); "
        "Freivalds 1979.",
    .typical = {25},
    .deadline = {300},
    .parameters = kParameters,
    .metrics = kMetrics,
    .conditions = kConditions,
    .between_runs = {.least = 0.01,
                     .source = "Fifty quiet runs of a virtual machine with two CPUs, 2026-11: 2.5 %, some of it from "
                               "its neighbours."}};

template <class Real>
void multiply_tile(const typename GemmOperands<Real>::Set& set, std::size_t n, const Tile& tile) {
  const auto rows = static_cast<blasint>(tile.rows.end - tile.rows.begin);
  const auto columns = static_cast<blasint>(tile.columns.end - tile.columns.begin);
  const auto order = static_cast<blasint>(n);
  if (rows == 0 || columns == 0) return;
  const Real* a = set.a + tile.rows.begin;
  const Real* b = set.b + tile.columns.begin * n;
  Real* c = set.c + tile.rows.begin + tile.columns.begin * n;
  if constexpr (std::is_same_v<Real, double>) {
    cblas_dgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, rows, columns, order, 1, a, order, b, order, 0, c, order);
  } else {
    cblas_sgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, rows, columns, order, 1, a, order, b, order, 0, c, order);
  }
}

/// Products on rotating sets, with the peak measured between them.
template <class Real>
class Bench {
 public:
  Bench(PinnedThreads& crew, std::size_t n, std::size_t sets)
      : crew_(crew), n_(n), operands_(crew, n, sets), peak_(crew, std::is_same_v<Real, double>), prints_(sets) {
    look_around();
  }

  /// FLOP/s of one product.
  double once() {
    const std::size_t index = turn_++ % operands_.size();
    const auto set = operands_.set(index);
    const Seconds time =
        crew_.run([&](std::size_t thread) { multiply_tile<Real>(set, n_, tile(n_, crew_.size(), thread)); });
    look_around();
    const std::uint64_t print = operands_.fingerprint(crew_, index);
    if (!prints_[index]) prints_[index] = print;
    if (prints_[index] != print) ++changed_;
    const double n = static_cast<double>(n_);
    return 2 * n * n * n / time.count;
  }

  /// Efficiency of each sample of `throughput`, which must be all that once() has returned.
  [[nodiscard]] Sampling efficiency(const Sampling& throughput) const {
    Sampling result = throughput;
    std::size_t at = 0;
    for (auto* values : {&result.warmup, &result.samples}) {
      for (double& value : *values) {
        value /= std::max(peaks_[at], peaks_[at + 1]);
        ++at;
      }
    }
    return result;
  }

  /// Wrong elements and rows of the last product of every set, and products that changed between repetitions.
  [[nodiscard]] std::uint64_t mismatches() const {
    std::uint64_t wrong = changed_;
    for (std::size_t index = 0; index < operands_.size(); ++index) {
      if (!prints_[index]) continue;  // never computed: there were fewer products than sets
      const auto product = operands_.product(index);
      wrong += wrong_samples(product, index) + wrong_rows(product, index);
    }
    return wrong;
  }

  [[nodiscard]] double peak() const { return median(peaks_); }
  [[nodiscard]] double clock_hz() const { return median(clocks_); }
  [[nodiscard]] std::string_view isa() const { return peak_.isa(); }
  [[nodiscard]] double huge_share() const { return operands_.huge_share(); }

 private:
  void look_around() {
    peaks_.push_back(peak_.burst());
    clocks_.push_back(clock_seen(crew_));
  }

  PinnedThreads& crew_;
  std::size_t n_;
  GemmOperands<Real> operands_;
  FmaPeak peak_;
  std::vector<double> peaks_, clocks_;  ///< before the first product and after each
  std::vector<std::optional<std::uint64_t>> prints_;
  std::size_t turn_ = 0;
  std::uint64_t changed_ = 0;
};

template <class Real>
void measure_type(const Parameters& given, Recorder& record) {
  constexpr std::int64_t kMost = 1 << 20;  // far beyond any memory; keeps n^2 in 64 bits
  if (given.count("size") < 1 || given.count("size") > kMost)
    throw std::runtime_error("size must be between 1 and 1048576");
  const auto n = static_cast<std::size_t>(given.count("size"));
  require_wide_kernels(openblas_get_corename());
  openblas_set_num_threads(
      1);  // the crew is the only parallelism: the library's own threads are not pinned and at most 64
  PinnedThreads crew(cpus_for(given.count("threads")));
  const Bytes set = {3 * n * n * sizeof(Real)};
  const std::size_t sets = operand_sets(set, last_level_cache().value_or(kUnknownCache));
  Bench<Real> bench(crew, n, sets);
  const Sampling throughput = sample(sampling_plan(given), [&] { return bench.once(); });
  record.measurement("throughput", throughput);
  record.measurement("efficiency", bench.efficiency(throughput));
  record.measurement("mismatches", static_cast<double>(bench.mismatches()));
  record.condition("isa", std::string(bench.isa()));
  record.condition("peak", bench.peak());
  record.condition("clock_hz", bench.clock_hz());
  if (const auto base = base_clock_hz(MachineTree("/"), crew.cpus())) record.condition("base_clock_hz", *base);
  record.condition("flop_per_cycle", flop_per_cycle(bench.peak(), crew.size(), bench.clock_hz()));
  record.condition("threads", static_cast<std::int64_t>(crew.size()));
  record.condition("pinned", crew.pinned());
  record.condition("cpu_list", cpu_list(crew.cpus()));
  record.condition("off_cpu_share", crew.off_cpu_share());
  record.condition("library", std::string(openblas_get_config()));
  record.condition("blas_core", std::string(openblas_get_corename()));
  record.condition("data_pattern", std::string("gaussian"));
  record.condition("operand_sets", static_cast<std::int64_t>(sets));
  record.condition("operand_bytes", static_cast<std::int64_t>(set.count * sets));
  record.condition("huge_page_share", bench.huge_share());
}

void measure(const Parameters& given, Recorder& record) {
  given.text("type") == "fp64" ? measure_type<double>(given, record) : measure_type<float>(given, record);
}

}  // namespace
}  // namespace assay::host

int main(int argc, char** argv) {
  assay::host::restart_with_wide_kernels(openblas_get_corename(), argv);
  return assay::probe_main(argc, argv, assay::host::kSpec, assay::host::measure);
}
