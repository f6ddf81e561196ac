// statement: the parts of a joint dossier and their outcome, as a document.
#include "reports/joint/statement.h"

#include <fmt/format.h>

#include "probes/core/es6_number.h"
#include "profiles/schema.h"
#include "reports/dossier/canonical_json.h"
#include "reports/dossier/predicate_types.h"
#include "reports/dossier/sign.h"

namespace assay::joint {
namespace {

using nlohmann::json;

std::string folder_of(const Part& part) { return fmt::format("{}/{}", kPartsFolder, part.name); }

json json_of(const Part& part) {
  const auto& contents = part.verified.contents;
  return {{"name", part.name},
          {"site", contents.verdict.site},
          {"siteSha256", contents.site_sha256},
          {"run", contents.verdict.run_id},
          {"planSha256", contents.verdict.plan_sha256},
          {"verdictSha256", contents.verdict_sha256},
          {"statementSha256", part.statement_sha256},
          {"overall", to_string(contents.verdict.overall)},
          {"began", contents.began},
          {"ended", contents.ended}};
}

json nodes_of(const Part& part) {
  json nodes = json::array();
  for (const auto& name : part.verified.contents.nodes) {
    json node = {{"part", part.name}, {"name", name}, {"serials", json::array()}};
    if (const auto shown = part.serials.find(name); shown != part.serials.end()) node["serials"] = json(shown->second);
    nodes.push_back(std::move(node));
  }
  return nodes;
}

json json_of(const judge::Result& result) {
  json cell = {{"requirement", result.requirement},
               {"subject", {{"kind", result.subject.kind}, {"id", result.subject.id}}},
               {"node", result.node},
               {"required", result.required},
               {"verdict", to_string(result.outcome)},
               {"reason", result.reason},
               {"unit", result.unit}};
  for (const auto& [name, value] : {std::pair("value", result.value), std::pair("reference", result.reference)}) {
    if (value) cell[name] = es6_number(*value);
  }
  return cell;
}

}  // namespace

json statement_of(const Joined& joined) {
  json subjects = json::array();
  json parts = json::array();
  json nodes = json::array();
  for (const auto& part : joined.parts) {
    subjects.push_back({{"name", fmt::format("{}/{}: payload", folder_of(part), dossier::kStatementFile)},
                        {"digest", {{"sha256", part.statement_sha256}}}});
    parts.push_back(json_of(part));
    for (auto& node : nodes_of(part)) nodes.push_back(std::move(node));
  }
  json fleet = json::array();
  for (const auto& result : joined.fleet) fleet.push_back(json_of(result));
  const auto& first = joined.parts.front().verified.contents;
  return {
      {"_type", dossier::kStatementType},
      {"subject", std::move(subjects)},
      {"predicateType", dossier::kJointType},
      {"predicate",
       {{"kind", word_of(joined.kind)},
        {"targets",
         {{"profile", first.verdict.profile}, {"revision", first.profile_revision}, {"sha256", first.targets_sha256}}},
        {"parts", std::move(parts)},
        {"nodes", std::move(nodes)},
        {"fleet", std::move(fleet)},
        {"verdict", {{"overall", to_string(joined.overall)}, {"reason", joined.reason}}},
        {"issuedAt", joined.claims.issued_at},
        {"signatory",
         {{"role", joined.claims.role},
          {"name", joined.claims.name},
          {"organisation", joined.claims.organisation},
          {"keyFingerprint", joined.claims.key_fingerprint}}},
        {"tool", std::string("assay-report ") + ASSAY_VERSION}}}};
}

std::expected<ReadJoint, InputError> read_joint_statement(std::string_view payload, const std::string& where) {
  auto document =
      dossier::read_canonical_json(payload, where, {.max_bytes = kLargestJoint, .max_values = kMostValuesOfRun});
  if (!document) return std::unexpected(document.error());
  dossier::rename_former_type(*document);
  if (!document->is_object() || document->value("predicateType", json()) != dossier::kJointType) {
    return std::unexpected(InputError{where + ": predicateType", fmt::format("is not '{}'", dossier::kJointType),
                                      "`assay merge` and `assay expand` write joint statements"});
  }
  if (auto problem = profiles::check_schema(*document, "joint.schema", where)) return std::unexpected(*problem);
  const json& predicate = document->at("predicate");
  const json& signatory = predicate.at("signatory");
  ReadJoint read{.document = *document,
                 .kind = *from_word<Kind>(predicate.at("kind").get<std::string>()),
                 .claims = {.issued_at = predicate.at("issuedAt"),
                            .role = signatory.at("role"),
                            .name = signatory.at("name"),
                            .organisation = signatory.at("organisation"),
                            .key_fingerprint = signatory.at("keyFingerprint")}};
  return read;
}

}  // namespace assay::joint
