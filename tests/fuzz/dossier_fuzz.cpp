// The readers of a dossier on hostile bytes: what they take has one spelling, and no path leaves the folder.
#include <cstdint>
#include <cstdlib>

#include "orchestrator/judge/evidence/gpu_answer.h"
#include "orchestrator/judge/evidence/tpm_answer.h"
#include "reports/dossier/canonical_json.h"
#include "reports/dossier/dsse.h"
#include "reports/dossier/keys.h"
#include "reports/dossier/ssh_key.h"
#include "reports/dossier/statement.h"
#include "reports/dossier/trust.h"
#include "reports/evidence/manifest.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace assay;
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  if (const auto envelope = dossier::read_envelope(text, "fuzz")) {
    const auto again = dossier::read_envelope(dossier::envelope_text(*envelope), "fuzz");
    if (!again || again->payload != envelope->payload || again->signatures != envelope->signatures) std::abort();
    const auto statement = dossier::read_statement(envelope->payload, "fuzz");
    if (const auto claims = dossier::read_claims(envelope->payload, "fuzz"); statement && !claims) std::abort();
  }
  if (const auto document = dossier::read_canonical_json(text, "fuzz");
      document && dossier::canonical_json(*document).value_or("") != text)
    std::abort();
  if (const auto manifest = evidence::read_manifest(text, "fuzz")) {
    if (evidence::manifest_text(*manifest) != text) std::abort();
    for (const auto& [path, digest] : *manifest) {
      if (path.starts_with('/') || path.starts_with('-') || ("/" + path + "/").find("/../") != std::string::npos)
        std::abort();
    }
  }
  if (const auto key = dossier::public_key_from_pem(text, "fuzz")) {
    if (const auto again = dossier::public_key_from_pem(key->text(), "fuzz"); !again || *again != *key) std::abort();
    if (key->verifies("message", text)) std::abort();  // no seed holds a signature of this message
  }
  if (const auto secret = dossier::ssh_private_seed(text, "fuzz");
      secret && (secret->seed.size() != 32 || secret->public_raw.size() != 32))
    std::abort();
  if (const auto key = judge::tpm_key(text)) {
    if (key->point.empty() == key->modulus.empty() || judge::is_signed_by(*key, "message", text)) std::abort();
  }
  if (const auto quote = judge::tpm_quote(text); quote && quote->digest.size() != 32) std::abort();
  if (const auto report = judge::gpu_report(text)) {
    if (report->nonce.size() != 32 || report->signature.size() != 96 || report->measured.empty()) std::abort();
    if (report->signed_bytes + report->signature != text || judge::is_signed_by(text, *report)) std::abort();
  }
  [[maybe_unused]] const auto key_of_chain = judge::identity_key(text);  // must only return
  const judge::TpmKey no_point{.attributes = 0,
                               .point = std::string("\x04") + std::string(64, 'x'),
                               .modulus = "",
                               .stores = false,
                               .sha256 = ""};
  if (judge::is_signed_by(no_point, "message", text)) std::abort();  // that point is not on the curve
  const auto no_key = [](const std::string&) { return std::expected<std::string, InputError>(); };
  if (const auto policy = dossier::read_trust_policy(text, "fuzz", no_key)) {
    if (policy->require.empty() || policy->parties.empty() || policy->from >= policy->until) std::abort();
    for (const auto& party : policy->parties) {
      if (party.threshold < 1 || party.threshold > party.signers.size()) std::abort();
    }
  }
  return 0;
}
