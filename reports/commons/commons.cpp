// commons: both files are one in-toto statement; its subject is the digest of its own figures, which come from the
// results of a dossier by the record of each.
#include "reports/commons/commons.h"

#include <algorithm>

#include <fmt/format.h>

#include "orchestrator/files/digest.h"
#include "orchestrator/judge/cells/part_identities.h"
#include "orchestrator/judge/evidence/evidence.h"
#include "probes/core/utc_time.h"
#include "profiles/schema.h"
#include "reports/dossier/canonical_json.h"
#include "reports/dossier/dsse.h"
#include "reports/dossier/predicate_types.h"
#include "reports/dossier/sign.h"
#include "reports/dossier/statement.h"

namespace assay::commons {
namespace {

using nlohmann::json;

json group_json(const Group& group, const Figures& figures) {
  json counts = json::array();
  for (const auto& [step, boards] : figures.boards.counts()) counts.push_back({step, boards});
  return {{"model", group.model},
          {"probe", group.probe},
          {"revision", group.revision},
          {"metric", group.metric},
          {"unit", group.unit},
          {"better", group.better},
          {"statistic", group.statistic},
          {"at", to_json(group.at)},
          {"parameters", to_json(group.parameters)},
          {"conditions", to_json(group.conditions)},
          {"contributors", figures.contributors},
          {"counts", std::move(counts)}};
}

std::string_view type_of(FileKind kind) {
  return kind == FileKind::commons ? dossier::kCommonsType : dossier::kContributionType;
}

std::expected<json, InputError> statement_of(const Document& document) {
  json groups = json::array();
  for (const auto& [group, figures] : document.figures) groups.push_back(group_json(group, figures));
  const auto bytes = dossier::canonical_json(groups);
  if (!bytes) return std::unexpected(bytes.error());
  json predicate = {{"madeOn", document.made_on},
                    {"groups", std::move(groups)},
                    {"withheld", document.withheld},
                    {"tool", std::string("assay-report ") + ASSAY_VERSION}};
  if (!document.boards.empty()) predicate["boards"] = document.boards;
  return json{{"_type", dossier::kStatementType},
              {"subject", json::array({{{"name", "groups"}, {"digest", {{"sha256", files::sha256(*bytes)}}}}})},
              {"predicateType", type_of(document.kind)},
              {"predicate", std::move(predicate)}};
}

Group group_from(const json& one) {
  return {.model = one.at("model"),
          .probe = one.at("probe"),
          .revision = one.at("revision"),
          .metric = one.at("metric"),
          .unit = one.at("unit"),
          .better = one.at("better"),
          .statistic = one.at("statistic"),
          .at = values_from(one.at("at")).value(),
          .parameters = values_from(one.at("parameters")).value(),
          .conditions = values_from(one.at("conditions")).value()};
}

/// The error of a document that could not have been written.
std::optional<InputError> check(const Document& document, const json& groups, const std::string& where) {
  const auto no = [&](const char* what) {
    return InputError{where, what, "this was changed after `assay commons` wrote it"};
  };
  if (groups.size() != document.figures.size()) return no("has a group twice");
  if (document.kind == FileKind::commons && !document.boards.empty()) return no("is commons, and lists boards");
  for (const auto& [group, figures] : document.figures) {
    if (document.kind == FileKind::contribution && figures.contributors != 1)
      return no("is a contribution, and says it is of several");
    if (document.kind == FileKind::commons &&
        (figures.contributors < kLeastContributors || figures.boards.boards() < kLeastBoards))
      return no("has a group of too few boards or contributors");
    if (figures.boards.boards() < figures.contributors) return no("has fewer boards than contributors");
  }
  return std::nullopt;
}

std::expected<Document, InputError> read_payload(const std::string& payload, const std::string& where) {
  const auto found = dossier::read_canonical_json(payload, where, {.max_bytes = kLargestFile});
  if (!found) return std::unexpected(found.error());
  if (auto problem = profiles::check_schema(*found, "commons.schema", where)) return std::unexpected(*problem);
  const json& predicate = found->at("predicate");
  Document document{
      .kind = found->at("predicateType") == dossier::kCommonsType ? FileKind::commons : FileKind::contribution,
      .made_on = predicate.at("madeOn"),
      .withheld = predicate.at("withheld"),
      .boards = predicate.value("boards", std::set<std::string>())};
  for (const auto& one : predicate.at("groups")) {
    Figures& figures = document.figures[group_from(one)];
    figures.contributors = one.at("contributors");
    for (const auto& count : one.at("counts")) figures.boards.add(count.at(0), count.at(1));
  }
  if (auto problem = check(document, predicate.at("groups"), where)) return std::unexpected(*problem);
  auto again = statement_of(document);
  if (!again) return std::unexpected(again.error());
  again->at("predicate")["tool"] = predicate.at("tool");  // of any version
  if (*again != *found)
    return std::unexpected(InputError{where, "is not spelled as its figures are", "it was changed by hand"});
  if (!dossier::is_tool(predicate.at("tool").get<std::string>()))
    return std::unexpected(InputError{where + ": predicate.tool", "is no version of assay-report", ""});
  return document;
}

/// Why a figure is in no contribution.
struct LeftOut {
  const char* reason;
};

/// Parameters that are not the defaults. Numbers and words of a closed list name nothing; other texts may.
std::expected<Values, LeftOut> parameters_of(const plan::Step& step, const Description& probe) {
  const auto defaults = probe.resolve({}, false);
  if (!defaults) return std::unexpected(LeftOut{"its probe's defaults cannot be read"});
  Values given;
  for (const auto& own : probe.parameters) {
    const auto value = step.parameters.find(own.name);
    if (value == step.parameters.end() || value->second == defaults->at(own.name)) continue;
    if (std::holds_alternative<std::string>(value->second) && own.choices.empty())
      return std::unexpected(LeftOut{"a text among its parameters could name something"});
    given.insert(*value);
  }
  return given;
}

/// The model of the board that `result` is of; empty if the record has none.
std::string model_of(const judge::Result& result, const Record& record) {
  const auto* const name = result.subject.kind == "gpu" ? "device_name" : "cpu_model";
  if (result.subject.kind == "node") {
    const auto found = record.start.host.find(name);
    const auto* text = found == record.start.host.end() ? nullptr : std::get_if<std::string>(&found->second);
    return text == nullptr ? "" : *text;
  }
  const auto seen = conditions_of(record, name, result.subject);
  const auto* text = seen.empty() ? nullptr : std::get_if<std::string>(&seen.front()->value);
  return text == nullptr ? "" : *text;
}

/// A run whose results are looked at.
class Reading {
 public:
  explicit Reading(const dossier::OpenedRun& run)
      : run_(run.content.run),
        evidence_(judge::evidence_in(fmt::format("{}/{}", run.path, dossier::kEvidenceFolder))) {}

