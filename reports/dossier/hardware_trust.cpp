// hardware_trust: a statement by an unknown key may be of any program, and a node that shows no serial number is not
// the expected machine.
#include "reports/dossier/hardware_trust.h"

#include <algorithm>
#include <chrono>
#include <variant>

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <fmt/format.h>

#include "reports/dossier/openssl.h"
#include "reports/dossier/sign.h"

namespace assay::dossier {
namespace {

constexpr const char* kEndorsement = "2.23.133.8.1";  // tcg-kp-EKCertificate, TCG EK Credential Profile

/// The modulus of an RSA key, big endian; empty for another kind of key.
std::string modulus_of(const EVP_PKEY* key) {
  BIGNUM* number = nullptr;
  if (key == nullptr || EVP_PKEY_get_bn_param(key, OSSL_PKEY_PARAM_RSA_N, &number) != 1) return "";
  std::string bytes(static_cast<std::size_t>(BN_num_bytes(number)), '\0');
  BN_bn2bin(number, reinterpret_cast<unsigned char*>(bytes.data()));
  BN_free(number);
  return bytes;
}

/// Why the certificate of `what`, chain.front(), has no chain to the roots at `at`; empty if it has.
std::string why_no_chain(const HardwareTrust& trust, const std::vector<Certificate>& chain, std::string_view what,
                         Moment at) {
  std::string why;
  const ChainRules rules{.flags = X509_V_FLAG_PARTIAL_CHAIN,
                         .at = std::chrono::system_clock::to_time_t(at),
                         .crls = trust.crls,
                         .why = &why};
  if (!verified_chain(chain, trust.roots, rules).empty()) return "";
  return fmt::format("the certificate of {} has no chain to a given root that holds when the run began ({})", what,
                     why);
}

/// Why the certificate of the endorsement key is none of the roots; empty if it is.
std::string why_not_of(const HardwareTrust& trust, const judge::TpmAnswer& answer, Moment at) {
  const std::string& der = answer.endorsement_certificate;
  if (der.empty()) return "its TPM has no certificate of its endorsement key";
  const unsigned char* bytes = bytes_of(der);  // indices of some makers are longer than the certificate in them
  std::vector<Certificate> chain;
  chain.emplace_back(d2i_X509(nullptr, &bytes, static_cast<long>(der.size())));
  ERR_clear_error();
  if (!chain.front()) return "the certificate of its endorsement key cannot be read";
  X509* const own = chain.front().get();
  if (modulus_of(X509_get0_pubkey(own)) != answer.endorsement_modulus)
    return "the certificate is of another endorsement key";
  if (X509_check_ca(own) != 0 || !(states_no_usage(own) || has_usage(own, kEndorsement)))
    return "the certificate is for another use than an endorsement key";
  return why_no_chain(trust, chain, "its endorsement key", at);
}

/// Why the certificate of the key that signed a GPU's report is none of the roots; empty if it is.
std::string why_not_of(const HardwareTrust& trust, const judge::GpuAnswer& answer, Moment at) {
  const auto chain = read_certificates(answer.chain);
  if (chain.empty()) return "its certificate cannot be read";
  if (X509_check_ca(chain.front().get()) != 0 ||
      (X509_get_key_usage(chain.front().get()) & KU_DIGITAL_SIGNATURE) == 0)  // all bits if none is stated
    return "the certificate of its key is for another use than signatures of reports";
  return why_no_chain(trust, chain, "its key", at);
}

/// Why the list has another key for `name`, a node or a GPU; empty if it has this one, or there is no list. `what` the
/// key is of, as "the TPM of the node".
std::string why_other_key(const Serials& keys, const std::string& name, const std::string& key, std::string_view what) {
  if (keys.empty()) return "";
  const auto wanted = keys.find(name);
  if (wanted == keys.end()) return fmt::format("the list of keys does not have {} {}", what, name);
  if (wanted->second == key) return "";
  const auto other = std::ranges::find_if(keys, [&](const auto& one) { return one.second == key; });
  return other == keys.end() ? fmt::format("it answered with the key {}, expected {}", key, wanted->second)
                             : fmt::format("{} {} answered in its place", what, other->first);
}

template <class Answer>
Answer refused(Answer answer, judge::AnswerOutcome outcome, std::string words) {
  answer.outcome = outcome;
  answer.words = std::move(words);
  return answer;
}

constexpr const char* kSpaceOrTab = " \t";

InputError not_these(const std::string& what, const std::string& hint) {
  return {std::string(kEvidenceFolder), what, hint};
}

bool records_serials(const plan::Plan& plan, const plan::Step& step) {
  const auto probe = plan.probes.find(step.probe);
  return step.nodes.size() == 1 && probe != plan.probes.end() &&
         std::ranges::any_of(probe->second.description.conditions,
                             [](const auto& condition) { return condition.name == kSerialCondition; });
}

}  // namespace

judge::TpmAnswer held_against(const HardwareTrust& trust, const std::string& node, judge::TpmAnswer answer, Moment at) {
  using enum judge::AnswerOutcome;
  if (answer.outcome != answered) return answer;
  if (auto why = why_other_key(trust.keys, node, answer.key, "the TPM of the node"); !why.empty())
    return refused(std::move(answer), unknown_key, std::move(why));
  if (trust.roots.empty()) return answer;
  if (!answer.activated) return refused(std::move(answer), unknown_key, "its key is not bound to an endorsement key");
  std::string why = why_not_of(trust, answer, at);
  return why.empty() ? answer : refused(std::move(answer), other_root, std::move(why));
}

judge::GpuAnswer held_against(const HardwareTrust& trust, const std::string& uuid, judge::GpuAnswer answer, Moment at) {
  using enum judge::AnswerOutcome;
  if (answer.outcome != answered) return answer;
  if (auto why = why_other_key(trust.keys, uuid, answer.key, "the GPU"); !why.empty())
    return refused(std::move(answer), unknown_key, std::move(why));
  std::string why = trust.roots.empty() ? "" : why_not_of(trust, answer, at);
  return why.empty() ? answer : refused(std::move(answer), other_root, std::move(why));
}

std::optional<InputError> check_tpms(const HardwareTrust& trust, Moment at,
                                     std::map<std::string, judge::TpmAnswer>& answers) {
  if (!trust.demands()) return std::nullopt;
  std::optional<InputError> first;
  for (auto& [node, answer] : answers) {
    answer = held_against(trust, node, std::move(answer), at);
    if (first || answer.outcome == judge::AnswerOutcome::answered) continue;
    first = InputError{
        kEvidenceFolder, fmt::format("the TPM of {}: {}: {}", node, answer.outcome, answer.words),
        "--tpm-roots and --tpm-keys demand that the TPM of every node answers; the profile must use tpm_quote"};
  }
  for (const auto& [node, key] : trust.keys) {
    if (!first && !answers.contains(node))
      first = InputError{kEvidenceFolder, fmt::format("does not test the node {} of the list of keys", node),
                         "this is a dossier of fewer machines"};
  }
  return first;
}

std::optional<InputError> check_gpus(const HardwareTrust& trust, Moment at,
                                     std::map<std::string, judge::GpuAnswers>& answers) {
  if (!trust.demands()) return std::nullopt;
  std::optional<InputError> first;
  std::set<std::string> found;
  for (auto& [node, of_node] : answers) {
    for (auto& [uuid, answer] : of_node.gpus) {
      answer = held_against(trust, uuid, std::move(answer), at);
      found.insert(uuid);
    }
    of_node.conclude();
    if (first || of_node.outcome == judge::AnswerOutcome::answered) continue;
    first = InputError{
        kEvidenceFolder, fmt::format("the GPUs of {}: {}: {}", node, of_node.outcome, of_node.words),
        "--gpu-roots and --gpu-keys demand that every GPU of every node answers; the profile must use gpu_attestation"};
  }
  for (const auto& [uuid, key] : trust.keys) {
    if (!first && !found.contains(uuid))
      first = InputError{kEvidenceFolder, fmt::format("does not test the GPU {} of the list of keys", uuid),
                         "this is a dossier of fewer GPUs"};
  }
  return first;
}

std::map<std::string, std::set<std::string>> recorded_serials(const judge::Run& run,
                                                              const judge::EvidenceReader& evidence) {
  std::map<std::string, std::set<std::string>> all;
  for (const auto& attempt : run.journal.attempts) {
    const plan::Step* const step = run.plan.step(attempt.step);
    if (step == nullptr || !records_serials(run.plan, *step)) continue;
    const auto record = judge::record_of(run.plan, *step, attempt, evidence);
    if (!record) continue;  // a broken record shows nothing; the node then needs another one
    for (const auto& condition : record->conditions) {
      const auto* serial = std::get_if<std::string>(&condition.value);
      if (condition.name == kSerialCondition && condition.subject.kind == "node" && serial != nullptr)
        all[step->nodes.front()].insert(*serial);
    }
  }
  return all;
}

std::expected<Serials, InputError> read_serials(std::string_view text, const std::string& where,
                                                const std::string& what, const std::string& of) {
  Serials serials;
  std::set<std::string> seen;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const auto refused = [&](const std::string& problem) {
      return std::unexpected(InputError{fmt::format("{}: line {}", where, number), problem, "n01 7XK2H13"});
    };
    const auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const auto space = line.find_first_of(kSpaceOrTab);
    const auto begin = line.find_first_not_of(kSpaceOrTab, space);
    if (space == 0 || begin == std::string_view::npos || line.find('\r', begin) != std::string_view::npos ||
        line.back() == ' ' || line.back() == '\t')
      return refused(fmt::format("is not a {} and its {}", of, what));
    const std::string node(line.substr(0, space));
    const std::string serial(line.substr(begin));
    if (!serials.emplace(node, serial).second) return refused(fmt::format("has the {} {} twice", of, node));
    if (!seen.insert(serial).second) return refused(fmt::format("has the {} {} twice", what, serial));
  }
  if (serials.empty()) return std::unexpected(InputError{where, "lists nothing", "n01 7XK2H13"});
  return serials;
}

std::optional<InputError> check_serials(const judge::Run& run, const judge::EvidenceReader& evidence,
                                        const Serials& expected) {
  const auto found = recorded_serials(run, evidence);
  for (const auto& node : run.plan.site.nodes) {
    const auto wanted = expected.find(node.name);
    if (wanted == expected.end())
      return not_these(fmt::format("tests the node {}, which the list of serial numbers does not have", node.name),
                       "this is a dossier of other machines");
    const auto shown = found.find(node.name);
    if (shown == found.end())
      return not_these(fmt::format("has no serial number of the node {}, expected {}", node.name, wanted->second),
                       "health_inventory records it as root, where SMBIOS is shown; the profile must use that probe");
    for (const auto& serial : shown->second) {
      if (serial != wanted->second)
        return not_these(
            fmt::format("has the serial number {} of the node {}, expected {}", serial, node.name, wanted->second),
            "another machine was tested under that name");
    }
  }
  for (const auto& [node, serial] : expected) {
    if (run.plan.site.node(node) == nullptr)
      return not_these(fmt::format("does not test the node {} with the serial number {}", node, serial),
                       "this is a dossier of fewer machines");
  }
  return std::nullopt;
}

}  // namespace assay::dossier
