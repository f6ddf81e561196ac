// hardware_gemm: cuda_gemm on a real GPU keeps its contract for every type that the GPU has.
#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "probes/core/statistics.h"
#include "probes/cuda/gemm_type.h"
#include "tests/hardware/hardware_test.h"

namespace assay {
namespace {

/// No GPU known to date has a dense peak beyond these (FLOP/s): FP64 of H100, the others of GB200, NVFP4 of GB300.
/// NVIDIA's data sheets; a number above 1.2 times them is a unit or a clock that is wrong.
constexpr std::pair<const char*, double> kPeaks[] = {
    {"fp8_e4m3", 5e15}, {"fp8_e5m2", 5e15}, {"bf16", 2.5e15}, {"fp16", 2.5e15}, {"tf32", 1.25e15},
    {"fp32", 9e13},     {"fp64", 6.7e13},   {"int8", 5e15},   {"mxfp8", 5e15},  {"nvfp4", 15e15},
};

/// 10 major + minor of the least compute capability of the GPUs in a record; nothing without one.
std::optional<int> least_compute(const std::optional<Record>& record) {
  std::optional<int> least;
  for (const auto& condition : record ? record->conditions : std::vector<Condition>{}) {
    if (condition.name != "compute_capability") continue;
    const int compute = static_cast<int>(std::lround(10 * std::stod(std::get<std::string>(condition.value))));
    least = std::min(least.value_or(compute), compute);
  }
  return least;
}
constexpr double kBeyond = 1.2;

void expect_right(const Record& record, const std::string& what, Claims& claims) {
  for (const char* metric : {"mismatches", "whole_mismatches", "checksum_changes"}) {
    const auto counts = all_samples(record, metric);
    claims.expect(!counts.empty() && std::ranges::all_of(counts, [](double count) { return count == 0; }),
                  what + ": " + metric + " is 0 on every GPU");
  }
  claims.expect(std::ranges::all_of(record.conditions,
                                    [](const Condition& condition) {
                                      return condition.name != "elements_checked" ||
                                             std::get<std::int64_t>(condition.value) >= 4096;
                                    }),
                what + ": at least 4096 elements were checked on every GPU");
}

/// The rate is what the counters of the multiprocessors say: FLOPs of a cycle, times multiprocessors, times their
/// clock.
void expect_counted(const Record& record, const std::string& what, Claims& claims) {
  for (const Measurement& one : record.measurements) {
    if (one.metric != "flop_per_cycle") continue;
    const auto number = [&](const char* name) {
      const auto found = conditions_of(record, name, one.subject);
      return found.size() == 1 ? number_in(found.front()->value).value_or(0) : 0;
    };
    const double counted = one.samples.front() * number("sm_count") * number("sm_clock_counted_hz");
    for (const Measurement& rate : record.measurements) {
      if (rate.metric == "throughput" && rate.subject == one.subject)
        claims.expect(std::abs(median(rate.samples) / counted - 1) < 0.05, what + ": cycles and clock give the rate");
    }
  }
}

void test(const std::string& folder, Claims& claims) {
  const std::string probe = folder + "/cuda_gemm";
  const auto compute = least_compute(claims.measured(probe, {"--quick"}));
  for (const auto& [type, peak] : kPeaks) {
    const auto record = claims.measured(probe, {"--quick", "--type", type});
    if (!record) {
      if (compute && *compute >= cuda::gemm_type(type).compute) {
        claims.expect(false, std::string(type) + ": is measured on a GPU of this compute capability");
      }
      continue;
    }
    for (const char* metric : {"throughput", "throughput_first", "throughput_best"}) {
      const auto samples = all_samples(*record, metric);
      claims.expect(!samples.empty() &&
                        std::ranges::all_of(
                            samples, [&, limit = kBeyond * peak](double value) { return value > 0 && value < limit; }),
                    std::string(type) + ": " + metric + " is positive and below what any GPU can do");
    }
    expect_right(*record, type, claims);
    expect_counted(*record, type, claims);
  }
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"--quick", "--schedule", "together"},
                                                    {"--quick", "--trials", "3"},
                                                    {"--quick", "--data", "constant"},
                                                    {"--quick", "--type", "fp8_e4m3", "--fast-accumulation", "1"},
                                                    {"--quick", "--m", "384", "--n", "640", "--k", "1536"}}) {
    if (const auto record = claims.measured(probe, arguments)) expect_right(*record, arguments.back(), claims);
  }
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) { return assay::hardware_main(argc, argv, assay::test); }
