// contract_test PROBE: runs one probe as a process and holds it to the contract of every probe.
// Exit code 0 when it holds, 77 when the probe skipped for want of hardware (its record still checked), 1 otherwise.
#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "probes/core/record_reader.h"

namespace assay {
namespace {

struct Outcome {
  int exit_code = -1;
  std::string out;
};

int failures = 0;

void expect(bool holds, const std::string& claim) {
  std::cout << (holds ? "ok    " : "FAILED ") << claim << '\n';
  if (!holds) ++failures;
}

/// Runs `arguments`, returns stdout and exit code; stderr passes through. A companion is sent SIGTERM after `stop_s`.
Outcome run(std::vector<std::string> arguments, unsigned stop_s = 0) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  std::vector<char*> argv;
  for (auto& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  pid_t child = 0;
  const int spawned = posix_spawn(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (spawned != 0) throw std::runtime_error("cannot start " + arguments[0]);
  if (stop_s > 0) {
    sleep(stop_s);
    kill(child, SIGTERM);
  }
  Outcome outcome;
  std::array<char, 65536> buffer;
  for (ssize_t n = 0; (n = read(ends[0], buffer.data(), buffer.size())) > 0;) outcome.out.append(buffer.data(), static_cast<std::size_t>(n));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome;
}

int check(const std::string& probe) {
  const Outcome described = run({probe, "--describe"});
  expect(described.exit_code == 0, "--describe ends with 0");
  const auto description = read_description(described.out, probe);
  if (!description) {
    std::cout << description.error().text() << '\n';
    return 1;
  }
  expect(probe.ends_with("/" + description->name), "the binary is named as the probe");
  for (const auto* text : {&description->measures, &description->method, &description->source}) {
    expect(text->size() > 20 && text->ends_with('.'), fmt::format("says in a sentence: {}", text->substr(0, 60)));
  }
  expect(!description->metrics.empty(), "declares at least one metric");
  expect(description->deadline_s > description->typical_s, "the deadline is beyond the typical time");
  expect(description->resolve({}, true).has_value(), "quick values parse");

  expect(run({probe, "--no-such-flag"}).exit_code == 2, "an unknown flag is a usage error");
  for (const auto& parameter : description->parameters) {
    if (parameter.unit.empty() && parameter.choices.empty()) continue;
    std::string flag = "--" + parameter.name;
    std::ranges::replace(flag, '_', '-');
    expect(run({probe, flag, "!"}).exit_code == 2, flag + " refuses '!'");
  }

  constexpr unsigned kCompanionSeconds = 2;
  const Outcome measured = run({probe, "--quick"}, description->companion ? kCompanionSeconds : 0);
  const auto record = read_record(measured.out, *description);
  if (!record) {
    std::cout << record.error().text() << '\n' << measured.out.substr(0, 2000) << '\n';
    return 1;
  }
  expect(record->start.parameters == *description->resolve({}, true), "the record names the parameters in force");
  if (record->end.status == Status::skip) {
    expect(measured.exit_code == 77 && !record->end.reason.empty(), "a skip has a reason and exit code 77");
    expect(record->measurements.empty(), "a skip has measured nothing");
    std::cout << "SKIPPED: " << record->end.reason << '\n';
    return failures == 0 ? 77 : 1;
  }
  expect(record->end.status == Status::complete && measured.exit_code == 0, "a quick run completes: " + record->end.reason);
  for (const auto& metric : description->metrics) {
    const bool seen = std::ranges::any_of(record->measurements, [&](const auto& m) { return m.metric == metric.name; });
    expect(seen || metric.meaning.find("where ") != std::string::npos, "measured " + metric.name + " (or says where it is measured)");
  }
  for (const auto& condition : description->conditions) {
    const bool seen = std::ranges::any_of(record->conditions, [&](const auto& c) { return c.name == condition.name; });
    expect(seen || condition.meaning.find("where ") != std::string::npos, "recorded " + condition.name + " (or says where it is recorded)");
  }
  return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: contract_test PROBE\n";
    return 2;
  }
  return assay::check(argv[1]);
}
