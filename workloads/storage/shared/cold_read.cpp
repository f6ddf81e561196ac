// cold_read: reads counters of ports and NFS mounts, and grades their proof; the grades are in cold.h.
#include "workloads/storage/shared/cold_read.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <system_error>

#include "probes/core/host_facts.h"
#include "probes/core/text.h"
#include "workloads/storage/shared/storage_ranks.h"

namespace assay::cluster_storage {
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

constexpr const char* kMountStats = "/proc/self/mountstats";

std::optional<std::uint64_t> nfs_bytes_read_now(const std::string& directory) {
  const auto text = read_fact(kMountStats);
  return text ? nfs_bytes_read(*text, directory) : std::nullopt;  // a kernel without NFS has no such file
}

/// `path` of a line of the kernel, in which blanks and the like are written as \040.
std::string plain_path(std::string_view path) {
  constexpr std::size_t kOctal = 3;
  std::string plain;
  for (std::size_t i = 0; i < path.size(); ++i) {
    unsigned char byte = 0;
    const char* const begin = path.data() + i + 1;
    const bool coded = path[i] == '\\' && path.size() - i > kOctal &&
                       std::from_chars(begin, begin + kOctal, byte, 8).ptr == begin + kOctal;
    plain += coded ? static_cast<char>(byte) : path[i];
    if (coded) i += kOctal;
  }
  return plain;
}

/// Whether `directory` is the mount point or below it.
bool lies_below(const std::string& directory, const std::string& point) {
  return point == "/" || directory == point || directory.starts_with(point + "/");
}

/// The fifth number of "bytes: normal_read normal_write direct_read direct_write server_read server_write ..." (struct
/// nfs_iostats of Linux, nfs_iostat.h).
std::optional<std::uint64_t> server_read(const std::string& line) {
  std::istringstream words(line);
  std::string name;
  std::uint64_t count = 0;
  if (!(words >> name) || name != "bytes:") return std::nullopt;
  for (int i = 0; i < 5; ++i) {
    if (!(words >> count)) return std::nullopt;
  }
  return count;
}

/// The work of a transport by its line: of tcp "xprt: tcp port binds connects connect_time idle sends recvs bad_xids
/// active backlog slots ..." (xs_tcp_print_stats of Linux, net/sunrpc/xprtsock.c). The others have no such slots.
std::optional<RpcWork> transport_work(const std::string& line) {
  std::istringstream words(line);
  std::string name, transport;
  if (!(words >> name >> transport) || name != "xprt:" || transport != "tcp") return std::nullopt;
  constexpr std::size_t kSends = 5, kBacklog = 9, kSlots = 10;
  std::array<std::uint64_t, kSlots + 1> counts{};
  for (auto& count : counts) {
    if (!(words >> count)) return std::nullopt;
  }
  return RpcWork{.sends = counts[kSends], .backlog = counts[kBacklog], .slots = counts[kSlots]};
}

/// The lines of the mount by the kernel's NFS client that holds `directory`; none if it is on another file system.
std::vector<std::string> nfs_lines(std::string_view mountstats, const std::string& directory) {
  std::error_code none;
  const auto canonical = std::filesystem::weakly_canonical(directory, none);
  const std::string sought = none ? directory : canonical.string();
  std::istringstream lines{std::string(mountstats)};
  std::size_t longest = 0;
  bool holds = false;
  std::vector<std::string> found;
  constexpr std::string_view kAt = " mounted on ", kType = " with fstype ";
  for (std::string line; std::getline(lines, line);) {
    const auto at = line.find(kAt), type = line.rfind(kType);
    if (at != std::string::npos && type != std::string::npos && at < type) {
      const auto point = plain_path(std::string_view(line).substr(at + kAt.size(), type - at - kAt.size()));
      holds = point.size() >= longest && lies_below(sought, point);
      if (!holds) continue;
      longest = point.size();
      found.clear();
      holds = std::string_view(line).substr(type + kType.size()).starts_with("nfs");
    } else if (holds) {
      found.push_back(line);
    }
  }
  return found;
}

}  // namespace

