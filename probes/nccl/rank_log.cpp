// rank_log: a file without a name, given to NCCL by its number.
#include "probes/nccl/rank_log.h"

#include <array>
#include <cerrno>
#include <cstdlib>
#include <new>
#include <optional>
#include <string>
#include <system_error>

#include <sys/mman.h>
#include <unistd.h>

#include <fmt/format.h>

#include "probes/core/error.h"
#include "probes/nccl/environment.h"
#include "probes/nccl/log.h"
#include "probes/nccl/wire.h"

namespace assay::nccl {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxLog = 64 << 20;  // a rank of a thousand logs a few MiB

/// Line rate of the port "mlx5_0:1"; absent if the kernel does not report it.
std::optional<double> rate_of(const std::string& port) {
  const auto colon = port.rfind(':');
  if (colon == std::string::npos || port.find_first_of("/ ") != std::string::npos) return std::nullopt;
  const auto text =
      read_file(fmt::format("/sys/class/infiniband/{}/ports/{}/rate", port.substr(0, colon), port.substr(colon + 1)));
  return text ? line_rate(*text) : std::nullopt;
}

std::string text_of(int file) {
  std::string all;
  std::array<char, 1 << 16> chunk;
  ssize_t got = 0;
  while (all.size() < kMaxLog && (got = pread(file, chunk.data(), chunk.size(), static_cast<off_t>(all.size()))) > 0)
    all.append(chunk.data(), static_cast<std::size_t>(got));
  return all;
}

}  // namespace

RankLog::RankLog() : file_(memfd_create("nccl-log", MFD_CLOEXEC)) {
  if (file_.number() < 0) throw std::system_error(errno, std::generic_category(), "memfd_create");
  if (setenv("NCCL_DEBUG_FILE", fmt::format("/proc/self/fd/{}", file_.number()).c_str(), 1) != 0)
    throw std::bad_alloc();
}

json RankLog::facts() const {
  const NcclLog log = read_nccl_log(text_of(file_.number()));
  json result = {
      {"transports", log.transports}, {"warnings", log.warnings}, {"environment", words(nccl_variables(environ))}};
  if (log.network) result["network"] = *log.network;
  if (log.multicast) result["multicast"] = *log.multicast;
  auto& sends = result["sends"] = json::array();
  auto& rates = result["rates"] = json::array();
  for (const auto& [channel, adapters] : log.sends) {
    for (const auto adapter : adapters) sends.push_back({channel, adapter});
  }
  for (const auto& [number, port] : log.adapters) {
    if (const auto rate = rate_of(port)) rates.push_back({number, *rate});
  }
  auto& choices = result["choices"] = json::array();
  for (const auto& choice : log.choices) {
    choices.push_back({{"function", choice.function},
                       {"bytes", choice.bytes},
                       {"algorithm", choice.algorithm},
                       {"protocol", choice.protocol},
                       {"channels", choice.channels}});
  }
  return result;
}

}  // namespace assay::nccl
