// chart_fixture: results that were never measured, for tests of charts.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "orchestrator/judge/verdict.h"
#include "orchestrator/plan/plan.h"

namespace assay::fixture {

/// Whether `part` stands in `text`.
inline bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

/// A result against "at least 100 B/s" with a guard band of 1, on the step of the same name unless another is given.
inline judge::Result judged(const std::string& subject, judge::Outcome outcome, std::optional<double> value,
                            const std::string& step = "") {
  judge::Result result;
  result.requirement = "r";
  result.subject = {.kind = "pair", .id = subject};
  result.node = subject.substr(0, subject.find('+'));
  result.step = step.empty() ? subject : step;
  result.outcome = outcome;
  result.unit = "B/s";
  result.value = value;
  if (value) {
    result.limit_low = 100;
    result.acceptance_low = 101;
  }
  return result;
}

/// "n007": the name of a node by its number.
inline std::string name(std::size_t node) { return fmt::format("n{:03}", node); }

/// Nodes in a row, `per_leaf` of them on each leaf; 0: no leaves.
inline site::Site site_of(std::size_t nodes, std::size_t per_leaf) {
  site::Site site{.name = "hall", .known_hosts = "", .nodes = {}};
  for (std::size_t i = 0; i < nodes; ++i) {
    site::Node node;
    node.name = name(i);
    if (per_leaf > 0) node.leaf = fmt::format("leaf-{}", i / per_leaf);
    site.nodes.push_back(node);
  }
  return site;
}

/// At least 100 B/s of the median, of each pair.
inline plan::Requirement demanded(const std::string& id, const std::string& metric) {
  plan::Requirement requirement;
  requirement.id = id;
  requirement.probe = "probe";
  requirement.metric = metric;
  requirement.scope = plan::JudgedScope::pair;
  requirement.statistic = plan::Statistic::median;
  requirement.limit.at_least = 100;
  requirement.limit.unit = "B/s";
  return requirement;
}

}  // namespace assay::fixture
