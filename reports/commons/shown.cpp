// shown: figures for people, and as limits with their source.
#include <fmt/format.h>

#include "probes/core/json_io.h"
#include "probes/core/scale.h"
#include "reports/commons/commons.h"

namespace assay::commons {
namespace {

using nlohmann::json;

constexpr double kShares[] = {0.05, 0.5, 0.95};

std::string values_text(const Values& values) {
  std::string text;
  for (const auto& [name, value] : values) text += fmt::format(" {}={}", name, to_json(value).dump());
  return text;
}

bool is_shown(const Group& group, const std::string& model) { return group.model.find(model) != std::string::npos; }

/// The percentile that 95 of 100 boards keep, and its name.
std::pair<double, const char*> limit_share(const Group& group) {
  return group.better == "lower" ? std::pair{0.95, "p95"} : std::pair{0.05, "p05"};
}

}  // namespace

std::string table(const SignedDocument& of, const std::string& model) {
  const Document& document = of.document;
  std::string text =
      fmt::format("{} of {}, SHA-256 {}\n", document.kind == FileKind::commons ? "commons" : "contribution of one site",
                  document.made_on, of.sha256);
  if (document.withheld > 0)
    text += fmt::format("{} groups are withheld: fewer than {} boards or {} contributors\n", document.withheld,
                        kLeastBoards, kLeastContributors);
  for (const auto& [group, figures] : document.figures) {
    if (!is_shown(group, model)) continue;
    text +=
        fmt::format("{}: {} {} {} revision {}{}{}{}\n    {} boards of {} contributors:", group.model, group.statistic,
                    group.probe, group.metric, group.revision, values_text(group.at), values_text(group.parameters),
                    values_text(group.conditions), figures.boards.boards(), figures.contributors);
    for (const double share : kShares)
      text += fmt::format(" p{:02.0f} {}", 100 * share, for_people(figures.boards.quantile(share), group.unit));
    text += fmt::format(", {} is better\n", group.better);
  }
  return text;
}

std::string json_of(const SignedDocument& of, const std::string& model) {
  json groups = json::array();
  for (const auto& [group, figures] : of.document.figures) {
    if (!is_shown(group, model)) continue;
    json one = {{"model", group.model},
                {"probe", group.probe},
                {"revision", group.revision},
                {"metric", group.metric},
                {"unit", group.unit},
                {"statistic", group.statistic},
                {"at", to_json(group.at)},
                {"parameters", to_json(group.parameters)},
                {"conditions", to_json(group.conditions)},
                {"boards", figures.boards.boards()},
                {"contributors", figures.contributors}};
    for (const double share : kShares) one[fmt::format("p{:02.0f}", 100 * share)] = figures.boards.quantile(share);
    const auto [share, name] = limit_share(group);
    one["limit"] = {{group.better == "lower" ? "at_most" : "at_least", figures.boards.quantile(share)}};
    one["source"] = fmt::format("{} of {} accepted boards of {} contributors; commons of {}, SHA-256 {}", name,
                                figures.boards.boards(), figures.contributors, of.document.made_on, of.sha256);
    groups.push_back(std::move(one));
  }
  return json{{"schema", "assay.commons-shown/1"}, {"groups", std::move(groups)}}.dump(2) + "\n";
}

}  // namespace assay::commons
