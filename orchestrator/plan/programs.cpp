// programs: finds the probes of an installation and calls each with `--describe`.
#include "orchestrator/plan/programs.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include <unistd.h>

#include <fmt/format.h>

#include "orchestrator/files/child.h"
#include "orchestrator/files/digest.h"
#include "orchestrator/plan/catalogue.h"
#include "orchestrator/site/site.h"

namespace assay::plan {
namespace {

namespace fs = std::filesystem;

constexpr Seconds kDescribeDeadline{20};  // a cold start from a slow disk takes a second or two

/// Folders of `directory`, in the order of their names.
std::vector<fs::path> folders_of(const std::string& directory) {
  std::error_code none;
  std::vector<fs::path> folders;
  for (const auto& entry : fs::directory_iterator(directory, none)) {
    if (entry.is_directory(none)) folders.push_back(entry.path());
  }
  std::ranges::sort(folders);
  return folders;
}

/// Programs of another version may measure in another way and say nothing of it.
std::optional<InputError> check_version(const fs::path& folder) {
  const auto said = read_file((folder / "VERSION").string());
  if (!said) return said.error();
  const std::string version = said->substr(0, said->find('\n'));
  if (version == ASSAY_VERSION) return std::nullopt;
  return InputError{folder.string() + "/VERSION", fmt::format("'{}' is not {}", version, ASSAY_VERSION),
                    "install the packages of one version: assay-machine-* together with assay"};
}

/// Paths of the programs in `directory`, sorted; none if it does not exist.
std::vector<std::string> executables(const std::string& directory) {
  std::error_code none;
  std::vector<std::string> paths;
  for (const auto& entry : fs::directory_iterator(directory, none)) {
    if (entry.is_regular_file() && ::access(entry.path().c_str(), X_OK) == 0) paths.push_back(entry.path());
  }
  std::ranges::sort(paths);
  return paths;
}

std::expected<Program, InputError> described(const std::string& path) {
  const auto said = files::run_child(path, {"--describe"}, kDescribeDeadline);
  if (!said) return std::unexpected(said.error());
  auto description = read_description(said->output, path + " --describe");
  if (!description) return std::unexpected(description.error());
  const std::string name = description->name;
  return Program{.name = name, .sha256 = "", .path = path, .description = std::move(*description)};
}

std::expected<Program, InputError> hashed(std::expected<Program, InputError> program) {
  if (!program) return program;
  auto digest = files::sha256_of_file(program->path);
  if (!digest) return std::unexpected(digest.error());
  program->sha256 = std::move(*digest);
  return program;
}

/// Paths of the probes in `directory`; an error when it has none.
std::expected<std::vector<std::string>, InputError> probes_in(const std::string& directory) {
  auto paths = executables(directory);
  if (!paths.empty()) return paths;
  return std::unexpected(InputError{directory, "has no probes",
                                    "build or install assay; probes are in libexec/assay/probes next to bin/"});
}

}  // namespace

Installation installation() {
  const fs::path binaries = fs::read_symlink("/proc/self/exe").parent_path();
  return {.binaries = binaries,
          .probes = (binaries.parent_path() / "libexec/assay/probes").string(),
          .machines = (binaries.parent_path() / "libexec/assay/machines").string()};
}

std::map<std::string, std::string> Installation::agents() const {
  std::map<std::string, std::string> agents;
  for (const auto& folder : folders_of(machines)) agents[folder.filename()] = (folder / "assay-node").string();
  agents[site::own_machine()] = binaries + "/assay-node";
  return agents;
}

std::set<std::string> probes_of(const Profile& profile) {
  std::set<std::string> names(profile.companions.begin(), profile.companions.end());
  for (const auto& one : profile.requirements) names.insert({one.probe, one.during});
  return names;
}

std::set<std::string> probes_of(const Plan& plan) {
  std::set<std::string> names;
  for (const auto& [name, probe] : plan.probes) names.insert(name);
  return names;
}

std::expected<std::vector<Program>, InputError> installed_programs(const std::set<std::string>& names) {
  const Installation here = installation();
  const auto paths = probes_in(here.probes);
  if (!paths) return std::unexpected(paths.error());
  std::vector<Program> programs;
  for (const auto& path : *paths) {
    if (!names.contains(fs::path(path).filename())) continue;
    auto program = hashed(described(path));
    if (!program) return std::unexpected(program.error());
    program->builds[site::own_machine()] = {program->sha256, path};
    programs.push_back(std::move(*program));
  }
  for (const auto& folder : folders_of(here.machines)) {
    if (folder.filename() == site::own_machine()) continue;
    if (auto problem = check_version(folder)) return std::unexpected(*problem);
    for (auto& program : programs) {
      const fs::path path = folder / "probes" / fs::path(program.path).filename();
      std::error_code unknown;  // an unreadable path counts as absent
      if (!fs::is_regular_file(path, unknown)) continue;
      auto digest = files::sha256_of_file(path);
      if (!digest) return std::unexpected(digest.error());
      program.builds[folder.filename()] = {.sha256 = std::move(*digest), .path = path};
    }
  }
  return programs;
}

std::expected<std::vector<Program>, InputError> find_programs(const std::string& directory) {
  const auto paths = probes_in(directory);
  if (!paths) return std::unexpected(paths.error());
  std::vector<Program> programs;
  for (const auto& path : *paths) {
    auto program = described(path);
    if (!program) return std::unexpected(program.error());
    programs.push_back(std::move(*program));
  }
  return programs;
}

std::expected<std::vector<Program>, InputError> simulated_programs() {
  std::map<std::string, const KnownProbe*> latest;
  for (const auto& known : known_probes()) {
    const auto [at, added] = latest.emplace(known.name, &known);
    if (!added && at->second->revision < known.revision) at->second = &known;
  }
  std::vector<Program> programs;
  for (const auto& [name, known] : latest) {
    const std::string text = known->document.dump();
    auto description = read_description(text, "profiles/probes.json: " + name);
    if (!description) return std::unexpected(description.error());
    programs.push_back(
        {.name = name, .sha256 = files::sha256(text), .path = "", .description = std::move(*description)});
  }
  for (const auto& path : executables(installation().probes)) {
    if (latest.contains(fs::path(path).filename())) continue;
    auto program = hashed(described(path));
    if (!program) return std::unexpected(program.error());
    programs.push_back(std::move(*program));
  }
  return programs;
}

}  // namespace assay::plan
