// paths: where the repository and this build lie. No other file of the unit tests holds such a path, so that a compiler
// cache serves another clone.
#pragma once

#include <string>

namespace assay {

/// A file of the repository, of tests/golden, of the build tree.
std::string source_file(const std::string& path);
std::string golden_file(const std::string& path);
std::string build_file(const std::string& path);

/// A probe of this build; another of its programs.
std::string probe_file(const std::string& name);
std::string program_file(const std::string& name);

}  // namespace assay
