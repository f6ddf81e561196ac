// import_guard: recognises imports of other tools by the first line of a file, and refuses those that no journal line
// names.
#include "orchestrator/judge/evidence/import_guard.h"

#include <filesystem>
#include <fstream>
#include <set>
#include <system_error>

#include <fmt/format.h>

#include "orchestrator/judge/evidence/imported.h"
#include "orchestrator/judge/evidence/run_state.h"

namespace assay::judge {
namespace {

namespace fs = std::filesystem;

bool begins_imported(const fs::path& path) {
  std::string beginning(kImportBeginning, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(beginning.data(), static_cast<std::streamsize>(beginning.size()));
  return is_imported(std::string_view(beginning).substr(0, static_cast<std::size_t>(file.gcount())));
}

std::set<std::string> vouched_for(const Journal& journal) {
  std::set<std::string> paths;
  journal.each_file([&](const EvidenceFile& file) { paths.insert(file.path); });
  return paths;
}

/// "dossier", and "dossier-1" for one that was moved aside.
bool is_dossier(const std::string& name) {
  return name == kDossierFolder || name.starts_with(std::string(kDossierFolder) + "-");
}

}  // namespace

std::optional<InputError> find_imported_files(const std::string& directory, const Journal& journal) {
  const auto known = vouched_for(journal);
  std::error_code failed;
  fs::recursive_directory_iterator entry(directory, failed);
  for (; !failed && entry != fs::recursive_directory_iterator(); entry.increment(failed)) {
    const std::string path = fs::path(entry->path()).lexically_relative(directory).string();
    if (entry.depth() == 0 && is_dossier(path)) entry.disable_recursion_pending();  // `verify` looks into that
    std::error_code unknown;  // a file that vanishes meanwhile is absent
    if (!known.contains(path) && entry->symlink_status(unknown).type() == fs::file_type::regular &&
        begins_imported(entry->path())) {
      return imported_refusal(directory + "/" + path);
    }
  }
  if (failed)
    return InputError{directory, fmt::format("cannot be looked through: {}", failed.message()),
                      "check its permissions"};
  return std::nullopt;
}

std::optional<InputError> find_imported_files(const std::map<std::string, std::string>& files, const Journal& journal) {
  const auto known = vouched_for(journal);
  for (const auto& [path, bytes] : files) {
    if (!known.contains(path) && is_imported(bytes)) return imported_refusal(path);
  }
  return std::nullopt;
}

}  // namespace assay::judge
