// repeats_shown: repeats for people and for programs.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "probes/core/json_io.h"
#include "probes/core/scale.h"
#include "probes/core/text.h"
#include "reports/compare/shown.h"
#include "reports/spot_check/repeat.h"

namespace assay::spot_check {
namespace {

using nlohmann::ordered_json;

std::string cell_line(const RepeatedRequirement& requirement, const RepeatedCell& cell) {
  const auto& dossier = *cell.dossier;
  std::string line = fmt::format("  {} {}: ", dossier.subject.kind, harmless(dossier.subject.id));
  if (!cell.open.empty()) return line + fmt::format("open: {}\n", harmless(cell.open));
  line += fmt::format("{} in {} attempts, {} in {}", for_people(*dossier.value, requirement.unit), dossier.each.size(),
                      for_people(*cell.repeat->value, requirement.unit), cell.repeat->each.size());
  if (cell.change) line += fmt::format(" ({:+.1f} %)", *cell.change * 100);
  return line + (cell.fails_now ? ", which FAILS its limit\n" : "\n");
}

std::string test_words(const compare::RankTest& test, compare::Finding finding, const std::string& unit) {
  if (!test.shift) return compare::finding_words(finding);
  return fmt::format("{}, change {} ({}), p {:.2g}", compare::finding_words(finding), compare::shift_words(test, unit),
                     compare::interval_words(test, unit), test.p);
}

ordered_json document_of(const compare::RankTest& test, compare::Finding finding) {
  ordered_json document = {{"finding", word_of(finding)}};
  if (!test.shift) return document;
  document["p"] = test.p;
  document["smallest_p"] = test.smallest_p;
  document[test.ratio ? "ratio" : "difference"] = *test.shift;
  if (test.interval) document["interval"] = {test.interval->low, test.interval->high};
  return document;
}

ordered_json document_of(const RepeatedCell& cell) {
  ordered_json document = {{"subject", {{"kind", cell.dossier->subject.kind}, {"id", cell.dossier->subject.id}}},
                           {"node", cell.dossier->node},
                           {"dossier", {{"outcome", to_string(cell.dossier->outcome)}, {"each", cell.dossier->each}}},
                           {"repeat", nullptr},
                           {"open", cell.open},
                           {"fails_now", cell.fails_now}};
  if (cell.repeat != nullptr)
    document["repeat"] = {{"outcome", to_string(cell.repeat->outcome)}, {"each", cell.repeat->each}};
  return document;
}

}  // namespace

std::string repeats_table(const Repeats& repeats) {
  std::string text;
  for (const auto& requirement : repeats.requirements) {
    text += fmt::format("{}: {}\n", harmless(requirement.id),
                        test_words(requirement.test, requirement.finding, requirement.unit));
    for (const auto& cell : requirement.cells) text += cell_line(requirement, cell);
  }
  text += fmt::format("all cells together, more is better: {}\n",
                      test_words(repeats.together, repeats.together_finding, "1"));
  const auto named = [&](const char* what, const std::vector<std::string>& nodes) {
    if (!nodes.empty()) text += harmless(fmt::format("{}: {}", what, fmt::join(nodes, ", "))) + "\n";
  };
  named("booted since the dossier", repeats.booted);
  named("without a serial number in one of the runs", repeats.unproven);
  return text + fmt::format("{}: {} cells drawn. {}\n", word_of(repeats.repetition), repeats.drawn, repeats.reason);
}

std::string repeats_json(const Repeats& repeats, const Challenge& challenge) {
  ordered_json parties = ordered_json::array();
  for (const auto& one : challenge.parties)
    parties.push_back({{"role", one.commitment.role},
                       {"party", one.party},
                       {"signer", one.signer},
                       {"key", one.commitment.key_fingerprint},
                       {"committed_at", one.commitment.issued_at}});
  ordered_json requirements = ordered_json::array();
  for (const auto& requirement : repeats.requirements) {
    ordered_json cells = ordered_json::array();
    for (const auto& cell : requirement.cells) cells.push_back(document_of(cell));
    requirements.push_back({{"requirement", requirement.id},
                            {"unit", requirement.unit},
                            {"test", document_of(requirement.test, requirement.finding)},
                            {"cells", std::move(cells)}});
  }
  const ordered_json document = {{"schema", "assay.draw-check/1"},
                                 {"outcome", word_of(repeats.repetition)},
                                 {"reason", repeats.reason},
                                 {"seed", challenge.seed},
                                 {"parties", std::move(parties)},
                                 {"drawn", repeats.drawn},
                                 {"booted", repeats.booted},
                                 {"no_serial", repeats.unproven},
                                 {"threshold", repeats.threshold},
                                 {"together_threshold", repeats.together_threshold},
                                 {"together", document_of(repeats.together, repeats.together_finding)},
                                 {"requirements", std::move(requirements)}};
  return document.dump(1, ' ', true, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace assay::spot_check
