// simulation: reads faults.json, and writes and reads the part of a plan that describes the simulation.
#include "orchestrator/plan/simulation.h"

#include <optional>
#include <set>

#include <fmt/format.h>

#include "orchestrator/plan/simulated_meters.h"
#include "profiles/schema.h"

namespace assay::plan {
namespace {

using nlohmann::json;

constexpr const char* kFaultsSchema = "assay.faults/1";

Faults faults_from(const json& document) {
  Faults faults;
  for (const auto& one : document.value("bad_nodes", json::array())) {
    faults.faults.push_back({.node = one.at("node"),
                             .other = "",
                             .metric = one.value("metric", ""),
                             .factor = one.at("factor"),
                             .probability = one.value("probability", 1.0)});
  }
  for (const auto& one : document.value("bad_links", json::array())) {
    faults.faults.push_back({.node = one.at("a"),
                             .other = one.at("b"),
                             .metric = one.value("metric", ""),
                             .factor = one.at("factor"),
                             .probability = one.value("probability", 1.0)});
  }
  faults.dead = document.value("dead", std::vector<std::string>());
  faults.spread = document.value("spread", std::map<std::string, double>());
  const json healthy = document.value("healthy", json::object());
  faults.healthy = {.margin = healthy.value("margin", Healthy{}.margin),
                    .spread = healthy.value("spread", Healthy{}.spread),
                    .run_to_run = healthy.value("run_to_run", Healthy{}.run_to_run)};
  take_meters(document, faults);
  return faults;
}

json to_json(const Faults& faults) {
  json nodes = json::array();
  json links = json::array();
  for (const auto& one : faults.faults) {
    const json common = {{"metric", one.metric}, {"factor", one.factor}, {"probability", one.probability}};
    json& list = one.other.empty() ? nodes : links;
    list.push_back(one.other.empty() ? json{{"node", one.node}} : json{{"a", one.node}, {"b", one.other}});
    list.back().update(common);
  }
  json document = {{"schema", kFaultsSchema}, {"bad_nodes", std::move(nodes)}, {"bad_links", std::move(links)},
                   {"dead", faults.dead},     {"spread", faults.spread},       {"healthy", to_json(faults.healthy)}};
  put_meters(faults, document);
  return document;
}

}  // namespace

std::expected<Faults, InputError> read_faults(std::string_view text, const std::string& where) {
  const auto document = parse_json(text, where);
  if (!document) return std::unexpected(document.error());
  if (auto problem = profiles::check_schema(*document, "faults.schema", where)) return std::unexpected(*problem);
  return faults_from(*document);
}

std::optional<InputError> check_faults(const Faults& faults, const site::Site& site, const std::string& where) {
  std::vector<std::string> names;
  for (const auto& node : site.nodes) names.push_back(node.name);
  const std::set<std::string_view> known(names.begin(), names.end());
  const auto check = [&](const std::string& name) -> std::optional<InputError> {
    if (name.empty() || known.contains(name)) return std::nullopt;
    return InputError{where, fmt::format("there is no node '{}'", name),
                      fmt::format("the simulated nodes are {} to {}", names.front(), names.back())};
  };
  for (const auto& one : faults.faults) {
    if (auto problem = check(one.node)) return problem;
    if (auto problem = check(one.other)) return problem;
    if (one.node == one.other)
      return InputError{where, fmt::format("a link leads from '{}' to itself", one.node), "name two nodes"};
  }
  for (const auto& name : faults.dead) {
    if (auto problem = check(name)) return problem;
  }
  return check_meters(faults, site, where);
}

json to_json(const Simulation& simulation) {
  return {{"seed", simulation.seed}, {"faults", to_json(simulation.faults)}};
}

json to_json(const Healthy& healthy) {
  return {{"margin", healthy.margin}, {"spread", healthy.spread}, {"run_to_run", healthy.run_to_run}};
}

std::expected<Simulation, InputError> simulation_from(const json& object, const std::string& where) {
  try {
    auto faults = read_faults(object.at("faults").dump(), where + ".faults");
    if (!faults) return std::unexpected(faults.error());
    return Simulation{.seed = object.at("seed"), .faults = std::move(*faults)};
  } catch (const json::exception& error) {
    return std::unexpected(
        InputError{where, error.what(), "it is written by `assay simulate`; simulate again instead of editing it"});
  }
}

}  // namespace assay::plan
