// hardware_peer_bandwidth: cuda_peer_bandwidth on a node with several GPUs keeps its contract.
#include "tests/hardware/link_claims.h"

namespace assay {
namespace {

/// NVLink 5, the fastest known to date, moves 900 GB/s a GPU and direction (NVIDIA, B200 and GB200 data sheets).
constexpr double kBeyond = 1.2 * 900e9;
/// No load from a neighbour's memory takes a tenth of a millisecond.
constexpr double kSlowest_s = 1e-4;

void expect_pairs(const Record& record, std::size_t gpus, Claims& claims) {
  claims.expect(gpus > 1 && subjects_of(record, "write_bandwidth").size() == gpus * (gpus - 1),
                "every ordered pair was measured");
  for (const Subject& pair : subjects_of(record, "write_bandwidth")) {
    const auto access = value_of(record, "peer_access", pair), path = value_of(record, "path", pair);
    claims.expect(
        access && path && (std::get<std::string>(*access) == "none") == (std::get<std::string>(*path) == "host"),
        "access and path agree for " + pair.id);
    const bool direct = path && std::get<std::string>(*path) == "direct";
    claims.expect(direct == !samples_of(record, "latency", pair).empty(),
                  "latency is there where access is for " + pair.id);
  }
}

void test(const std::string& folder, Claims& claims) {
  const auto record = claims.measured(folder + "/cuda_peer_bandwidth", {"--quick"});
  if (!record) return;
  const std::size_t gpus = subjects_of(*record, "all_pairs_bandwidth").size();
  expect_pairs(*record, gpus, claims);
  for (const char* metric : {"write_bandwidth", "read_bandwidth", "one_to_all_bandwidth", "all_pairs_bandwidth"}) {
    expect_below(*record, metric, kBeyond, claims);
  }
  expect_below(*record, "duplex_bandwidth", 2 * kBeyond, claims);
  if (!all_samples(*record, "latency").empty()) {
    expect_below(*record, "latency", kSlowest_s, claims);
    expect_below(*record, "write_bandwidth_sm", kBeyond, claims);
    expect_below(*record, "read_bandwidth_sm", kBeyond, claims);
  }
  expect_share(*record, "overlap", claims);
  expect_no_mismatches(*record, gpus * (gpus - 1), claims);
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) { return assay::hardware_main(argc, argv, assay::test); }
