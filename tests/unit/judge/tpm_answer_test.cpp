// Answers of a TPM to the question of an attempt: honest, stale, relayed, foreign and damaged ones. The TPM is made up.
#include "orchestrator/judge/evidence/tpm_answer.h"

#include <memory>

#include <openssl/ec.h>
#include <openssl/evp.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "orchestrator/files/digest.h"
#include "orchestrator/plan/catalogue.h"
#include "orchestrator/simulate/instrument.h"
#include "probes/core/text.h"
#include "tests/unit/fixture.h"
#include "tests/unit/judge/judged.h"

namespace assay::judge {
namespace tpm_test {

constexpr std::uint32_t kSigns = 0x00050072, kStores = 0x000300B2;  // as tpm2-tools makes both keys
const std::string kSecret(32, 's');
const std::string kAsked = std::string(64, 'a') + ":" + files::sha256(kSecret);
const std::string kNonce = attempt_nonce("c", "p", "n1", kAsked);

std::string number(std::uint64_t value, int size) {
  std::string bytes;
  for (int shift = 8 * (size - 1); shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 0xFF);
  return bytes;
}
std::string block(const std::string& bytes) { return number(bytes.size(), 2) + bytes; }

/// A key on P-256 in software.
class SoftKey {
 public:
  SoftKey() : key_(EVP_EC_gen("P-256"), EVP_PKEY_free) {}
  [[nodiscard]] std::string point() const {
    std::string bytes(65, '\0');
    std::size_t size = 0;
    EVP_PKEY_get_octet_string_param(key_.get(), "pub", reinterpret_cast<unsigned char*>(bytes.data()), bytes.size(),
                                    &size);
    return bytes;
  }
  [[nodiscard]] std::string public_area(std::uint32_t attributes = kSigns) const {
    return block(number(0x0023000B, 4) + number(attributes, 4) + block("") + number(0x0010, 2) + number(0x0018000B, 4) +
                 number(0x00030010, 4) + block(point().substr(1, 32)) + block(point().substr(33)));
  }
  [[nodiscard]] std::string signature(const std::string& bytes) const {
    const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> signing(EVP_MD_CTX_new(), EVP_MD_CTX_free);
    EVP_DigestSignInit(signing.get(), nullptr, EVP_sha256(), nullptr, key_.get());
    std::string der(80, '\0');
    std::size_t size = der.size();
    EVP_DigestSign(signing.get(), reinterpret_cast<unsigned char*>(der.data()), &size,
                   reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
    const auto* in = reinterpret_cast<const unsigned char*>(der.data());
    const std::unique_ptr<ECDSA_SIG, void (*)(ECDSA_SIG*)> pair(d2i_ECDSA_SIG(nullptr, &in, static_cast<long>(size)),
                                                                ECDSA_SIG_free);
    const auto half = [](const BIGNUM* value) {
      std::string raw(32, '\0');
      BN_bn2binpad(value, reinterpret_cast<unsigned char*>(raw.data()), 32);
      return raw;
    };
    return number(0x0018000B, 4) + block(half(ECDSA_SIG_get0_r(pair.get()))) +
           block(half(ECDSA_SIG_get0_s(pair.get())));
  }

 private:
  std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)> key_;
};

/// The public area of an endorsement key.
std::string endorsement(std::uint32_t attributes = kStores) {
  return block(number(0x0001000B, 4) + number(attributes, 4) + block(std::string(32, 'p')) + number(0x0006, 2) +
               number(128, 2) + number(0x0043, 2) + number(0x0010, 2) + number(2048, 2) + number(0, 4) +
               block(std::string(256, 'm')));
}

/// What a made-up TPM says; an honest one by default.
struct Parts {
  std::uint32_t attributes = kSigns, stores = kStores;
  std::uint64_t kind = 0xFF5443478018;
  std::string nonce = kNonce, registers = std::string("\xFF\0\0", 3), secret = kSecret, credential = "activated";
  std::size_t flipped_in_quote = 0, flipped_in_signature = 0;
  const SoftKey* shown = nullptr;  ///< in place of the one that signs
};

Record said_by(const SoftKey& key, const Parts& parts) {
  std::string quote = number(parts.kind, 6) + block("qualified") + block(*from_hexadecimal(parts.nonce)) +
                      std::string(17 + 8, 'c') + number(1, 4) + number(0x000B, 2) + number(parts.registers.size(), 1) +
                      parts.registers + block(std::string(32, 'd'));
  std::string signature = key.signature(quote);
  if (parts.flipped_in_quote > 0) quote[parts.flipped_in_quote] ^= 1;
  if (parts.flipped_in_signature > 0) signature[parts.flipped_in_signature] ^= 1;
  Record record;
  record.start.parameters["pcrs"] = "0,1,2,3,4,5,6,7";
  const auto say = [&](const char* name, const std::string& value) {
    record.conditions.push_back({.name = name, .subject = {"node", "n1"}, .value = value});
  };
  say("quote", to_hexadecimal(quote));
  say("signature", to_hexadecimal(signature));
  say("attestation_key", to_hexadecimal((parts.shown == nullptr ? key : *parts.shown).public_area(parts.attributes)));
  say("endorsement_key", to_hexadecimal(endorsement(parts.stores)));
  say("credential", parts.credential);
  if (!parts.secret.empty()) say("credential_secret", to_hexadecimal(parts.secret));
  return record;
}

TEST(tpm_answer, a_quote_counts_only_as_the_answer_of_such_a_key_to_this_question) {
  using enum AnswerOutcome;
  const SoftKey key, other;
  constexpr const char* kNoKey =
      "the key of its quote is none that a TPM made, keeps and uses only for its own statements";
  constexpr const char* kStale = "its quote answers another question than that of this attempt";
  constexpr const char* kSigned = "the signature of its quote does not hold";
  struct Case {
    const char* what;
    Parts parts;
    AnswerOutcome outcome;
    std::string words;
    bool activated = false;
  };
  const std::vector<Case> cases = {
      {"honest", {}, answered, "", true},
      {"no credential", {.secret = "", .credential = "not_given"}, answered, ""},
      {"stale: another journal", {.nonce = attempt_nonce("c", "p", "n1", ":")}, wrong_challenge, kStale},
      {"earlier challenge", {.nonce = attempt_nonce("", "p", "n1", kAsked)}, wrong_challenge, kStale},
      {"another plan", {.nonce = attempt_nonce("c", "q", "n1", kAsked)}, wrong_challenge, kStale},
      {"quote of another node", {.nonce = attempt_nonce("c", "p", "n2", kAsked)}, wrong_challenge, kStale},
      {"no question", {.nonce = std::string(64, '0')}, wrong_challenge, kStale},
      {"flipped in the question", {.flipped_in_quote = 20}, broken, kSigned},
      {"flipped in r", {.flipped_in_signature = 9}, broken, kSigned},
      {"flipped in the scheme", {.flipped_in_signature = 1}, broken, kSigned},
      {"another key shown", {.shown = &other}, broken, kSigned},
      {"signs anything", {.attributes = kSigns & ~0x10000U}, broken, kNoKey},
      {"can leave its TPM", {.attributes = kSigns & ~0x2U}, broken, kNoKey},
      {"made outside", {.attributes = kSigns & ~0x20U}, broken, kNoKey},
      {"decrypts", {.attributes = kSigns | 0x20000U}, broken, kNoKey},
      {"not by a TPM", {.kind = 0xFF5443468018}, broken, "its quote is none of a TPM"},
      {"another statement", {.kind = 0xFF5443478017}, broken, "its quote is none of a TPM"},
      {"fewer registers", {.registers = std::string("\x7F\0\0", 3)}, broken, "its quote is of other registers"},
      {"another secret", {.secret = "x"}, broken, "it says that its key is bound to its endorsement key, and"},
      {"EK that can be copied", {.stores = kStores & ~0x2U}, broken, "it says that its key is bound"},
  };
  for (const auto& one : cases) {
    const TpmAnswer answer = tpm_answer_in(said_by(key, one.parts), kNonce, kAsked);
    EXPECT_EQ(answer.outcome, one.outcome) << one.what << ": " << answer.words;
    EXPECT_TRUE(answer.words.starts_with(one.words)) << one.what << ": " << answer.words;
    EXPECT_EQ(answer.activated, one.activated) << one.what;
    EXPECT_EQ(answer.key, one.outcome == answered ? files::sha256(key.public_area().substr(2)) : "") << one.what;
  }
}

TEST(tpm_answer, structures_that_are_cut_or_longer_are_none) {
  const SoftKey key;
  const Record record = said_by(key, {});
  const std::string quote = *from_hexadecimal(std::get<std::string>(record.conditions[0].value));
  const std::string signature = *from_hexadecimal(std::get<std::string>(record.conditions[1].value));
  const auto signer = tpm_key(key.public_area()).value();
  ASSERT_TRUE(tpm_key(endorsement()) && tpm_quote(quote) && is_signed_by(signer, quote, signature));
  for (std::size_t size = 0; size < endorsement().size(); ++size) {
    EXPECT_FALSE(tpm_key(std::string_view(endorsement()).substr(0, size))) << size;
    EXPECT_FALSE(tpm_key(std::string_view(key.public_area()).substr(0, std::min(size, key.public_area().size() - 1))));
    EXPECT_FALSE(tpm_quote(std::string_view(quote).substr(0, std::min(size, quote.size() - 1)))) << size;
    EXPECT_FALSE(
        is_signed_by(signer, quote, std::string_view(signature).substr(0, std::min(size, signature.size() - 1))));
  }
  EXPECT_FALSE(tpm_key(endorsement() + "x") || tpm_quote(quote + "x") || is_signed_by(signer, quote, signature + "x"));
}

/// A run of the profile on two nodes.
struct TpmRun : fixture::MemoryRun {
  TpmRun() : MemoryRun({test::kAtLeast100}, 2) {
    const auto* known = plan::known_probe(plan::kIdentityProbe, 1);
    description = read_description(known->document.dump(), "known").value();
    const plan::Program program{
        .name = known->name, .sha256 = std::string(64, 'a'), .path = "", .description = description};
    plan = *plan::make_plan(*plan::profile_named("node-identity"), fixture::site(2), {program}, {});
    journal.plan_sha256 = "p";
  }