std::optional<std::uint64_t> drop_cached(const std::vector<std::string>& paths) {
  std::uint64_t resident = 0;
  try {
    for (const auto& path : paths) {
      drop_pages(path);
      resident += resident_pages(path);
    }
  } catch (const std::system_error&) {  // a file system whose files cannot be mapped does not report pages
    return std::nullopt;
  }
  return resident;
}

void ColdLedger::take(const std::vector<ColdReader>& readers) {
  ColdEvidence evidence{
      .resident_pages = 0, .wire_share = {}, .other_node = on_other_nodes_, .set_over_server_memory = {}};
  double bytes = 0;
  for (const auto& reader : readers) {
    if (!reader.active) continue;
    bytes += reader.bytes;
    if (!reader.resident) evidence.resident_pages = std::nullopt;
    if (evidence.resident_pages && reader.resident)
      evidence.resident_pages = std::max(*evidence.resident_pages, *reader.resident);
    if (reader.wire && reader.bytes > 0) keep_least(evidence.wire_share, *reader.wire / reader.bytes);
  }
  const auto& mine = readers[rank_];
  if (mine.active) {
    if (mine.resident) resident_ = std::max(resident_.value_or(0), *mine.resident);
    if (mine.wire && mine.bytes > 0) keep_least(wire_share_, *mine.wire / mine.bytes);
    keep_least(over_client_, mine.bytes / static_cast<double>(total_memory().count));
  }
  if (server_memory_ > 0) evidence.set_over_server_memory = bytes / static_cast<double>(server_memory_);
  keep_least(over_server_, evidence.set_over_server_memory);
  rung_ = std::min(rung_.value_or(cold_rung(evidence)), cold_rung(evidence));
}

void ColdLedger::record(Recorder& record) const {
  if (rung_) record.condition("cold_rung", std::int64_t{*rung_});
  if (resident_) record.condition("resident_pages", static_cast<std::int64_t>(*resident_));
  if (wire_share_) record.condition("wire_share", *wire_share_);
  if (over_client_) record.condition("set_over_client_memory", *over_client_);
  if (over_server_) record.condition("set_over_server_memory", *over_server_);
}

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

std::optional<std::uint64_t> nfs_bytes_read(std::string_view mountstats, const std::string& directory) {
  std::optional<std::uint64_t> found;
  for (const auto& line : nfs_lines(mountstats, directory)) {
    if (const auto count = server_read(line)) found = count;
  }
  return found;
}

std::optional<RpcWork> nfs_rpc_work(std::string_view mountstats, const std::string& directory) {
  std::optional<RpcWork> all;
  for (const auto& line : nfs_lines(mountstats, directory)) {
    const auto one = transport_work(line);
    if (!one) continue;
    all = all.value_or(RpcWork{});
    all->sends += one->sends;
    all->backlog += one->backlog;
    all->slots += one->slots;
  }
  return all;
}

RpcQueue::RpcQueue(const std::string& directory) : directory_(directory) {
  if (const auto text = read_fact(kMountStats)) before_ = nfs_rpc_work(*text, directory);
}

void RpcQueue::record(Recorder& record) const {
  const auto text = read_fact(kMountStats);
  const auto now = text && before_ ? nfs_rpc_work(*text, directory_) : std::nullopt;
  if (!now || now->sends <= before_->sends || now->backlog < before_->backlog) return;
  record.condition("rpc_backlog", static_cast<double>(now->backlog - before_->backlog) /
                                      static_cast<double>(now->sends - before_->sends));
  record.condition("rpc_slots", static_cast<std::int64_t>(now->slots));
}

Arrivals::Arrivals(const std::string& directory) : directory_(directory), nfs_(nfs_bytes_read_now(directory)) {
  wire_ = wire_bytes_received();
  device_ = device_traffic();
}

std::optional<double> Arrivals::since() const {
  if (nfs_) {
    const auto now = nfs_bytes_read_now(directory_);
    return now && *now >= *nfs_ ? std::optional(static_cast<double>(*now - *nfs_)) : std::nullopt;
  }
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

}  // namespace assay::cluster_storage
