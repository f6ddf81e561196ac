// lying_mounts: one directory, mounted several times through lying_fs, so that each rank has a client of its own.
#pragma once

#include <chrono>
#include <csignal>
#include <filesystem>
#include <stdexcept>
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
#include "tests/unit/paths.h"

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
    for (const auto& point : points_) wait_for_mount(point);
  }
  ~LyingMounts() {
    for (const auto& point : points_) umount2(point.c_str(), MNT_DETACH);
    std::erase(children_, -1);
    for (const pid_t child : children_) kill(child, SIGTERM);
    for (const pid_t child : children_) waitpid(child, nullptr, 0);
  }
  LyingMounts(const LyingMounts&) = delete;
  LyingMounts& operator=(const LyingMounts&) = delete;

  /// Kills the client of a mount, as a server that is killed; then starts one with the same backing and `lie` in its
  /// place.
  void kill_and_restart(std::size_t number, const std::string& lie) {
    const std::string point = points_.at(number);
    const pid_t old = children_.at(number);
    kill(old, SIGKILL);
    waitpid(old, nullptr, 0);
    umount2(point.c_str(), MNT_DETACH);
    children_.at(number) = -1;
    if (lie.empty()) return;
    children_.at(number) = spawn(point, lie);
    wait_for_mount(point);
  }

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
    children_.push_back(spawn(point, lie));
    points_.push_back(point);
  }
  pid_t spawn(const std::string& point, const std::string& lie) {
    std::vector<std::string> words = {program_file("lying_fs"), backing(), point, lie};
    std::vector<char*> argv;
    for (auto& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    pid_t child = 0;
    if (posix_spawn(&child, argv[0], nullptr, nullptr, argv.data(), environ) != 0)
      throw std::runtime_error("cannot start lying_fs");
    return child;
  }
  void wait_for_mount(const std::string& point) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!mounted(point) && std::chrono::steady_clock::now() < until)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    if (!mounted(point)) trouble_ = point + " is not mounted after 10 s";
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
