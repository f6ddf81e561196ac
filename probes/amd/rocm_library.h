// rocm_library: a library of ROCm, opened at run time, or the reason why none opens.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "probes/core/library.h"

namespace assay::amd {

/// A library of ROCm by its sonames.
struct RocmLibrary {
  std::string_view title;
  std::vector<std::string> names;  ///< that are read, newest first
  std::vector<std::string> older;  ///< of releases before `first`, named if no other is there
  std::string_view first;          ///< release that brings the oldest of `names`
  std::string_view folders = "";   ///< looked through first, with colons between
};

/// From `folders`, the usual ones, or where ROCm's packages link it. Throws Skip with the release to install.
Library open_of_rocm(const RocmLibrary& wanted);

/// Whether the driver amdgpu is loaded; `root` precedes the paths of the machine.
bool has_driver(const std::string& root = "");

/// A hint of why no AMD GPU can be reached here: the driver, a container without its devices, a permission, a variable
/// that hides them, or the GPUs themselves.
std::string reach_hint(const std::string& root = "");

}  // namespace assay::amd
