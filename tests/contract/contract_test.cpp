// contract_test PROBE [--parameter=value...]: runs one probe as a process and holds it to the contract of every probe.
// Exit code 0 when it holds, 77 when the probe skipped for want of hardware (its record still checked), 1 otherwise.
#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tests/unit/probe_process.h"

namespace assay {
namespace {

int failures = 0;

void expect(bool holds, const std::string& claim) {
  std::cout << (holds ? "ok    " : "FAILED ") << claim << '\n';
  if (!holds) ++failures;
}

/// A signal in a long warm-up ends it: what was sampled until then is no result of the load that was asked for.
void check_stop(std::vector<std::string> command, const Description& description) {
  const auto least = std::ranges::find(description.parameters, "warmup_least", &Description::OwnParameter::name);
  if (least == description.parameters.end() || description.scope != "node") return;
  command.emplace_back("--warmup-least=60s");
  const ProbeOutput stopped = run_probe(command, 1);
  const auto record = read_record(stopped.out, description);
  expect(record && record->end.status == Status::error && stopped.exit_code != 0, "a probe that is stopped has failed");
}

/// What `flags` ("--block-size=4KiB") give, by the names of the parameters.
Values given_by(const std::vector<std::string>& flags) {
  Values given;
  for (const std::string& flag : flags) {
    const auto end = flag.find('=');
    std::string name = flag.substr(2, end - 2);
    std::ranges::replace(name, '-', '_');
    given[name] = flag.substr(end + 1);
  }
  return given;
}

int check(const std::string& probe, const std::vector<std::string>& flags) {
  const ProbeOutput described = run_probe({probe, "--describe"});
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

  expect(run_probe({probe, "--no-such-flag"}).exit_code == 2, "an unknown flag is a usage error");
  for (const auto& parameter : description->parameters) {
    if (parameter.unit.empty() && parameter.choices.empty()) continue;
    std::string flag = "--" + parameter.name;
    std::ranges::replace(flag, '_', '-');
    expect(run_probe({probe, flag, "!"}).exit_code == 2, flag + " refuses '!'");
  }

  constexpr unsigned kCompanionSeconds = 2;
  std::vector<std::string> command = {probe, "--quick"};
  command.insert(command.end(), flags.begin(), flags.end());
  const ProbeOutput measured = run_probe(command, description->companion ? kCompanionSeconds : 0);
  const auto record = read_record(measured.out, *description);
  if (!record) {
    std::cout << record.error().text() << '\n' << measured.out.substr(0, 2000) << '\n';
    return 1;
  }
  expect(record->start.parameters == *description->resolve(given_by(flags), true),
         "the record names the parameters in force");
  if (record->end.status == Status::skip) {
    expect(measured.exit_code == 77 && !record->end.reason.empty(), "a skip has a reason and exit code 77");
    expect(record->measurements.empty(), "a skip has measured nothing");
    std::cout << "SKIPPED: " << record->end.reason << '\n';
    return failures == 0 ? 77 : 1;
  }
  expect(record->end.status == Status::complete && measured.exit_code == 0,
         "a quick run completes: " + record->end.reason);
  for (const auto& metric : description->metrics) {
    const bool seen = std::ranges::any_of(record->measurements, [&](const auto& m) { return m.metric == metric.name; });
    expect(seen || !is_owed(metric.recorded),
           fmt::format("measured {}, or declares it {}", metric.name, metric.recorded));
  }
  for (const auto& condition : description->conditions) {
    const bool seen = std::ranges::any_of(record->conditions, [&](const auto& c) { return c.name == condition.name; });
    expect(seen || !is_owed(condition.recorded),
           fmt::format("recorded {}, or declares it {}", condition.name, condition.recorded));
  }
  check_stop(command, *description);
  return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: contract_test PROBE [--parameter=value...]\n";
    return 2;
  }
  return assay::check(argv[1], {argv + 2, argv + argc});
}
