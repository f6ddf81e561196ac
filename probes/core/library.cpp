// library: the search order of dlopen and its error messages.
#include "probes/core/library.h"

#include <array>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <ranges>

#include <dlfcn.h>
#include <link.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "probes/core/probe.h"

namespace assay {
namespace {

constexpr const char* kToolkitFolder = "/usr/local/cuda/lib64";  // where NVIDIA's packages link the newest Toolkit

void append_split(std::string_view text, std::vector<std::string>& folders) {
  for (const auto part : text | std::views::split(':')) {
    if (!part.empty()) folders.emplace_back(part.begin(), part.end());
  }
}

/// Folder of the running program; empty if it runs from memory, whose name is no path that exists.
std::string own_folder() {
  std::error_code failed;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", failed);
  if (failed || !std::filesystem::exists(program, failed)) return "";
  return program.parent_path().string();
}

std::string loaded_path(void* handle, std::string otherwise) {
  link_map* map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, static_cast<void*>(&map)) == 0 && map != nullptr && map->l_name != nullptr &&
      *map->l_name != '\0') {
    return map->l_name;
  }
  return otherwise;
}

}  // namespace

std::vector<std::string> library_folders(std::string_view more, std::string_view from_environment,
                                         std::string_view own) {
  std::vector<std::string> folders;
  append_split(more, folders);
  append_split(from_environment, folders);
  if (!own.empty()) {
    const std::filesystem::path folder(own);
    folders.push_back(folder.string());
    folders.push_back((folder.parent_path() / "lib").string());
    // libexec/assay/probes/NAME of an installation: three folders up is its root.
    folders.push_back((folder.parent_path().parent_path().parent_path() / "lib" / "assay").string());
  }
  folders.emplace_back();
  folders.emplace_back(kToolkitFolder);
  return folders;
}

Library::Library(void* handle, std::string title, std::string path)
    : handle_(handle), title_(std::move(title)), path_(std::move(path)) {}

Library Library::open(std::span<const std::string_view> names, std::string_view title, std::string_view more_folders) {
  const char* variable = std::getenv(kLibraryPathVariable);
  const auto folders = library_folders(more_folders, variable == nullptr ? "" : variable, own_folder());
  std::string last_words;
  static std::mutex loading;  // the loader has a lock of its own, which ThreadSanitizer does not see: it would report
                              // every constructor
  const std::lock_guard guard(loading);
  for (const auto& folder : folders) {
    for (const auto name : names) {
      const std::string file = folder.empty() ? std::string(name) : fmt::format("{}/{}", folder, name);
      std::error_code failed;
      if (!folder.empty() && !std::filesystem::exists(file, failed)) continue;
      if (void* handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) {
        return Library(handle, std::string(title), loaded_path(handle, file));
      }
      // The words about a file that is there beat those about one that is not.
      if (const char* words = dlerror(); words != nullptr && (last_words.empty() || !folder.empty()))
        last_words = words;
    }
  }
  throw Skip(
      fmt::format("{} is not here: {} does not open ({}); searched the loader's folders and {}; hint: install it, or "
                  "name its folder in {}",
                  title, fmt::join(names, ", "), last_words,
                  fmt::join(folders | std::views::filter([](const auto& folder) { return !folder.empty(); }), ", "),
                  kLibraryPathVariable));
}

Library Library::open(std::string_view name, std::string_view title, std::string_view more_folders) {
  return open(std::array{name}, title, more_folders);
}

Symbol Library::optional_function(const char* name) const { return Symbol(dlsym(handle_, name)); }

Symbol Library::function(const char* name) const {
  if (void* found = dlsym(handle_, name)) return Symbol(found);
  throw Skip(
      fmt::format("{} at {} has no function {}: it is of another version than this probe needs", title_, path_, name));
}

void Library::require_major(int found, int wanted) const {
  if (found == wanted) return;
  throw Skip(fmt::format("{} at {} is version {}, this probe needs version {}", title_, path_, found, wanted));
}

}  // namespace assay
