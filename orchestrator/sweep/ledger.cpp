// ledger: one JSON line a sweep.
#include "orchestrator/sweep/ledger.h"

#include <algorithm>
#include <map>
#include <ranges>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "orchestrator/files/line_log.h"
#include "probes/core/json_io.h"
#include "probes/core/text.h"

namespace assay::sweep {
namespace {

using nlohmann::json;

constexpr const char* kLedgerSchema = "assay.visits/1";
constexpr const char* kLedgerHint = "the file is written by `assay sweep` alone: move it away and begin anew";
constexpr int kLongestAge = 30;  // nights; beyond that a probe does not gain urgency
static_assert(kWholeNights >= 2 * kLongestAge);

SweepEntry sweep_entry(const json& document) {
  StrictObject object(document, "", kLedgerHint);
  if (object.text("schema") != kLedgerSchema) object.refuse("schema", "is not assay.visits/1");
  SweepEntry entry;
  const auto night = drift::date_from(object.text("night"));
  if (!night) object.refuse("night", "is no date");
  entry.night = *night;
  entry.sweep = object.text("sweep");
  entry.requirements = object.texts("requirements");
  std::size_t number = 0;
  for (const auto& visit : object.list("visits"))
    entry.visits.push_back(visit_from(StrictObject(visit, fmt::format("visits[{}]", number++), kLedgerHint)));
  object.done();
  return entry;
}

std::size_t entered_visits(const Ledger& ledger) {
  std::size_t count = 0;
  for (const auto& sweep : ledger.sweeps) count += sweep.visits.size();
  return count;
}

std::size_t bytes_of(const std::vector<std::string>& lines) {
  std::size_t bytes = 0;
  for (const auto& line : lines) bytes += line.size() + 1;
  return bytes;
}

}  // namespace

std::string line_of(const SweepEntry& entry) {
  json visits = json::array();
  for (const auto& visit : entry.visits) visits.push_back(to_json(visit));
  return json{{"schema", kLedgerSchema},
              {"night", drift::date_text(entry.night)},
              {"sweep", entry.sweep},
              {"requirements", entry.requirements},
              {"visits", std::move(visits)}}
      .dump();
}

std::expected<Ledger, InputError> read_ledger(const std::vector<std::string>& lines, const std::string& where) {
  Ledger ledger;
  std::set<std::string> seen;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string here = fmt::format("{}: line {}", where, i + 1);
    const auto document = parse_json(lines[i], here);
    if (!document) return std::unexpected(document.error());
    auto entry = read_strictly(here, [&] { return sweep_entry(*document); });
    if (!entry) return std::unexpected(entry.error());
    if (seen.insert(entry->sweep).second) ledger.sweeps.push_back(std::move(*entry));
  }
  return ledger;
}

Ledger shortened(Ledger ledger) {
  if (ledger.sweeps.empty()) return ledger;
  const Night newest = std::ranges::max_element(ledger.sweeps, {}, &SweepEntry::night)->night;
  const Night last = newest - std::chrono::days(kWholeNights);
  // As due_nodes(): a measurement ends the misses before it in the file, and the latest night of them counts.
  std::map<std::string, Night> measured;  // by node: the latest of its measurements further down
  const auto decides = [&](const NodeVisit& visit, Night night) {
    const auto found = measured.find(visit.node);
    if (visit.state != drift::VisitState::measured) return found == measured.end();
    if (found != measured.end() && found->second >= night) return false;
    measured[visit.node] = night;
    return true;
  };
  for (auto& sweep : ledger.sweeps | std::views::reverse) {
    if (sweep.night > last) continue;
    std::vector<NodeVisit> kept;
    for (auto& visit : sweep.visits | std::views::reverse) {
      if (decides(visit, sweep.night)) kept.push_back(std::move(visit));
    }
    std::ranges::reverse(kept);
    sweep.visits = std::move(kept);
  }
  std::erase_if(ledger.sweeps, [&](const SweepEntry& sweep) { return sweep.night <= last && sweep.visits.empty(); });
  return ledger;
}

std::optional<InputError> enter(const std::string& path, const SweepEntry& entry, std::size_t most_bytes) {
  auto log = files::LineLog::open(path);
  if (!log) return log.error();
  auto ledger = read_ledger(log->lines(), path);
  if (!ledger) return ledger.error();
  if (std::ranges::find(ledger->sweeps, entry.sweep, &SweepEntry::sweep) != ledger->sweeps.end()) return std::nullopt;
  if (bytes_of(log->lines()) <= most_bytes) return log->append(line_of(entry));
  ledger->sweeps.push_back(entry);
  const std::size_t before = entered_visits(*ledger);
  const Ledger rest = shortened(std::move(*ledger));
  if (entered_visits(rest) == before) return log->append(line_of(entry));
  std::vector<std::string> lines;
  for (const auto& sweep : rest.sweeps) lines.push_back(line_of(sweep));
  return log->replace(lines);
}

std::vector<DueNode> due_nodes(const site::Site& site, const Ledger& ledger, Night tonight,
                               const std::vector<std::string>& watched, const std::vector<std::string>& flagged) {
  struct Known {
    std::optional<Night> last;
    int missed = 0;
  };
  std::map<std::string, Known> known;
  for (const auto& sweep : ledger.sweeps) {
    if (sweep.night > tonight) continue;
    for (const auto& visit : sweep.visits) {
      Known& one = known[visit.node];
      if (visit.state == drift::VisitState::measured) {
        one = {.last = std::max(one.last.value_or(sweep.night), sweep.night), .missed = 0};
      } else if (visit.state != drift::VisitState::not_due) {
        ++one.missed;
      }
    }
  }
  std::set<std::string> flagged_leaves;
  for (const auto& name : flagged) {
    const site::Node* node = site.node(name);
    if (node != nullptr && !node->leaf.empty()) flagged_leaves.insert(node->leaf);
  }
  std::vector<DueNode> nodes;
  for (const auto& node : site.nodes) {
    const Known& one = known[node.name];
    nodes.push_back(
        {.name = node.name,
         .leaf = node.leaf,
         .rack = node.rack,
         .last_visit = one.last,
         .missed = one.missed,
         .watched = std::ranges::find(watched, node.name) != watched.end(),
         .beside_flag = flagged_leaves.contains(node.leaf) && std::ranges::find(flagged, node.name) == flagged.end()});
  }
  return nodes;
}

std::vector<Candidate> aged(std::vector<Candidate> candidates, const Ledger& ledger, Night tonight) {
  for (auto& one : candidates) {
    int nights = kLongestAge;
    for (const auto& sweep : ledger.sweeps) {
      if (sweep.night > tonight ||
          std::ranges::find(sweep.requirements, one.requirements.front()) == sweep.requirements.end())
        continue;
      nights = std::min(nights, std::max(static_cast<int>((tonight - sweep.night).count()), 1));
    }
    one.nights_since = nights;
  }
  return candidates;
}

nlohmann::json to_json(const NodeVisit& visit) {
  return {{"node", visit.node}, {"state", visit.state}, {"reason", printable(visit.reason)}};
}

NodeVisit visit_from(StrictObject object) {
  NodeVisit visit{.node = object.text("node", is_node_name)};
  const auto state = from_word<drift::VisitState>(object.text("state"));
  if (!state) object.refuse("state", "is no state of a visit");
  visit.state = *state;
  visit.reason = object.text("reason");
  object.done();
  return visit;
}

}  // namespace assay::sweep
