// hardware_answer: OpenSSL checks the signatures.
#include "orchestrator/judge/evidence/hardware_answer.h"

#include <algorithm>

#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>

#include <fmt/format.h>

#include "orchestrator/files/digest.h"
#include "orchestrator/files/openssl.h"

namespace assay::judge {

using files::Owned;

std::uint64_t ByteReader::number(std::size_t size) {
  std::uint64_t value = 0;
  for (const char c : take(size)) value = value << 8 | static_cast<unsigned char>(c);
  return value;
}

std::uint64_t ByteReader::little(std::size_t size) {
  const auto bytes = take(size);
  std::uint64_t value = 0;
  for (auto c = bytes.rbegin(); c != bytes.rend(); ++c) value = value << 8 | static_cast<unsigned char>(*c);
  return value;
}

std::string_view ByteReader::take(std::size_t size) {
  good_ = good_ && size <= left_.size();
  if (!good_) return {};
  const auto taken = left_.substr(0, size);
  left_.remove_prefix(size);
  return taken;
}

bool ecdsa_holds(EVP_PKEY* key, const EVP_MD* digest, std::string_view r, std::string_view s, std::string_view bytes) {
  const auto raw = [](std::string_view value) { return reinterpret_cast<const unsigned char*>(value.data()); };
  const auto number = [&](std::string_view value) {
    return BN_bin2bn(raw(value), static_cast<int>(value.size()), nullptr);
  };
  const Owned<ECDSA_SIG, ECDSA_SIG_free> pair(ECDSA_SIG_new());
  if (!pair || ECDSA_SIG_set0(pair.get(), number(r), number(s)) != 1) return false;  // takes both
  std::string der(static_cast<std::size_t>(std::max(0, i2d_ECDSA_SIG(pair.get(), nullptr))), '\0');
  auto* out = reinterpret_cast<unsigned char*>(der.data());
  i2d_ECDSA_SIG(pair.get(), &out);
  const Owned<EVP_MD_CTX, EVP_MD_CTX_free> checking(EVP_MD_CTX_new());
  const bool holds = checking && EVP_DigestVerifyInit(checking.get(), nullptr, digest, nullptr, key) == 1 &&
                     EVP_DigestVerify(checking.get(), raw(der), der.size(), raw(bytes), bytes.size()) == 1;
  ERR_clear_error();
  return holds;
}

std::string attempt_nonce(const std::string& challenge, const std::string& plan_sha256, const std::string& node,
                          const std::string& asked) {
  return files::sha256(fmt::format("assay.tpm/1\n{}\n{}\n{}\n{}\n", challenge, plan_sha256, node, asked));
}

std::map<std::string, std::string> texts_of(const Record& record, std::string_view kind, std::string_view name) {
  std::map<std::string, std::string> texts;
  for (const auto& condition : record.conditions) {
    const auto* text = std::get_if<std::string>(&condition.value);
    if (condition.name == name && condition.subject.kind == kind && text != nullptr)
      texts.emplace(condition.subject.id, *text);
  }
  return texts;
}

void each_question(const Run& run, const EvidenceReader& evidence, std::string_view probe,
                   const std::function<void(const Question&)>& look) {
  if (run.plan.simulation) return;
  std::map<std::string_view, const plan::Step*> asking;
  for (const auto& step : run.plan.steps) {
    if (step.probe == probe && step.nodes.size() == 1) asking[step.id] = &step;
  }
  if (asking.empty()) return;
  for (const auto& attempt : run.journal.attempts) {
    const auto one = attempt.is_extra() ? asking.end() : asking.find(attempt.step);
    if (one == asking.end()) continue;
    const plan::Step& step = *one->second;
    auto record = record_of(run.plan, step, attempt, evidence);
    look({.node = step.nodes.front(),
          .attempt = attempt,
          .nonce = attempt_nonce(run.plan.challenge, run.plan_sha256, step.nodes.front(), attempt.asked),
          .record = record ? std::optional(std::move(*record)) : std::nullopt});
  }
}

}  // namespace assay::judge
