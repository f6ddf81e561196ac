// welcome: host facts, this program's digest, and free space.
#include "orchestrator/node/welcome.h"

#include <chrono>
#include <utility>

#include "orchestrator/files/digest.h"
#include "probes/core/host_facts.h"
#include "probes/core/json_io.h"
#include "probes/core/space.h"

namespace assay::node {
namespace {

using Clock = std::chrono::steady_clock;
constexpr Seconds kPatience{3};                          // a file system that answers at all does so sooner
constexpr auto kAllPatience = std::chrono::seconds(10);  // for all together: well within the patience for the answer

std::map<std::string, std::uint64_t> free_in(const std::vector<std::string>& directories, const std::string& own) {
  std::map<std::string, std::uint64_t> free;
  const auto begin = Clock::now();
  for (const auto& directory : directories) {
    if (Clock::now() - begin > kAllPatience) break;
    const std::string path = directory.starts_with('/') ? directory : own + "/" + directory;
    if (const auto bytes = free_space(path, kPatience)) free[directory] = *bytes;
  }
  return free;
}

}  // namespace

wire::Welcome welcome_to(const wire::Hello& hello, const std::string& directory) {
  Values facts = host_facts();
  if (auto boot = read_fact("/proc/sys/kernel/random/boot_id")) facts["boot_id"] = std::move(*boot);
  return {.protocol = wire::kProtocol,
          .assay_version = ASSAY_VERSION,
          .agent_sha256 = files::sha256_of_file("/proc/self/exe").value_or(std::string(64, '0')),
          .facts = to_json(facts),
          .free = free_in(hello.directories, directory)};
}

}  // namespace assay::node
