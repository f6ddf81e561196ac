// fake_fabric: a probe whose ranks meet and then behave as they are told. It measures nothing; its number is the
// parameter `value`, and no profile outside the tests names it.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <thread>

#include "probes/core/host_facts.h"
#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "probes/core/rendezvous.h"

namespace {

using namespace assay;

constexpr Parameter kParameters[] = {
    {.name = "behaviour",
     .fallback = "measure",
     .meaning = "what rank 1 does once all have met",
     .choices = "measure crash hang error skip absent"},
    {.name = "value", .unit = "1", .fallback = "100", .meaning = "the number that rank 0 says"},
    {.name = "slow",
     .fallback = "",
     .meaning = "who makes it less: n03:40 where host n03 takes part, n01+n02:50 where both do; in a row with commas"},
    {.name = "fewest", .unit = "1", .fallback = "1", .meaning = "ranks below which it skips"},
    {.name = "pause", .unit = "s", .fallback = "0", .meaning = "how long it takes"},
    {.name = "join", .unit = "s", .fallback = "5s", .meaning = "how long the ranks wait for each other"},
};
constexpr Metric kMetrics[] = {{.name = "number",
                                .unit = "1",
                                .better = Better::higher,
                                .meaning = "the parameter value, or what `slow` leaves of it, ten times"}};
constexpr ConditionSpec kConditions[] = {
    {.name = "hosts", .meaning = "How many different host names the ranks have."},
    {.name = "token_is_secret", .meaning = "Whether the token stands in no command line."},
};
constexpr ProbeSpec kSpec{
    .name = "fake_fabric",
    .scope = Scope::group,
    .measures = "Nothing; its ranks meet, for tests of what brings them together.",
    .method = "Rank 0 repeats the parameter value ten times, or what `slow` says of the hosts that take part.",
    .source = "This file alone, nothing else.",
    .typical = {1},
    .deadline = {8},
    .parameters = kParameters,
    .metrics = kMetrics,
    .conditions = kConditions};

bool is_secret(const std::string& token) {
  std::ifstream file("/proc/self/cmdline");
  const std::string line(std::istreambuf_iterator<char>(file), {});
  return line.find(token) == std::string::npos;
}

void misbehave(const std::string& behaviour) {
  if (behaviour == "crash") std::abort();
  if (behaviour == "error") throw std::runtime_error("the port answered with an error");
  if (behaviour == "skip") throw Skip("there is no such port here");
  while (behaviour == "hang" && !stop_requested()) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  if (behaviour == "hang") std::_Exit(0);
}

/// The number of these hosts: the least of `value` and of what `slow` says of those whose hosts are all there.
double number_of(const Parameters& given, const std::set<std::string>& hosts) {
  double number = static_cast<double>(given.count("value"));
  std::istringstream entries(given.text("slow"));
  for (std::string entry; std::getline(entries, entry, ',');) {
    const auto colon = entry.find(':');
    std::istringstream names(entry.substr(0, colon));
    bool all = true;
    for (std::string name; std::getline(names, name, '+');) all = all && hosts.contains(name);
    if (all) number = std::min(number, std::stod(entry.substr(colon + 1)));
  }
  return number;
}

void measure(const Parameters& given, const Placement& placement, Recorder& record) {
  const std::string& behaviour = given.text("behaviour");
  if (behaviour == "absent" && placement.rank == 1) std::_Exit(0);
  if (placement.world < given.count("fewest"))
    throw Skip("it needs " + std::to_string(given.count("fewest")) + " ranks");
  Rendezvous ranks = meet(placement, {.join = given.seconds("join"), .exchange = {5}});
  if (placement.rank == 1) misbehave(behaviour);
  sleep_until_stopped(std::chrono::duration<double>(given.seconds("pause").count));
  const auto names = ranks.all_gather(std::get<std::string>(host_facts().at("name")));
  record.condition("hosts", static_cast<std::int64_t>(std::set<std::string>(names.begin(), names.end()).size()));
  record.condition("token_is_secret", is_secret(placement.token));
  const double number = number_of(given, {names.begin(), names.end()});
  if (placement.rank == 0) record.measurement("number", sample_fixed(10, [&] { return number; }), {"group", "ranks"});
}

}  // namespace

int main(int argc, char** argv) { return assay::probe_main(argc, argv, kSpec, measure); }