  /// An attempt on node `i` that was to ask `asked`, in which `key` answered `heard`.
  void answer(std::size_t i, const SoftKey& key, const std::string& asked, const std::string& heard) {
    const std::string node = plan.steps[i].nodes.front();
    std::ostringstream out;
    const simulate::Instrument instrument(description);
    Recorder recorder(
        out, instrument.spec(),
        {.probe = description.name, .revision = 1, .parameters = plan.steps[i].parameters, .host = {{"name", node}}});
    const Record said = said_by(key, {.nonce = attempt_nonce("", "p", node, heard)});
    for (const auto& condition : said.conditions) recorder.condition(condition.name, condition.value);
    recorder.measurement("quote_time", 0.5);
    recorder.end({.status = Status::complete, .reason = ""});
    attempt(i, "exited", out.str());
    journal.attempts.change_last([&](Attempt& last) { last.asked = asked; });
  }

  Description description;
};

TEST(tpm_answer, a_cell_passes_with_the_answer_to_its_own_question_alone) {
  const std::string earlier = std::string(64, 'b') + kAsked.substr(64);
  const SoftKey first, second;
  TpmRun honest;
  honest.answer(0, first, kAsked, kAsked);
  honest.answer(1, second, kAsked, kAsked);
  for (const auto& result : test::judged(honest).results) EXPECT_EQ(result.outcome, Outcome::pass) << result.reason;
  TpmRun stale;
  stale.answer(0, first, kAsked, earlier);
  stale.answer(1, second, "", kAsked);
  for (const auto& result : test::judged(stale).results) {
    EXPECT_EQ(result.outcome, Outcome::error);
    EXPECT_NE(result.reason.find("the TPM: its quote answers another question"), std::string::npos) << result.reason;
  }
  TpmRun relayed;
  relayed.answer(0, first, kAsked, kAsked);
  relayed.answer(1, first, kAsked, kAsked);
  for (const auto& result : test::judged(relayed).results) {
    EXPECT_EQ(result.outcome, Outcome::error);
    EXPECT_NE(result.reason.find("The nodes n1 and n2 show the same attestation key of a TPM"), std::string::npos)
        << result.reason;
  }
}

TEST(tpm_answer, of_several_attempts_the_first_that_does_not_hold_counts) {
  using enum AnswerOutcome;
  const SoftKey key;
  TpmRun run;
  run.answer(0, key, kAsked, kAsked);
  run.answer(0, key, kAsked, ":");
  run.answer(0, key, kAsked, kAsked);
  const auto answers = tpm_answers({run.plan, "p", run.journal}, run.reader());
  EXPECT_EQ(answers.at("n1").outcome, wrong_challenge);
  EXPECT_EQ(answers.at("n2").outcome, not_asked);
  run.attempt(1, "crashed", "");
  EXPECT_EQ(tpm_answers({run.plan, "p", run.journal}, run.reader()).at("n2").outcome, no_answer);
}

}  // namespace tpm_test
}  // namespace assay::judge
