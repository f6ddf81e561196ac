// ethtool: reads the number, the names and the values of the counters with three ioctls.
#include "probes/health/ethtool.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "probes/core/descriptor.h"

namespace assay::health {
namespace {

constexpr std::uint32_t kMaxCounters = 65'536;  // mlx5 with a thousand queues has some ten thousand

bool ask(int socket, const std::string& interface, void* request) {
  ifreq envelope = {};
  std::memcpy(envelope.ifr_name, interface.data(), interface.size());
  envelope.ifr_data = static_cast<char*>(request);
  return ioctl(socket, SIOCETHTOOL, &envelope) == 0;
}

/// A request with a fixed head and a tail of `bytes`, zeroed and aligned for the kernel's structures.
std::vector<std::uint64_t> room_for(std::size_t head, std::size_t bytes) {
  return std::vector<std::uint64_t>((head + bytes + sizeof(std::uint64_t) - 1) / sizeof(std::uint64_t));
}

}  // namespace

std::vector<std::pair<std::string, std::int64_t>> ethtool_counters(const std::string& interface) {
  if (interface.empty() || interface.size() >= IFNAMSIZ) return {};
  const Descriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (socket.number() < 0) return {};
  ethtool_drvinfo driver = {};
  driver.cmd = ETHTOOL_GDRVINFO;
  if (!ask(socket.number(), interface, &driver) || driver.n_stats == 0 || driver.n_stats > kMaxCounters) return {};

  // The kernel writes as many as there are by then, not as many as requested: room for those of queues that come
  // meanwhile.
  const std::size_t room = 2 * std::size_t{driver.n_stats};
  auto name_room = room_for(sizeof(ethtool_gstrings), room * ETH_GSTRING_LEN);
  auto* const names = reinterpret_cast<ethtool_gstrings*>(name_room.data());
  names->cmd = ETHTOOL_GSTRINGS;
  names->string_set = ETH_SS_STATS;
  names->len = driver.n_stats;
  auto value_room = room_for(sizeof(ethtool_stats), room * sizeof(std::uint64_t));
  auto* const values = reinterpret_cast<ethtool_stats*>(value_room.data());
  values->cmd = ETHTOOL_GSTATS;
  values->n_stats = driver.n_stats;
  if (!ask(socket.number(), interface, names) || !ask(socket.number(), interface, values)) return {};

  std::vector<std::pair<std::string, std::int64_t>> counters;
  for (std::uint32_t i = 0; i < std::min({driver.n_stats, names->len, values->n_stats}); ++i) {
    const char* const name = reinterpret_cast<const char*>(names->data) + std::size_t{i} * ETH_GSTRING_LEN;
    if (values->data[i] > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) continue;
    counters.emplace_back(std::string(name, strnlen(name, ETH_GSTRING_LEN)),
                          static_cast<std::int64_t>(values->data[i]));
  }
  return counters;
}

}  // namespace assay::health