  std::expected<Group, LeftOut> group_of(const judge::Result& result) const {
    const auto* requirement = run_.plan.requirement(result.requirement);
    const auto* step = run_.plan.step(result.step);
    if (requirement == nullptr || step == nullptr || requirement->rise || requirement->contrast)
      return std::unexpected(LeftOut{"it is of several figures"});
    if (result.subject.kind != "node" && result.subject.kind != "gpu")
      return std::unexpected(LeftOut{"it is of no node and no accelerator"});
    const auto& probe = run_.plan.probes.at(step->probe).description;
    const auto* metric = probe.metric(requirement->metric);
    if (metric == nullptr || metric->kind != MetricKind::figure || metric->better == "neither")
      return std::unexpected(LeftOut{"it is no rate, time or size of which one side is better"});
    if (*result.value <= 0) return std::unexpected(LeftOut{"it is not above 0"});
    auto parameters = parameters_of(*step, probe);
    if (!parameters) return std::unexpected(parameters.error());
    const auto record = record_of(*step);
    if (!record) return std::unexpected(LeftOut{"its record cannot be read"});
    Group group{.model = model_of(result, *record),
                .probe = step->probe,
                .revision = probe.revision,
                .metric = requirement->metric,
                .unit = result.unit,
                .better = metric->better,
                .statistic = std::string(word_of(requirement->statistic)),
                .at = requirement->at,
                .parameters = std::move(*parameters)};
    if (group.model.empty()) return std::unexpected(LeftOut{"its record has no model"});
    for (const char* name : kGroupConditions) {
      const auto seen = conditions_of(*record, name, result.subject);
      if (!seen.empty()) group.conditions.emplace(name, seen.front()->value);
    }
    return group;
  }

 private:
  /// Of the first attempt of a step that completed.
  std::expected<Record, InputError> record_of(const plan::Step& step) const {
    for (const auto& attempt : run_.journal.attempts.of(step.id)) {
      auto record = judge::record_of(run_.plan, step, attempt, evidence_);
      if (record && record->end.status == Status::complete) return record;
    }
    return std::unexpected(InputError{step.id, "has no complete record", ""});
  }

