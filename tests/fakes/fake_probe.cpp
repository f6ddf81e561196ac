// fake_probe: a probe whose parameter says how it behaves: well, or in each way that a real one can go wrong. It
// measures nothing; its number is the parameter `value`, and no profile outside the tests names it.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include <unistd.h>

#include "probes/core/probe.h"
#include "probes/core/recorder.h"

namespace {

using namespace assay;

constexpr Parameter kParameters[] = {
    {.name = "behaviour",
     .fallback = "measure",
     .meaning = "what it does",
     .choices = "measure slow hang stubborn crash flood garbage truncate skip error daemon exit3 import"},
    {.name = "value", .unit = "1", .fallback = "100", .meaning = "the number it says"},
    {.name = "script", .fallback = "", .meaning = "file whose first line it takes away: the number it says, or crash"},
    {.name = "counter", .unit = "1", .fallback = "0", .meaning = "1: its number is a counter too"},
    {.name = "directory", .fallback = ".", .meaning = "where it would write"},
    {.name = "writes", .unit = "B", .fallback = "0B", .meaning = "what a plan believes that it writes there"},
    {.name = "load_least",
     .unit = "s",
     .fallback = "0s",
     .meaning = "above 0: its number counts interruptions too",
     .spent = 1},
};
constexpr Metric kMetrics[] = {
    {.name = "number", .unit = "1", .better = Better::higher, .meaning = "the parameter value, ten times"},
    {.name = "count",
     .unit = "1",
     .better = Better::lower,
     .meaning = "the same once, as a counter, where it is one",
     .course = Course::for_life,
     .recorded = Recorded::if_asked},
    {.name = "interruptions",
     .unit = "1",
     .better = Better::lower,
     .meaning = "the same once, of the class ended, and none of the others, where it loads",
     .recorded = Recorded::if_asked},
    {.name = "load_share",
     .unit = "1",
     .meaning = "1, where it loads",
     .kind = MetricKind::share,
     .recorded = Recorded::if_asked}};
constexpr ConditionSpec kConditions[] = {{.name = "behaved", .meaning = "Whether it came to its end."}};
constexpr SpaceRule kSpace[] = {{.held = "writes", .times = "2"}};
constexpr ProbeSpec kSpec{.name = "fake_probe",
                          .measures = "Nothing; it behaves as it is told, for tests of what watches it.",
                          .method = "It repeats the parameter value ten times.",
                          .source = "This file alone, nothing else.",
                          .typical = {1},
                          .deadline = {5},
                          .parameters = kParameters,
                          .metrics = kMetrics,
                          .conditions = kConditions,
                          .space = kSpace};

/// Takes the first line away from the file, so that the next run finds the one after it; "" when there is none.
std::string next_line(const std::string& path) {
  std::ifstream in(path);
  std::string first;
  std::getline(in, first);
  const std::string rest{std::istreambuf_iterator<char>(in), {}};
  in.close();
  std::ofstream(path) << rest;
  return first;
}

void measure(const Parameters& given, Recorder& record) {
  const std::string line = given.text("script").empty() ? "" : next_line(given.text("script"));
  const std::string& behaviour = line == "crash" ? line : given.text("behaviour");
  if (behaviour == "slow") sleep_until_stopped(std::chrono::milliseconds(600));
  if (behaviour == "stubborn") (void)std::signal(SIGTERM, SIG_IGN);
  if (behaviour == "hang" || behaviour == "stubborn") {
    while (behaviour == "stubborn" || !stop_requested()) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    std::_Exit(0);
  }
  if (behaviour == "crash") std::abort();
  if (behaviour == "exit3") std::_Exit(3);
  if (behaviour == "skip") throw Skip("there is no such hardware here");
  if (behaviour == "error") throw std::runtime_error("the hardware answered with an error");
  if (behaviour == "garbage") std::puts("\x01\x02 not a record \xff");
  if (behaviour == "flood") {
    const std::string flood(65536, 'x');
    while (std::fputs(flood.c_str(), stdout) >= 0) {
    }
  }
  if (behaviour == "daemon" && ::fork() == 0) {
    ::setsid();
    if (::fork() != 0) std::_Exit(0);
    // A test gives a number that no other process has.
    ::execl("/bin/sleep", "sleep", std::to_string(given.count("value")).c_str(), nullptr);
  }
  const double number = line.empty() ? static_cast<double>(given.count("value")) : std::stod(line);
  record.measurement("number", sample_fixed(10, [&] { return number; }));
  if (given.count("counter") == 1) record.measurement("count", number);
  if (given.seconds("load_least").count > 0) {
    record.measurement("interruptions", number, {}, {{"class", std::string("ended")}});
    for (const char* other : {"silent", "error"})
      record.measurement("interruptions", 0, {}, {{"class", std::string(other)}});
    record.measurement("load_share", 1);
  }
  record.condition("behaved", true);
  if (behaviour == "truncate") std::_Exit(0);
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]) != "--behaviour=import") continue;
    std::puts(R"({"schema":"assay.imported/1","sequence":0,"source":{"tool":"osu"}})");  // in the place of a record,
                                                                                         // from its first byte
    return 0;
  }
  return assay::probe_main(argc, argv, kSpec, measure);
}
