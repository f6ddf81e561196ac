// hardware_host_link: cuda_host_link on a real GPU keeps its contract.
#include "tests/hardware/link_claims.h"

namespace assay {
namespace {

/// NVLink-C2C, the fastest host link known to date, moves 450 GB/s a direction (NVIDIA, GH200 and GB200 data sheets).
constexpr double kBeyond = 1.2 * 450e9;
/// No load from host memory takes a tenth of a millisecond.
constexpr double kSlowest_s = 1e-4;

/// Raw rate of a PCIe link in B/s: 2.5 and 5 GT/s a lane, then 8 GT/s doubled with each generation (PCI-SIG).
double pcie_rate(double generation, double width) {
  double transfers = generation < 2 ? 2.5e9 : generation < 3 ? 5e9 : 8e9;
  for (int above = 3; above < generation; ++above) transfers *= 2;
  return transfers * width / 8;
}

/// Superchips show a PCIe link to the driver that does not carry the copies.
bool is_superchip(const Record& record, const Subject& gpu) {
  const auto name = std::get<std::string>(value_of(record, "device_name", gpu).value());
  return name.find("GH200") != std::string::npos || name.find("GB200") != std::string::npos ||
         name.find("GB300") != std::string::npos;
}

void expect_within_link(const Record& record, const std::string& metric, Claims& claims) {
  for (const Subject& gpu : subjects_of(record, "pcie_generation")) {
    if (is_superchip(record, gpu)) continue;
    const double rate =
        pcie_rate(samples_of(record, "pcie_generation", gpu).at(0), samples_of(record, "pcie_width", gpu).at(0));
    claims.expect(std::ranges::max(samples_of(record, metric, gpu)) < rate,
                  metric + " is within the PCIe link of " + gpu.id);
  }
}

void test(const std::string& folder, Claims& claims) {
  for (const char* schedule : {"one_by_one", "together"}) {
    const auto record = claims.measured(folder + "/cuda_host_link", {"--quick", "--schedule", schedule});
    if (!record) continue;
    for (const char* metric : {"h2d_bandwidth", "d2h_bandwidth", "h2d_bandwidth_sm", "d2h_bandwidth_sm"}) {
      expect_below(*record, metric, kBeyond, claims);
      expect_within_link(*record, metric, claims);
    }
    expect_below(*record, "duplex_bandwidth", 2 * kBeyond, claims);
    expect_below(*record, "latency", kSlowest_s, claims);
    expect_share(*record, "overlap", claims);
    expect_no_mismatches(*record, subjects_of(*record, "h2d_bandwidth").size(), claims);
  }
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) { return assay::hardware_main(argc, argv, assay::test); }
