// gpu_answer: reads reports strictly: every length is used up, and nothing is there twice.
#include "orchestrator/judge/evidence/gpu_answer.h"

#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <fmt/format.h>

#include "orchestrator/files/digest.h"
#include "orchestrator/files/openssl.h"
#include "orchestrator/plan/plan.h"
#include "probes/core/text.h"

namespace assay::judge {
namespace {

// Codes of DSP0274 1.1; fields of the opaque data and sizes as nvtrust numbers them.
constexpr unsigned kVersion = 0x11, kGetMeasurements = 0xE0, kMeasurements = 0x60, kSigned = 0x01, kDmtf = 0x01;
constexpr unsigned kDriverVersion = 3, kVbiosVersion = 6;
constexpr std::size_t kNonce = 32, kHalf = 48, kVbiosSize = 8;
constexpr std::size_t kMostCertificates = 16;  // nvtrust expects five

/// "96.00.9F.00.01" of the eight bytes in which a report has it: four in reverse and the fifth.
std::string vbios_words(std::string_view bytes) {
  if (bytes.size() != kVbiosSize) return "";
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  return fmt::format("{:02X}.{:02X}.{:02X}.{:02X}.{:02X}", at(3), at(2), at(1), at(0), at(4));
}

/// Whether `record`, of `blocks` measurements, is well formed; fills `measured`.
bool read_measurements(std::string_view record, std::uint64_t blocks, std::map<unsigned, std::string>& measured) {
  ByteReader in(record);
  for (std::uint64_t i = 0; i < blocks; ++i) {
    const auto index = static_cast<unsigned>(in.number(1));
    if (in.number(1) != kDmtf) return false;
    ByteReader value(in.take(in.little(2)));
    (void)value.number(1);  // the kind of measurement: none is judged
    const auto bytes = value.take(value.little(2));
    if (!value.ended_well() || !measured.emplace(index, bytes).second) return false;
  }
  return blocks > 0 && in.ended_well();
}

/// Whether the opaque fields are well formed; takes those that are shown.
bool read_opaque(std::string_view bytes, GpuReport& report) {
  ByteReader in(bytes);
  std::set<std::uint64_t> seen;
  while (in.has_more()) {
    const auto kind = in.little(2);
    const auto value = in.take(in.little(2));
    if (!seen.insert(kind).second) return false;
    if (kind == kDriverVersion) report.driver = without_controls(value.substr(0, value.find('\0')), value.size());
    if (kind == kVbiosVersion) report.vbios = vbios_words(value);
  }
  return in.ended_well();
}

GpuAnswer answer_of(const std::string& report_hex, const std::string& chain_hex, const std::string& nonce) {
  using enum AnswerOutcome;
  GpuAnswer answer{.outcome = broken};
  answer.chain = from_hexadecimal(chain_hex).value_or("");
  const auto report = gpu_report(from_hexadecimal(report_hex).value_or(""));
  if (!report) {
    answer.words = "its report is none of SPDM 1.1 with signed measurements";
  } else if (!is_signed_by(answer.chain, *report)) {
    answer.words = "the signature of its report does not hold";
  } else if (answer.key = identity_key(answer.chain); answer.key.empty()) {
    answer.words = "the certificate of its key is not by the next one of its chain";
  } else if (to_hexadecimal(report->nonce) != nonce) {
    answer.outcome = wrong_challenge;
    answer.words = "its report answers another question than that of this attempt and GPU";
  } else {
    answer.outcome = answered;
    answer.driver = report->driver;
    answer.vbios = report->vbios;
  }
  return answer;
}

/// The GPUs of NVIDIA that records of `node` alone name, so that none of which a figure is judged is left out.
std::set<std::string> named_gpus(const Run& run, const EvidenceReader& evidence, const std::string& node) {
  std::set<std::string> named;
  for (const auto& step : run.plan.steps) {
    if (step.nodes != std::vector{node}) continue;
    for (const auto& attempt : run.journal.attempts.of(step.id)) {
      const auto record = record_of(run.plan, step, attempt, evidence);
      if (!record) continue;  // one that cannot be read names none
      const auto add = [&](const Subject& subject) {
        // NVML lists one whose UUID cannot be read by its index. An address may be of a console.
        if (subject.kind == "gpu" && (subject.id.starts_with("GPU-") || subject.id.starts_with("index-")))
          named.insert(subject.id);
      };
      for (const auto& condition : record->conditions) add(condition.subject);
      for (const auto& measured : record->measurements) add(measured.subject);
    }
  }
  return named;
}

}  // namespace

std::optional<GpuReport> gpu_report(std::string_view bytes) {
  ByteReader in(bytes);
  if (in.number(1) != kVersion || in.number(1) != kGetMeasurements) return std::nullopt;
  if ((in.number(1) & kSigned) == 0) return std::nullopt;
  (void)in.number(1);  // which measurements were asked for
  GpuReport report;
  report.nonce = in.take(kNonce);
  (void)in.number(1);  // slot of the chain
  if (in.number(1) != kVersion || in.number(1) != kMeasurements) return std::nullopt;
  (void)in.take(2);
  const auto blocks = in.number(1);
  const auto measured = in.take(in.little(3));
  (void)in.take(kNonce);  // the GPU's own
  const auto opaque = in.take(in.little(2));
  report.signature = in.take(2 * kHalf);
  if (!in.ended_well() || !read_measurements(measured, blocks, report.measured) || !read_opaque(opaque, report))
    return std::nullopt;
  report.signed_bytes = bytes.substr(0, bytes.size() - report.signature.size());
  return report;
}

bool is_signed_by(std::string_view chain, const GpuReport& report) {
  const auto certificates = files::read_certificates(chain, kMostCertificates);
  EVP_PKEY* const key = certificates.empty() ? nullptr : X509_get0_pubkey(certificates.front().get());
  std::array<char, 32> curve = {};
  const bool is_p384 = key != nullptr && EVP_PKEY_get_group_name(key, curve.data(), curve.size(), nullptr) == 1 &&
                       std::string_view(curve.data()) == "secp384r1";
  ERR_clear_error();
  const std::string_view signature = report.signature;
  return is_p384 &&
         ecdsa_holds(key, EVP_sha384(), signature.substr(0, kHalf), signature.substr(kHalf), report.signed_bytes);
}

std::string identity_key(std::string_view chain) {
  const auto certificates = files::read_certificates(chain, kMostCertificates);
  if (certificates.size() < 2) return "";
  X509* const issuer = certificates[1].get();
  EVP_PKEY* const key = X509_get0_pubkey(issuer);
  const bool issued = key != nullptr && X509_check_issued(issuer, certificates[0].get()) == X509_V_OK &&
                      X509_verify(certificates[0].get(), key) == 1;
  std::string der(issued ? static_cast<std::size_t>(std::max(0, i2d_PUBKEY(key, nullptr))) : 0, '\0');
  auto* out = reinterpret_cast<unsigned char*>(der.data());
  if (!der.empty()) i2d_PUBKEY(key, &out);
  ERR_clear_error();
  return der.empty() ? "" : files::sha256(der);
}

std::string gpu_nonce(const std::string& nonce, const std::string& uuid) {
  return files::sha256(fmt::format("assay.gpu/1\n{}\n{}\n", nonce, uuid));
}

void GpuAnswers::conclude() {
  const auto first =
      std::ranges::find_if(gpus, [](const auto& gpu) { return gpu.second.outcome != AnswerOutcome::answered; });
  if (first == gpus.end()) return;
  outcome = first->second.outcome;
  words = fmt::format("{}: {}", first->first, first->second.words);
}

GpuAnswers gpu_answers_in(const Record& record, const std::string& nonce) {
  GpuAnswers answers{.outcome = AnswerOutcome::answered};
  for (const auto& [uuid, why] : texts_of(record, "gpu", "attestation_error"))
    answers.gpus[uuid] = {.outcome = AnswerOutcome::no_answer, .words = why};
  const auto chains = texts_of(record, "gpu", "certificate_chain");
  std::map<std::string, std::string> uuid_of;  // by key
  for (const auto& [uuid, report] : texts_of(record, "gpu", "attestation_report")) {
    const auto chain = chains.find(uuid);
    GpuAnswer answer = answer_of(report, chain == chains.end() ? "" : chain->second, gpu_nonce(nonce, uuid));
    const auto [other, fresh] = uuid_of.emplace(answer.key, uuid);
    if (answer.outcome == AnswerOutcome::answered && !fresh) {
      answer.outcome = AnswerOutcome::broken;
      answer.words = fmt::format("it answered with the key of the GPU {}", other->second);
    }
    answers.gpus[uuid] = std::move(answer);
  }
  if (answers.gpus.empty()) {
    answers.outcome = AnswerOutcome::broken;
    answers.words = "the record has no report of a GPU";
  }
  answers.conclude();
  return answers;
}

std::map<std::string, GpuAnswers> gpu_answers(const Run& run, const EvidenceReader& evidence) {
  std::map<std::string, GpuAnswers> answers;
  for (const auto& node : run.plan.site.nodes) answers[node.name].words = "its GPUs were not asked";
  each_question(run, evidence, plan::kGpuIdentityProbe, [&](const Question& question) {
    GpuAnswers found{.outcome = AnswerOutcome::no_answer,
                     .words = "the attempt to ask its GPUs has no complete record"};
    if (question.record && question.record->end.status == Status::skip)
      found.words = question.record->end.reason;
    else if (question.record && question.record->end.status == Status::complete)
      found = gpu_answers_in(*question.record, question.nonce);
    take(answers[question.node], std::move(found));
  });
  for (auto& [node, of_node] : answers) {
    if (of_node.gpus.empty()) continue;
    for (const auto& uuid : named_gpus(run, evidence, node)) {
      if (!of_node.gpus.contains(uuid))
        of_node.gpus[uuid] = {.outcome = AnswerOutcome::no_answer,
                              .words = "a record of the node names it, and no report was asked of it"};
    }
    if (of_node.outcome == AnswerOutcome::answered) of_node.conclude();
  }
  return answers;
}

}  // namespace assay::judge
