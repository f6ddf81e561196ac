// fake_tree: a small /proc and /sys in a temporary directory, made by a test and gone with it.
#pragma once

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

#include <stdlib.h>  // mkdtemp is POSIX

namespace assay {

/// One temporary directory; paths are relative to it.
class FakeTree {
 public:
  FakeTree() {
    std::string form = (std::filesystem::temp_directory_path() / "assay-tree-XXXXXX").string();
    if (mkdtemp(form.data()) == nullptr) throw std::runtime_error("mkdtemp failed for " + form);
    root_ = form;
  }
  ~FakeTree() {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }
  FakeTree(const FakeTree&) = delete;
  FakeTree& operator=(const FakeTree&) = delete;

  /// Writes `content` to `path`, making its directories.
  void file(const std::string& path, std::string_view content) const {
    const auto place = root_ / path;
    std::filesystem::create_directories(place.parent_path());
    std::ofstream(place, std::ios::binary) << content;
  }
  /// Makes a directory.
  void directory(const std::string& path) const { std::filesystem::create_directories(root_ / path); }
  /// Makes `path` a link to the directory `target` of this tree, which it makes too.
  void link(const std::string& path, const std::string& target) const {
    const auto place = root_ / path;
    std::filesystem::create_directories(place.parent_path());
    std::filesystem::create_directories(root_ / target);
    std::filesystem::create_directory_symlink(root_ / target, place);
  }
  /// The full path of `below`, or of the tree.
  [[nodiscard]] std::string path(const std::string& below = "") const {
    return (below.empty() ? root_ : root_ / below).string();
  }

 private:
  std::filesystem::path root_;
};

}  // namespace assay
