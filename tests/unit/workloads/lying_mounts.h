// lying_mounts: one directory, mounted several times through lying_fs, so that each rank has a client of its own.
#pragma once

#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probes/core/filesystem_facts.h"

namespace assay {

/// Why nothing can be mounted here; empty when it can.
inline std::string no_fuse() {
  if (geteuid() != 0) return "mounting needs root";
  const int device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
  if (device < 0) return "/dev/fuse cannot be opened";
  close(device);
  return "";
}

/// Mounts of one backing directory, one for each word of `lies`; gone with all they hold at the end.
class LyingMounts {
 public:
  explicit LyingMounts(const std::vector<std::string>& lies) {
    for (const auto& lie : lies) start(lie);
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    for (const auto& point : points_) {
      while (!mounted(point) && std::chrono::steady_clock::now() < until)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      if (!mounted(point)) trouble_ = point + " is not mounted after 10 s";
    }
  }
  ~LyingMounts() {
    for (const auto& point : points_) umount2(point.c_str(), MNT_DETACH);
    for (const pid_t child : children_) kill(child, SIGTERM);
    for (const pid_t child : children_) waitpid(child, nullptr, 0);
  }
  LyingMounts(const LyingMounts&) = delete;
  LyingMounts& operator=(const LyingMounts&) = delete;

  /// Why there is none; empty when all are there.
  [[nodiscard]] const std::string& trouble() const { return trouble_; }
  /// The mount points.
  [[nodiscard]] const std::vector<std::string>& points() const { return points_; }
  /// What they show.
  [[nodiscard]] std::string backing() const { return place_.path() + "/backing"; }

 private:
  void start(const std::string& lie) {
    const std::string point = fmt::format("{}/mount-{}", place_.path(), points_.size());
    std::filesystem::create_directories(backing());
    std::filesystem::create_directory(point);
    std::vector<std::string> words = {ASSAY_LYING_FS, backing(), point, lie};
    std::vector<char*> argv;
    for (auto& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    pid_t child = 0;
    if (posix_spawn(&child, argv[0], nullptr, nullptr, argv.data(), environ) != 0) {
      trouble_ = "cannot start lying_fs";
      return;
    }
    children_.push_back(child);
    points_.push_back(point);
  }
  static bool mounted(const std::string& point) {
    struct stat inside = {}, outside = {};
    return stat(point.c_str(), &inside) == 0 && stat((point + "/..").c_str(), &outside) == 0 &&
           inside.st_dev != outside.st_dev;
  }

  ScratchDirectory place_{"."};
  std::vector<std::string> points_;
  std::vector<pid_t> children_;
  std::string trouble_;
};

}  // namespace assay
