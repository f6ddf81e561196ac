// probe_process: runs a probe as what it is, a process, and reads its record with the strict reader.
#pragma once

#include <array>
#include <csignal>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probes/core/record_reader.h"

namespace assay {

/// Standard output and exit code of one run; 128 and the signal's number when it was killed.
struct ProbeOutput {
  int exit_code = -1;
  std::string out;
};

/// Runs a program to its end, stderr passed through; `heard` is called with what it has printed so far, and its process
/// id, whenever it prints. Throws std::runtime_error when it cannot be started.
inline ProbeOutput run_and_hear(std::vector<std::string> arguments,
                                const std::function<void(const std::string&, pid_t)>& heard) {
  int ends[2] = {};
  if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe2 failed");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  std::vector<char*> argv;
  for (auto& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  pid_t child = 0;
  const int failed = posix_spawn(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  ProbeOutput output;
  std::array<char, 4096> buffer = {};
  for (ssize_t n = 0; failed == 0 && (n = read(ends[0], buffer.data(), buffer.size())) > 0;) {
    output.out.append(buffer.data(), static_cast<std::size_t>(n));
    heard(output.out, child);
  }
  close(ends[0]);
  if (failed != 0) throw std::runtime_error("cannot start " + arguments[0]);
  int status = 0;
  waitpid(child, &status, 0);
  output.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return output;
}

/// Runs a program to its end; with `stop_s`, sends SIGTERM so many seconds after its first line, as a companion is
/// stopped: a loaded machine may take long to start it. Throws std::runtime_error when it cannot be started.
inline ProbeOutput run_probe(std::vector<std::string> arguments, unsigned stop_s = 0) {
  return run_and_hear(std::move(arguments), [&](const std::string& out, pid_t child) {
    if (stop_s == 0 || out.find('\n') == std::string::npos) return;
    sleep(std::exchange(stop_s, 0U));
    kill(child, SIGTERM);
  });
}

/// The record in `output`; throws std::runtime_error with the reader's words when it is refused.
inline Record record_in(const std::string& probe, const ProbeOutput& output) {
  const auto description = read_description(run_probe({probe, "--describe"}).out, probe);
  if (!description) throw std::runtime_error(description.error().text());
  const auto record = read_record(output.out, *description);
  if (!record) throw std::runtime_error(record.error().text());
  return *record;
}

/// The record that `probe` prints for `arguments`; throws as record_in() does.
inline Record record_of(const std::string& probe, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), probe);
  return record_in(probe, run_probe(std::move(arguments)));
}

/// The samples of one metric on one subject; empty when the record has none.
inline std::vector<double> samples_of(const Record& record, const std::string& metric, const Subject& subject) {
  for (const auto& measurement : record.measurements) {
    if (measurement.metric == metric && measurement.subject == subject) return measurement.samples;
  }
  return {};
}

/// The value of one condition on one subject; nothing when the record has none.
inline std::optional<Value> value_of(const Record& record, const std::string& name, const Subject& subject) {
  for (const auto& condition : record.conditions) {
    if (condition.name == name && condition.subject == subject) return condition.value;
  }
  return std::nullopt;
}

/// Sum of all samples of `metric`, of every subject and coordinate.
inline double sum_of(const Record& record, const std::string& metric) {
  double sum = 0;
  for (const auto& measurement : record.measurements) {
    for (const double sample : measurement.samples) sum += measurement.metric == metric ? sample : 0;
  }
  return sum;
}

/// How many measurements of `metric` there are.
inline std::size_t count_of(const Record& record, const std::string& metric) {
  std::size_t count = 0;
  for (const auto& measurement : record.measurements) count += measurement.metric == metric ? 1 : 0;
  return count;
}

}  // namespace assay
