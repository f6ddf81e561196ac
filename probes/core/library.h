// library: a shared library that a probe opens while it runs, so that a node without it gives a reason and no loader
// error.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

/// Environment variable with folders, separated by colons, that are searched first; for bundles and tests.
inline constexpr const char* kLibraryPathVariable = "ASSAY_LIBRARY_PATH";

/// The folders in which open() looks for a library, in order: those of `more` (colon separated), those of
/// ASSAY_LIBRARY_PATH, `own_folder` (where the probe is), lib next to its parent, and lib/assay of an installation or a
/// bundle. An empty name at the end means the loader's own search; after it comes the CUDA Toolkit's usual place.
/// A probe without a folder (it runs from sealed memory) gives an empty `own_folder`.
std::vector<std::string> library_folders(std::string_view more, std::string_view from_environment,
                                         std::string_view own_folder);

/// A named export of a library; it becomes a pointer of the type that it is put into.
class Symbol {
 public:
  explicit Symbol(void* address) : address_(address) {}
  template <class Target>
  operator Target*() const {
    return reinterpret_cast<Target*>(address_);  // POSIX says that a function's address may travel through void*
  }

 private:
  void* address_;
};

/// A shared library opened by name. It stays loaded until the process ends: vendor libraries do not survive unloading
/// while threads or handlers of theirs live.
class Library {
 public:
  /// Opens the first of `names` ("libcublasLt.so.13") that is found, folder by folder (see library_folders). `title` is
  /// its common name. Throws Skip with names, folders and the loader's last words when none opens.
  static Library open(std::span<const std::string_view> names, std::string_view title,
                      std::string_view more_folders = "");
  /// The same for one name.
  static Library open(std::string_view name, std::string_view title, std::string_view more_folders = "");

  /// The function `name`. Throws Skip with the name when this version of the library lacks it.
  [[nodiscard]] Symbol function(const char* name) const;
  /// The same, and null when this version of the library lacks it.
  [[nodiscard]] Symbol optional_function(const char* name) const;
  /// Where the library was found: the path the loader resolved.
  [[nodiscard]] const std::string& path() const { return path_; }
  /// Its common name.
  [[nodiscard]] const std::string& title() const { return title_; }

  /// Throws Skip naming both when the library's major version `found` is not the one the probe was written for.
  void require_major(int found, int wanted) const;

 private:
  Library(void* handle, std::string title, std::string path);
  void* handle_;
  std::string title_, path_;
};

}  // namespace assay
