// outcome: combines the reports of the ranks.
#include "probes/gloo/outcome.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <stdexcept>

#include <unistd.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "probes/core/recorder.h"

namespace assay::gloo {

using nlohmann::json;

namespace {

/// The values of `name` over all paths of all ranks.
template <class Value>
std::set<Value> all_of_paths(const std::vector<json>& facts, const char* name) {
  std::set<Value> values;
  for (const auto& rank : facts) {
    for (const auto& path : rank.at("paths")) {
      if (const auto found = path.find(name); found != path.end()) values.insert(found->get<Value>());
    }
  }
  return values;
}

std::uint64_t total(const std::vector<json>& facts, const char* name) {
  std::uint64_t sum = 0;
  for (const auto& rank : facts) sum += rank.at(name).get<std::uint64_t>();
  return sum;
}

}  // namespace

std::vector<std::string> rank_arguments(const RankPlace& place) {
  return {"host_collective_rank",
          std::to_string(getpid()),
          std::to_string(place.rank),
          std::to_string(place.ranks),
          place.operation,
          place.type,
          place.address};
}

std::optional<RankPlace> rank_place(const std::vector<std::string>& arguments) {
  constexpr std::size_t kCount = 7;
  if (arguments.size() != kCount) return std::nullopt;
  try {
    return RankPlace{.rank = std::stoi(arguments[2]),
                     .ranks = std::stoi(arguments[3]),
                     .operation = arguments[4],
                     .type = arguments[5],
                     .address = arguments[6]};
  } catch (const std::exception&) {  // not a number
    return std::nullopt;
  }
}

void record_facts(Recorder& record, const std::vector<json>& facts) {
  record.condition("transport", std::string("tcp"));
  record.condition("algorithm", facts.front().at("algorithm").get<std::string>());
  record.condition("gloo_library", facts.front().at("library").get<std::string>());
  for (const char* name : {"address", "interface", "congestion_control"}) {
    record.condition(name, fmt::format("{}", fmt::join(all_of_paths<std::string>(facts, name), " ")));
  }
  for (const char* name : {"mtu", "mss"}) {
    if (const auto values = all_of_paths<std::int64_t>(facts, name); !values.empty())
      record.condition(name, *values.begin());
  }
  if (const auto speeds = all_of_paths<double>(facts, "link_speed"); !speeds.empty())
    record.condition("link_speed", *speeds.begin());
  record.condition("segments_retransmitted", static_cast<std::int64_t>(total(facts, "retransmitted")));
}

std::optional<double> slowest_port(const std::vector<json>& entered) {
  std::optional<double> slowest;
  for (const auto& rank : entered) {
    const auto told = rank.find("link_speed");
    if (told == rank.end()) return std::nullopt;
    slowest = std::min(slowest.value_or(told->get<double>()), told->get<double>());
  }
  return slowest;
}

double retransmitted_share(const std::vector<json>& facts) {
  const std::uint64_t segments = total(facts, "segments");
  if (segments == 0) throw std::runtime_error("the kernel counted no segment where payload moved");
  return static_cast<double>(total(facts, "retransmitted")) / static_cast<double>(segments);
}

}  // namespace assay::gloo
