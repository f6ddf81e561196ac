// callers: fairness by address, then by silence, then by age.
#include "orchestrator/launch/callers.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include <sys/resource.h>

namespace assay::launch {
namespace {

using namespace std::chrono_literals;

constexpr auto kTimeToGreet = 2s;           // handshake and greeting take milliseconds; a loaded head some hundred
constexpr std::size_t kMostCallers = 1024;  // 1,000 agents may call in the same second
constexpr std::size_t kFewestCallers = 16;
constexpr std::size_t kOwnFiles = 512;  // evidence, programs, ssh and srun besides the callers

}  // namespace

Caller* Callers::who_goes(std::chrono::steady_clock::time_point now) {
  std::map<std::string_view, std::size_t> of_address;
  for (const auto& caller : all_) ++of_address[caller.from];
  Caller* worst = nullptr;
  for (auto& caller : all_) {  // the oldest first, so that of equals the oldest stays the worst
    if (!caller.close || (caller.speaks && now - caller.since < kTimeToGreet)) continue;
    const auto rank = [&](const Caller& one) { return std::pair(!one.speaks, of_address[one.from]); };
    if (worst == nullptr || rank(caller) > rank(*worst)) worst = &caller;
  }
  return worst;
}

bool Callers::has_room(std::chrono::steady_clock::time_point now) {
  const auto waiting = static_cast<std::size_t>(
      std::ranges::count_if(all_, [](const Caller& caller) { return static_cast<bool>(caller.close); }));
  if (waiting < most_) return true;
  Caller* const goes = who_goes(now);
  if (goes == nullptr) return false;
  const auto close = std::exchange(goes->close, {});  // it is on its way out and does not count any more
  close();
  return true;
}

void Callers::close_all() {
  for (auto& caller : all_) {
    if (const auto close = std::exchange(caller.close, {})) close();
  }
}

std::size_t callers_within_descriptors() {
  rlimit limit = {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return kFewestCallers;
  if (limit.rlim_cur < limit.rlim_max) {
    constexpr rlim_t kEnough = 65'536;
    const rlimit raised = {.rlim_cur = std::min(std::max(limit.rlim_cur, kEnough), limit.rlim_max),
                           .rlim_max = limit.rlim_max};
    if (::setrlimit(RLIMIT_NOFILE, &raised) == 0) limit = raised;
  }
  const auto files = static_cast<std::size_t>(limit.rlim_cur);
  return files < kOwnFiles ? kFewestCallers : std::clamp((files - kOwnFiles) / 2, kFewestCallers, kMostCallers);
}

}  // namespace assay::launch
