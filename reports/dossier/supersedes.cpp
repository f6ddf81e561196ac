// supersedes: the older statement is known by the digest of its signed bytes.
#include "reports/dossier/supersedes.h"

#include <fmt/format.h>

#include "orchestrator/files/digest.h"
#include "reports/dossier/dsse.h"
#include "reports/dossier/sign.h"
#include "reports/dossier/statement.h"
#include "reports/evidence/tree.h"

namespace assay::dossier {

std::expected<Older, InputError> read_older(const std::string& directory) {
  const std::string where = fmt::format("{}/{}", directory, kStatementFile);
  const auto text = evidence::read_plain_file(directory, kStatementFile, kLargestEnvelope);
  if (!text) return std::unexpected(InputError{where, text.error().what, "name the folder of the older dossier"});
  auto envelope = read_envelope(*text, where);
  if (!envelope) return std::unexpected(envelope.error());
  if (envelope->payload_type != kPayloadType)
    return std::unexpected(InputError{where + ": payloadType", fmt::format("is not '{}'", kPayloadType), ""});
  return Older{.where = where, .payload = std::move(envelope->payload)};
}

std::expected<OlderWords, InputError> words_of_older(const Older& older) {
  const auto statement = read_statement(older.payload, older.where + ": payload");
  if (!statement) return std::unexpected(statement.error());
  const auto& predicate = statement->document.at("predicate");
  return OlderWords{.superseded = {.statement_sha256 = files::sha256(older.payload),
                                   .run_id = predicate.at("run").at("id"),
                                   .overall = predicate.at("verdict").at("overall"),
                                   .issued_at = statement->claims.issued_at},
                    .maker = statement->claims.signatories.front().key_fingerprint};
}

std::expected<std::string, InputError> check_superseded(const std::optional<Superseded>& claimed, const Older& older) {
  const std::string digest = files::sha256(older.payload);
  if (!claimed) {
    return std::unexpected(InputError{kStatementFile, fmt::format("supersedes nothing, expected {}", digest),
                                      "it is another test, not a newer version of that one"});
  }
  if (claimed->statement_sha256 != digest) {
    return std::unexpected(InputError{
        kStatementFile, fmt::format("supersedes the statement {}, expected {}", claimed->statement_sha256, digest),
        "it is a newer version of another dossier"});
  }
  auto words = words_of_older(older);
  if (!words) return std::unexpected(words.error());
  Superseded expected = words->superseded;
  expected.reason = claimed->reason;
  if (*claimed == expected) return std::move(words->maker);
  return std::unexpected(InputError{
      kStatementFile,
      fmt::format("says of the older statement: run {}, {}, issued {}; it is: run {}, {}, issued {}", claimed->run_id,
                  claimed->overall, claimed->issued_at, expected.run_id, expected.overall, expected.issued_at),
      "the newer statement says of the older one what is not so"});
}

}  // namespace assay::dossier
