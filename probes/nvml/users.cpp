// users: the driver's list of processes, compared with this process and with the memory in use.
#include "probes/nvml/users.h"

#include <algorithm>
#include <string_view>

#include <unistd.h>

namespace assay::nvml {

namespace api = nvml_api;

std::optional<std::int64_t> other_processes(const GpuUsers& users) {
  const auto is_own = [&](const GpuProcess& process) { return users.own && process.pid == *users.own; };
  const auto own = std::ranges::count_if(users.listed, is_own);
  const auto others = static_cast<std::int64_t>(users.listed.size()) - own;
  const auto those_listed = others > 0 ? std::optional(others) : std::nullopt;
  if (users.own && own == 0) return those_listed;
  if (users.outermost) return others;
  if (!users.memory_used) return those_listed;
  std::uint64_t accounted = 0;
  for (const GpuProcess& process : users.listed) {
    if (!process.memory) return those_listed;
    accounted += *process.memory;
  }
  return *users.memory_used > accounted + kLeastContext ? others + 1 : others;
}

bool in_outermost_namespace() {
  constexpr std::string_view kFirstNamespace = "pid:[4026531836]";  // PROC_PID_INIT_INO of the kernel
  char name[64] = {};
  const auto length = readlink("/proc/self/ns/pid", name, sizeof name);
  return length > 0 && std::string_view(name, static_cast<std::size_t>(length)) == kFirstNamespace;
}

Answer<std::int64_t> other_processes_of(const NvmlGpu& gpu, bool own_context) {
  const auto listed = gpu.processes();
  if (!listed.value) return {.value = std::nullopt, .code = listed.code};
  const auto used = gpu.memory_used();
  if (used.failed()) return {.value = std::nullopt, .code = used.code};
  const auto count =
      other_processes({.listed = *listed.value,
                       .own = own_context ? std::optional(static_cast<unsigned>(getpid())) : std::nullopt,
                       .outermost = in_outermost_namespace(),
                       .memory_used = used.value});
  return {.value = count, .code = count ? api::kSuccess : api::kNotSupported};
}

}  // namespace assay::nvml
