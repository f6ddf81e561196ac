// tpm_answer: reads the structures of a TPM; OpenSSL checks the signature.
#include "orchestrator/judge/evidence/tpm_answer.h"

#include <algorithm>
#include <charconv>

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include "orchestrator/files/digest.h"
#include "orchestrator/files/openssl.h"
#include "probes/core/text.h"

namespace assay::judge {
namespace {

using files::Owned;

// TPM_ALG_ID, TPM_ECC_CURVE, TPM_GENERATED, TPM_ST and TPMA_OBJECT of Part 2, as in tss2_tpm2_types.h of tpm2-tss.
constexpr std::uint16_t kRsa = 0x0001, kAes = 0x0006, kSha256 = 0x000B, kNull = 0x0010, kEcdsa = 0x0018, kEcc = 0x0023,
                        kCfb = 0x0043, kP256 = 0x0003, kQuoted = 0x8018;
constexpr std::uint32_t kGenerated = 0xFF544347;
constexpr std::uint32_t kFixedTpm = 0x2, kFixedParent = 0x10, kOwnData = 0x20, kRestricted = 0x10000,
                        kDecrypt = 0x20000, kSign = 0x40000;
constexpr std::uint32_t kOfThisTpm = kFixedTpm | kFixedParent | kOwnData | kRestricted;
constexpr std::size_t kCoordinate = 32, kDigest = 32, kModulus = 256;

/// `value` in kCoordinate bytes; empty if it is longer.
std::string padded(std::string_view value) {
  return value.size() > kCoordinate ? "" : std::string(kCoordinate - value.size(), '\0') + std::string(value);
}

/// The text of the node's condition `name`; empty if there is none.
std::string text_of(const Record& record, std::string_view name) {
  const auto texts = texts_of(record, "node", name);
  return texts.empty() ? "" : texts.begin()->second;
}

std::string bytes_of(const Record& record, std::string_view name) {
  return from_hexadecimal(text_of(record, name)).value_or("");
}

/// The registers of "0,1,7", bit by bit.
std::uint32_t registers_in(std::string_view list) {
  std::uint32_t all = 0;
  while (!list.empty()) {
    unsigned one = 32;
    const auto word = list.substr(0, list.find(','));
    (void)std::from_chars(word.data(), word.data() + word.size(), one);  // a word that is no number leaves 32
    if (one < 32) all |= std::uint32_t{1} << one;
    list.remove_prefix(std::min(list.size(), word.size() + 1));
  }
  return all;
}

std::string registers_of(const Record& record) {
  const auto asked = record.start.parameters.find("pcrs");
  const auto* list = asked == record.start.parameters.end() ? nullptr : std::get_if<std::string>(&asked->second);
  return list == nullptr ? "" : *list;
}

}  // namespace

bool TpmKey::attests() const {
  return !point.empty() && (attributes & (kOfThisTpm | kSign | kDecrypt)) == (kOfThisTpm | kSign);
}

bool TpmKey::endorses() const {
  return !modulus.empty() && stores && (attributes & (kOfThisTpm | kSign | kDecrypt)) == (kOfThisTpm | kDecrypt);
}

std::string TpmKey::name() const { return std::string("\x00\x0B", 2) + *from_hexadecimal(sha256); }

std::optional<TpmKey> tpm_key(std::string_view bytes) {
  ByteReader outer(bytes);
  const std::string_view area = outer.block();
  if (!outer.ended_well()) return std::nullopt;
  ByteReader in(area);
  TpmKey key{.sha256 = files::sha256(area)};
  const auto type = in.u16();
  const auto name_algorithm = in.u16();
  key.attributes = in.u32();
  (void)in.block();  // the policy of its use
  if (const auto symmetric = in.u16(); symmetric != kNull) {
    const auto bits = in.u16();
    key.stores = symmetric == kAes && bits == 128 && in.u16() == kCfb;
  }
  if (const auto scheme = in.u16(); scheme != kNull && in.u16() != kSha256) return std::nullopt;
  if (type == kEcc) {
    const auto curve = in.u16();
    if (in.u16() != kNull || curve != kP256) return std::nullopt;
    const std::string x = padded(in.block()), y = padded(in.block());
    if (x.empty() || y.empty()) return std::nullopt;
    key.point = "\x04" + x + y;
  } else if (type == kRsa) {
    const auto bits = in.u16();
    const auto exponent = in.u32();  // 0 is 65537
    key.modulus = in.block();
    if (bits != 8 * kModulus || key.modulus.size() != kModulus || exponent != 0) return std::nullopt;
  } else {
    return std::nullopt;
  }
  return in.ended_well() && name_algorithm == kSha256 ? std::optional(std::move(key)) : std::nullopt;
}

std::optional<TpmKey> tpm_key_in(const Record& record, std::string_view condition) {
  return tpm_key(bytes_of(record, condition));
}

std::optional<TpmQuote> tpm_quote(std::string_view bytes) {
  ByteReader in(bytes);
  if (in.u32() != kGenerated || in.u16() != kQuoted) return std::nullopt;
  (void)in.block();  // qualifiedSigner: its key follows from the signature
  TpmQuote quote{.answers = std::string(in.block())};
  (void)in.take(8 + 4 + 4 + 1);  // clockInfo: clock, counts of resets and restarts, safe
  (void)in.take(8);              // firmwareVersion
  if (in.u32() != 1 || in.u16() != kSha256) return std::nullopt;
  const auto size = in.number(1);
  const auto selected = in.take(size);
  if (selected.size() > sizeof(quote.pcrs)) return std::nullopt;
  for (std::size_t i = 0; i < selected.size(); ++i)
    quote.pcrs |= static_cast<std::uint32_t>(static_cast<unsigned char>(selected[i])) << (8 * i);
  quote.digest = in.block();
  return in.ended_well() && quote.digest.size() == kDigest ? std::optional(std::move(quote)) : std::nullopt;
}

bool is_signed_by(const TpmKey& key, std::string_view bytes, std::string_view signature) {
  ByteReader in(signature);
  if (in.u16() != kEcdsa || in.u16() != kSha256) return false;
  const std::string_view r = in.block(), s = in.block();
  if (!in.ended_well() || key.point.empty()) return false;
  std::string curve = "prime256v1", point = key.point;
  const std::array parameters = {OSSL_PARAM_construct_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, curve.data(), 0),
                                 OSSL_PARAM_construct_octet_string(OSSL_PKEY_PARAM_PUB_KEY, point.data(), point.size()),
                                 OSSL_PARAM_construct_end()};
  const Owned<EVP_PKEY_CTX, EVP_PKEY_CTX_free> making(EVP_PKEY_CTX_new_from_name(nullptr, "EC", nullptr));
  EVP_PKEY* made = nullptr;
  const bool is_key =
      making && EVP_PKEY_fromdata_init(making.get()) == 1 &&
      EVP_PKEY_fromdata(making.get(), &made, EVP_PKEY_PUBLIC_KEY, const_cast<OSSL_PARAM*>(parameters.data())) == 1;
  const Owned<EVP_PKEY, EVP_PKEY_free> owned(made);
  const bool holds = is_key && ecdsa_holds(owned.get(), EVP_sha256(), r, s, bytes);
  ERR_clear_error();
  return holds;
}

