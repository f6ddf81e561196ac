// The profile reader on hostile bytes: what it takes it writes and takes again.
#include <cstdint>
#include <cstdlib>

#include "orchestrator/plan/profile.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace assay;
  const auto none = [](const std::string&) { return std::nullopt; };
  const auto profile = plan::read_profile({reinterpret_cast<const char*>(bytes), size}, "fuzz", none);
  if (!profile && profile.error().what.empty()) std::abort();
  if (profile && !plan::read_profile(plan::to_json(*profile).dump(), "again", none)) std::abort();
  return 0;
}
