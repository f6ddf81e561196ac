// settings: what a fake library is told: by an environment variable, or, where an agent gives its probes an environment
// of its own, by a file of that name beside the library.
#pragma once

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include <dlfcn.h>

namespace assay::fakes {

/// `of` is a function of the library.
inline std::string told(const char* name, const void* of) {
  if (const char* given = std::getenv(name)) return given;
  Dl_info self = {};
  if (dladdr(of, &self) == 0) return "";
  const std::string path = self.dli_fname;
  std::ostringstream text;
  if (const std::ifstream file(path.substr(0, path.rfind('/') + 1) + name); file) text << file.rdbuf();
  return text.str();
}

}  // namespace assay::fakes