TpmAnswer tpm_answer_in(const Record& record, const std::string& nonce, const std::string& asked) {
  const auto is = [](AnswerOutcome outcome, std::string words) {
    return TpmAnswer{.outcome = outcome, .words = std::move(words)};
  };
  using enum AnswerOutcome;
  const auto key = tpm_key_in(record, "attestation_key");
  const std::string said = bytes_of(record, "quote");
  const auto quote = tpm_quote(said);
  if (!key || !key->attests())
    return is(broken, "the key of its quote is none that a TPM made, keeps and uses only for its own statements");
  if (!quote) return is(broken, "its quote is none of a TPM");
  if (!is_signed_by(*key, said, bytes_of(record, "signature")))
    return is(broken, "the signature of its quote does not hold");
  if (to_hexadecimal(quote->answers) != nonce)
    return is(wrong_challenge, "its quote answers another question than that of this attempt");
  if (quote->pcrs == 0 || quote->pcrs != registers_in(registers_of(record)))
    return is(broken, "its quote is of other registers than were asked for");
  TpmAnswer answer{.outcome = answered, .key = key->sha256};
  answer.pcr_digest = to_hexadecimal(quote->digest);
  answer.endorsement_certificate = bytes_of(record, "endorsement_certificate");
  const auto endorsement = tpm_key_in(record, "endorsement_key");
  const bool says = text_of(record, "credential") == "activated";
  const std::string secret = bytes_of(record, "credential_secret");
  const std::string_view expected = std::string_view(asked).substr(std::min(asked.size(), asked.find(':') + 1));
  answer.activated = endorsement && endorsement->endorses() && !expected.empty() && files::sha256(secret) == expected;
  if (says && !answer.activated)
    return is(broken, "it says that its key is bound to its endorsement key, and does not show it");
  if (answer.activated) answer.endorsement_modulus = endorsement->modulus;
  return answer;
}

std::map<std::string, TpmAnswer> tpm_answers(const Run& run, const EvidenceReader& evidence) {
  std::map<std::string, TpmAnswer> answers;
  for (const auto& node : run.plan.site.nodes)
    answers[node.name] = {.outcome = AnswerOutcome::not_asked, .words = "its TPM was not asked"};
  each_question(run, evidence, plan::kIdentityProbe, [&](const Question& question) {
    TpmAnswer found{.outcome = AnswerOutcome::no_answer, .words = "the attempt to ask its TPM has no complete record"};
    if (question.record && question.record->end.status == Status::skip)
      found = {.outcome = AnswerOutcome::no_tpm, .words = question.record->end.reason};
    else if (question.record && question.record->end.status == Status::complete)
      found = tpm_answer_in(*question.record, question.nonce, question.attempt.asked);
    take(answers[question.node], std::move(found));
  });
  return answers;
}

}  // namespace assay::judge