  const judge::Run& run_;
  judge::EvidenceReader evidence_;
};

/// The board that `result` is of: its UUID or serial number, which it has at any site, else its place. A guest has its
/// hypervisor's serial number.
std::string board_of(const dossier::OpenedRun& run, const judge::Result& result) {
  const std::string place = fmt::format("{}/{}/{}", run.content.run.plan.site.name, result.node, result.subject.id);
  if (result.subject.kind == "gpu") return judge::is_gpu_uuid(result.subject.id) ? result.subject.id : place;
  const auto serials = run.serials.find(result.node);
  const auto facts = run.content.run.journal.node_facts.find(result.node);
  const bool own = serials != run.serials.end() && serials->second.size() == 1 &&
                   judge::is_unique(*serials->second.begin()) && facts != run.content.run.journal.node_facts.end() &&
                   facts->second.value("hypervisor", "") == "none";
  return own ? *serials->second.begin() : place;
}

/// The same board has the same digest at every site. A UUID cannot be guessed, as a serial number could.
std::string digest_of(const std::string& uuid) {
  constexpr std::size_t kDigits = 32;
  return files::sha256("assay commons: " + uuid).substr(0, kDigits);
}

std::optional<InputError> check(const dossier::OpenedRun& run) {
  const auto no = [&](const std::string& what, const char* hint) { return InputError{run.path, what, hint}; };
  if (run.standing != "verified")
    return no("is " + run.standing, "figures are of signed dossiers; give the signer's public key with --with-key");
  if (run.content.verdict.overall != judge::Overall::accepted)
    return no("is not accepted", "limits may be taken from accepted boards only");
  if (run.content.run.plan.quick) return no("is a rehearsal", "quick runs are not the figures of a board");
  return std::nullopt;
}

}  // namespace

std::string day_of(dossier::Moment now) { return utc_text(now).substr(0, 10); }

std::expected<std::string, InputError> signed_text(const Document& document, const dossier::Signer& signer) {
  const auto statement = statement_of(document);
  if (!statement) return std::unexpected(statement.error());
  return dossier::signed_text(*statement, "figures", signer, kLargestFile, read_payload);
}

std::expected<SignedDocument, InputError> read_signed(std::string_view text, const std::string& where,
                                                      const std::vector<dossier::PublicKey>& keys) {
  const auto envelope = dossier::read_envelope(text, where);
  if (!envelope) return std::unexpected(envelope.error());
  const auto signer =
      std::ranges::find_if(keys, [&](const auto& key) { return dossier::is_signed_by(*envelope, key); });
  if (signer == keys.end())
    return std::unexpected(InputError{where, "has no valid signature of any key that was given",
                                      "give the signer's public key with --with-key"});
  auto document = read_payload(envelope->payload, where);
  if (!document) return std::unexpected(document.error());
  return SignedDocument{.document = std::move(*document), .key = signer->fingerprint(), .sha256 = files::sha256(text)};
}

std::expected<Document, InputError> merged(const std::vector<SignedDocument>& all,
                                           const std::vector<std::string>& names, dossier::Moment now) {
  Document sum{.kind = FileKind::commons, .made_on = day_of(now)};
  std::map<std::string, std::string> file_of;   // by key
  std::map<std::string, std::string> board_in;  // by digest
  std::map<Group, std::set<std::string>> contributors;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto& [document, key, sha256] = all[i];
    if (document.kind == FileKind::commons)
      return std::unexpected(InputError{names[i], "is commons, whose contributions would count twice",
                                        "merge the contributions themselves, all of them"});
    if (const auto [other, added] = file_of.try_emplace(key, names[i]); !added)
      return std::unexpected(InputError{names[i], "is of the signer of " + other->second,
                                        "one contribution of a site has all its boards once; give the newest"});
    for (const auto& board : document.boards) {
      if (const auto [other, added] = board_in.try_emplace(board, names[i]); !added)
        return std::unexpected(InputError{names[i], fmt::format("has a board that {} has, {}", other->second, board),
                                          "a board counts once: leave one of the two contributions out"});
    }
    for (const auto& [group, figures] : document.figures) {
      sum.figures[group].boards.add(figures.boards);
      contributors[group].insert(key);
    }
  }
  for (auto& [group, figures] : sum.figures) figures.contributors = contributors.at(group).size();
  sum.withheld = std::erase_if(sum.figures, [](const auto& one) {
    return one.second.contributors < kLeastContributors || one.second.boards.boards() < kLeastBoards;
  });
  return sum;
}

std::expected<Contribution, InputError> contribution_of(const std::vector<dossier::OpenedRun>& runs) {
  Contribution all;
  std::map<Group, std::map<std::string, double>> by_board;
  for (const auto& run : runs) {
    if (auto problem = check(run)) return std::unexpected(*problem);
    const Reading reading(run);
    for (const auto& result : run.content.verdict.results) {
      if (result.outcome != judge::Outcome::pass || !result.value) continue;
      auto group = reading.group_of(result);
      if (!group) {
        ++all.left_out[group.error().reason];
        continue;
      }
      by_board[std::move(*group)].insert_or_assign(board_of(run, result), *result.value);
    }
  }
  for (const auto& [group, boards] : by_board) {
    Sketch& sketch = all.figures[group].boards;
    for (const auto& [board, figure] : boards) {
      sketch.add(figure);
      if (judge::is_gpu_uuid(board)) all.boards.insert(digest_of(board));
    }
  }
  return all;
}

}  // namespace assay::commons
