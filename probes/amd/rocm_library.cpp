// rocm_library: the newest names first, then those of older releases, which are only named.
#include "probes/amd/rocm_library.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include <fcntl.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "probes/core/descriptor.h"
#include "probes/core/probe.h"

namespace assay::amd {
namespace {

constexpr const char* kRocmFolder = "/opt/rocm/lib";  // where ROCm's packages link the newest of their libraries

Library open_one(const std::vector<std::string>& names, std::string_view title, std::string_view folders) {
  const std::vector<std::string_view> views(names.begin(), names.end());
  try {
    return Library::open(views, title, folders);
  } catch (const Skip&) {  // the folders that are named come first
    return Library::open(views, title, kRocmFolder);
  }
}

bool exists(const std::string& path) {
  std::error_code failed;
  return std::filesystem::exists(path, failed);
}

}  // namespace

Library open_of_rocm(const RocmLibrary& wanted) {
  std::string words;
  try {
    return open_one(wanted.names, wanted.title, wanted.folders);
  } catch (const Skip& missing) {
    words = fmt::format("{}; it comes with {} or newer", missing.what(), wanted.first);
  }
  try {
    if (!wanted.older.empty())
      words = fmt::format(
          "{} at {} is of an older ROCm: {} of {} or newer is read; hint: install that too, and name "
          "its folder in {}",
          wanted.title, open_one(wanted.older, wanted.title, wanted.folders).path(), fmt::join(wanted.names, " or "),
          wanted.first, kLibraryPathVariable);
  } catch (const Skip&) {
    throw Skip(words);  // no older one is here either
  }
  throw Skip(words);
}

bool has_driver(const std::string& root) { return exists(root + "/sys/module/amdgpu"); }

std::string reach_hint(const std::string& root) {
  if (!has_driver(root)) return "hint: load the driver amdgpu, or run where the GPUs are";
  const std::string device = root + "/dev/kfd";
  if (!exists(device)) return "hint: give the container /dev/kfd and /dev/dri (--device=/dev/kfd --device=/dev/dri)";
  const Descriptor opened(open(device.c_str(), O_RDWR | O_CLOEXEC));
  if (!opened)
    return fmt::format(
        "hint: /dev/kfd does not open ({}): add the user to the groups video and render, or allow the container its "
        "devices",
        std::generic_category().message(errno));
  for (const char* hides : {"ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"})
    if (const char* shown = std::getenv(hides)) return fmt::format("hint: {} is '{}': unset it", hides, shown);
  return "hint: /dev/kfd opens: see the lines of amdgpu in the kernel's log (dmesg)";
}

}  // namespace assay::amd
