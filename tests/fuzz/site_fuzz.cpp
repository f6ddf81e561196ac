// The site reader on hostile bytes: no name it takes can leave its alphabet.
#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdlib>

#include "orchestrator/site/site.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace assay;
  const auto site = site::read_site({reinterpret_cast<const char*>(bytes), size}, "fuzz");
  if (!site && site.error().what.empty()) std::abort();
  if (!site) return 0;
  const auto safe = [](unsigned char c) { return std::isalnum(c) != 0 || c == '.' || c == '_' || c == '-'; };
  for (const auto& node : site->nodes) {
    if (node.name.empty() || !std::ranges::all_of(node.name, safe) || node.name.front() == '-') std::abort();
    if (node.address.starts_with('-') || node.directory.find("..") != std::string::npos) std::abort();
  }
  return 0;
}
