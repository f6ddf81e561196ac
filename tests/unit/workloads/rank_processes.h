// rank_processes: a probe of several ranks as processes of this machine, each on a directory of a storage.
#pragma once

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <functional>
#include <future>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>

#include "probes/core/descriptor.h"
#include "probes/core/filesystem_facts.h"
#include "tests/unit/free_port.h"
#include "tests/unit/probe_process.h"

namespace assay {

/// The command line of each rank: one for each of `directories`, with `more` behind it.
inline std::vector<std::vector<std::string>> rank_commands(const std::string& probe,
                                                           const std::vector<std::string>& directories,
                                                           const std::vector<std::string>& more) {
  const std::string at = fmt::format("--rendezvous=127.0.0.1:{}", free_port());
  std::vector<std::vector<std::string>> commands;
  for (std::size_t rank = 0; rank < directories.size(); ++rank) {
    commands.push_back({probe, "--quick", "--directory=" + directories[rank], fmt::format("--rank={}", rank),
                        fmt::format("--world={}", directories.size()), at, "--token=0123456789abcdef0123456789abcdef"});
    commands.back().insert(commands.back().end(), more.begin(), more.end());
    if (std::ranges::none_of(more, [](const std::string& word) { return word.starts_with("--clients="); }))
      commands.back().emplace_back("--clients=processes");
  }
  return commands;
}

/// Runs all ranks to their end, by rank; rank 1 gets SIGTERM after `stop_s`, unless 0.
inline std::vector<ProbeOutput> run_ranks(const std::string& probe, const std::vector<std::string>& directories,
                                          const std::vector<std::string>& more, unsigned stop_s = 0) {
  std::vector<std::future<ProbeOutput>> running;
  for (const auto& command : rank_commands(probe, directories, more))
    running.push_back(std::async(std::launch::async, run_probe, command, running.size() == 1 ? stop_s : 0U));
  std::vector<ProbeOutput> outputs;
  for (auto& one : running) outputs.push_back(one.get());
  return outputs;
}

/// Ranks that can be killed; their output is discarded.
class StartedRanks {
 public:
  StartedRanks(const std::string& probe, const std::vector<std::string>& directories,
               const std::vector<std::string>& more) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    for (auto command : rank_commands(probe, directories, more)) {
      std::vector<char*> argv;
      for (auto& word : command) argv.push_back(word.data());
      argv.push_back(nullptr);
      pid_t child = 0;
      if (posix_spawn(&child, argv[0], &actions, nullptr, argv.data(), environ) != 0)
        throw std::runtime_error("cannot start " + probe);
      children_.push_back(child);
    }
    posix_spawn_file_actions_destroy(&actions);
  }
  ~StartedRanks() { kill_all(); }
  StartedRanks(const StartedRanks&) = delete;
  StartedRanks& operator=(const StartedRanks&) = delete;
  /// SIGKILL, and waits until they are gone. They are stopped before, so that none finds another gone and cleans up.
  void kill_all() {
    for (const pid_t child : children_) kill(child, SIGSTOP);
    for (const pid_t child : children_) kill(child, SIGKILL);
    for (const pid_t child : children_) waitpid(child, nullptr, 0);
    children_.clear();
  }

 private:
  std::vector<pid_t> children_;
};

/// Does `harm` to every file below a directory whose name has `part` in it, again and again, as long as it lives.
class Vandal {
 public:
  Vandal(std::string directory, std::string part, std::function<void(const std::filesystem::path&)> harm)
      : thread_([directory = std::move(directory), part = std::move(part),
                 harm = std::move(harm)](const std::stop_token& over) {
          while (!over.stop_requested()) {
            std::this_thread::sleep_for(std::chrono::microseconds(100));
            try {
              for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
                if (entry.path().filename().string().find(part) != std::string::npos) harm(entry.path());
              }
            } catch (const std::filesystem::filesystem_error&) {
              continue;  // the run has just removed or renamed it: the next round looks again
            }
          }
        }) {}

 private:
  std::jthread thread_;
};

/// Changes one byte of a file, and leaves it alone as long as it has that change: a value that is always the same would
/// change nothing where the file has it already.
class Damage {
 public:
  void operator()(const std::filesystem::path& path) {
    const Descriptor file(open(path.c_str(), O_RDWR | O_CLOEXEC));
    char byte = 0;
    if (!file || pread(file.number(), &byte, 1, kAt) != 1) return;  // it is being removed, or has not been written
    const auto known = changed_.find(path);
    if (known != changed_.end() && known->second == byte) return;
    byte = static_cast<char>(byte ^ 1);
    if (pwrite(file.number(), &byte, 1, kAt) == 1) changed_[path] = byte;
  }

 private:
  static constexpr off_t kAt = 1000;
  std::map<std::filesystem::path, char> changed_;
};

/// The node that a record is of.
inline Subject node_of(const Record& record) { return {"node", std::get<std::string>(record.start.host.at("name"))}; }

/// The one sample of `metric` of all clients at {coordinate: place}; throws std::runtime_error where there is none.
inline double figure_at(const Record& record, const std::string& metric, const Values& at) {
  for (const auto& one : record.measurements) {
    if (one.metric == metric && one.subject == Subject{"group", "all clients"} && one.at == at)
      return one.samples.at(0);
  }
  throw std::runtime_error("no " + metric);
}

/// Names in a directory.
inline std::set<std::string> names_in(const std::string& directory) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) names.insert(entry.path().filename());
  return names;
}

/// Names of metrics and conditions in the records, and those that the probe declares but for the kernel's.
struct Declared {
  std::set<std::string> metrics, conditions;
  friend bool operator==(const Declared&, const Declared&) = default;
};
inline Declared recorded_in(const std::vector<Record>& records) {
  Declared found;
  for (const auto& record : records) {
    for (const auto& one : record.measurements) found.metrics.insert(one.metric);
    for (const auto& one : record.conditions) found.conditions.insert(one.name);
  }
  for (const char* of_kernel : {"cpu_load_by_others", "cpu_steal", "clock_synchronised"})
    found.conditions.insert(of_kernel);
  for (const char* of_nfs : {"rpc_backlog", "rpc_slots"}) found.conditions.erase(of_nfs);  // there may be no such mount
  return found;
}
inline Declared declared_by(const std::string& probe) {
  const auto description = read_description(run_probe({probe, "--describe"}).out, probe).value();
  Declared found;
  for (const auto& one : description.metrics) found.metrics.insert(one.name);
  for (const auto& one : description.conditions) found.conditions.insert(one.name);
  for (const char* of_kernel : {"cpu_load_by_others", "cpu_steal", "clock_synchronised"})
    found.conditions.insert(of_kernel);
  for (const char* of_nfs : {"rpc_backlog", "rpc_slots"}) found.conditions.erase(of_nfs);  // there may be no such mount
  if (filesystem_facts(".").device_class.empty()) found.conditions.erase("device_class");
  return found;
}

/// A directory on a disk of this machine, which must be empty again at the end.
class SharedDirectory : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto why = filesystem_facts(".").not_storage; !why.empty()) GTEST_SKIP() << why;
  }
  /// The same place for three ranks.
  [[nodiscard]] std::vector<std::string> places() const { return {place_.path(), place_.path(), place_.path()}; }
  [[nodiscard]] std::set<std::string> left() const { return names_in(place_.path()); }

  ScratchDirectory place_{"."};
};

}  // namespace assay
