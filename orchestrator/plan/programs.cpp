// programs: `--describe` is the registry.
#include "orchestrator/plan/programs.h"

#include <algorithm>
#include <filesystem>

#include <unistd.h>

#include <fmt/format.h>

#include "orchestrator/files/child.h"
#include "orchestrator/files/digest.h"

namespace assay::plan {
namespace {

namespace fs = std::filesystem;

constexpr Seconds kDescribeDeadline{20};  // a cold start from a slow disk takes a second or two

}  // namespace

Installation installation() {
  const fs::path binaries = fs::read_symlink("/proc/self/exe").parent_path();
  return {.binaries = binaries, .probes = (binaries.parent_path() / "libexec/assay/probes").string()};
}

std::expected<std::vector<Program>, InputError> find_programs(const std::string& directory) {
  std::error_code error;
  std::vector<std::string> paths;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    if (entry.is_regular_file() && ::access(entry.path().c_str(), X_OK) == 0) paths.push_back(entry.path());
  }
  if (paths.empty()) {
    return std::unexpected(InputError{directory, "has no probes",
                                      "build or install assay; probes lie in libexec/assay/probes beside bin/"});
  }
  std::ranges::sort(paths);
  std::vector<Program> programs;
  for (const auto& path : paths) {
    const auto said = files::run_child(path, {"--describe"}, kDescribeDeadline);
    if (!said) return std::unexpected(said.error());
    auto description = read_description(said->output, path + " --describe");
    if (!description) return std::unexpected(description.error());
    auto digest = files::sha256_of_file(path);
    if (!digest) return std::unexpected(digest.error());
    const std::string name = description->name;
    programs.push_back(
        {.name = name, .sha256 = std::move(*digest), .path = path, .description = std::move(*description)});
  }
  return programs;
}

}  // namespace assay::plan
