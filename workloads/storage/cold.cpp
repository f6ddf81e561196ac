// cold: counters of ports, and the ladder.
#include "workloads/storage/cold.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>

#include "probes/core/host_facts.h"
#include "probes/core/text.h"

namespace assay {
namespace {

constexpr std::uint64_t kBytesOfRdmaCount = 4;  // port_rcv_data counts words of 4 B (InfiniBand spec. 16.1.3.5)

std::optional<std::uint64_t> count_in(const std::filesystem::path& path) {
  const auto text = read_fact(path.string());
  std::uint64_t count = 0;
  if (!text || std::from_chars(text->data(), text->data() + text->size(), count).ec != std::errc()) return std::nullopt;
  return count;
}

void add_to(std::optional<std::uint64_t>& sum, std::optional<std::uint64_t> more) {
  if (more) sum = sum.value_or(0) + *more;
}

}  // namespace

int cold_rung(const ColdEvidence& evidence) {
  if (evidence.resident_pages.value_or(0) > 0) return 0;
  if (evidence.other_node) return evidence.set_over_server_memory.value_or(0) > 1 ? 4 : 3;
  if (evidence.wire_share.value_or(0) >= 1) return 2;
  return evidence.resident_pages ? 1 : 0;
}

std::optional<std::uint64_t> wire_bytes_received(const std::string& sys) {
  namespace fs = std::filesystem;
  std::optional<std::uint64_t> hardware, others;
  std::error_code none;
  for (const auto& port : fs::directory_iterator(sys + "/class/net", none)) {
    if (port.path().filename() == "lo") continue;
    add_to(fs::exists(port.path() / "device", none) ? hardware : others, count_in(port.path() / "statistics/rx_bytes"));
  }
  auto sum = hardware ? hardware : others;
  for (const auto& adapter : fs::directory_iterator(sys + "/class/infiniband", none)) {
    for (const auto& port : fs::directory_iterator(adapter.path() / "ports", none)) {
      if (const auto words = count_in(port.path() / "counters/port_rcv_data")) add_to(sum, *words * kBytesOfRdmaCount);
    }
  }
  return sum;
}

std::optional<double> Arrivals::since() const {
  const auto wire = wire_bytes_received();
  const auto device = device_traffic();
  std::optional<double> most;
  if (wire && wire_ && *wire >= *wire_) most = static_cast<double>(*wire - *wire_);
  if (device && device_)
    most = std::max(most.value_or(0), static_cast<double>(device->read.count - device_->read.count));
  return most;
}

std::string preloaded(const std::string& list) {
  const char* const variable = std::getenv("LD_PRELOAD");
  std::string all = variable == nullptr ? "" : variable;
  if (const auto text = read_fact(list); text && !text->empty()) all += (all.empty() ? "" : " ") + *text;
  return all.empty() ? "none" : printable(all);
}

}  // namespace assay
