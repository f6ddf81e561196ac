// supersedes: the older statement is known by the digest of its signed bytes.
#include "reports/dossier/supersedes.h"

#include <fmt/format.h>

#include "orchestrator/files/digest.h"
#include "reports/dossier/dsse.h"
#include "reports/dossier/sign.h"
#include "reports/dossier/statement.h"
#include "reports/evidence/tree.h"

namespace assay::dossier {

nlohmann::json document_of(const Superseded& superseded) {
  return {{"statementSha256", superseded.statement_sha256},
          {"run", superseded.run_id},
          {"overall", superseded.overall},
          {"issuedAt", superseded.issued_at},
          {"reason", superseded.reason}};
}

Superseded superseded_from(const nlohmann::json& document) {
  return {.statement_sha256 = document.at("statementSha256"),
          .run_id = document.at("run"),
          .overall = document.at("overall"),
          .issued_at = document.at("issuedAt"),
          .reason = document.at("reason")};
}

std::expected<Older, InputError> read_older(const std::string& directory) {
  const std::string where = fmt::format("{}/{}", directory, kStatementFile);
  const auto text = evidence::read_plain_file(directory, kStatementFile, kLargestEnvelope);
  if (!text) return std::unexpected(InputError{where, text.error().what, "name the folder of the older dossier"});
  const auto envelope = read_envelope(*text, where);
  if (!envelope) return std::unexpected(envelope.error());
  if (envelope->payload_type != kPayloadType)
    return std::unexpected(InputError{where + ": payloadType", fmt::format("is not '{}'", kPayloadType), ""});
  const auto statement = read_statement(envelope->payload, where + ": payload");
  if (!statement) return std::unexpected(statement.error());
  const auto& predicate = statement->document.at("predicate");
  return Older{.superseded = {.statement_sha256 = files::sha256(envelope->payload),
                              .run_id = predicate.at("run").at("id"),
                              .overall = predicate.at("verdict").at("overall"),
                              .issued_at = statement->claims.issued_at,
                              .reason = ""},
               .maker = statement->claims.signatories.front().key_fingerprint};
}

std::optional<InputError> check_superseded(const std::optional<Superseded>& claimed, const Older& older) {
  if (!claimed) {
    return InputError{kStatementFile, fmt::format("supersedes nothing, expected {}", older.superseded.statement_sha256),
                      "it is another test, not a newer version of that one"};
  }
  Superseded expected = older.superseded;
  expected.reason = claimed->reason;
  if (*claimed == expected) return std::nullopt;
  if (claimed->statement_sha256 != expected.statement_sha256) {
    return InputError{
        kStatementFile,
        fmt::format("supersedes the statement {}, expected {}", claimed->statement_sha256, expected.statement_sha256),
        "it is a newer version of another dossier"};
  }
  return InputError{
      kStatementFile,
      fmt::format("says of the older statement: run {}, {}, issued {}; it is: run {}, {}, issued {}", claimed->run_id,
                  claimed->overall, claimed->issued_at, expected.run_id, expected.overall, expected.issued_at),
      "the newer statement tells of the older one what is not so"};
}

}  // namespace assay::dossier
