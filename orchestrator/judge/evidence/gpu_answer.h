// gpu_answer: the attestation report of a GPU, and whether it answers the question of its attempt.
//
// A report is the request and the response of one exchange, GET_MEASUREMENTS and MEASUREMENTS of SPDM 1.1 (DMTF
// DSP0274): the GPU signs both with the key of the first certificate of its chain, ECDSA on P-384 over SHA-384. The
// second certificate is that of its identity key, which vouches for the first. Numbers are little endian. Layout, order
// of the chain and opaque fields as NVIDIA's verifier reads them: github.com/NVIDIA/nvtrust at 02817309 (2026-04-20),
// guest_tools/gpu_verifiers/local_gpu_verifier; what is signed also by DMTF's github.com/DMTF/libspdm,
// doc/standard_measurement_report.md.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "orchestrator/judge/evidence/hardware_answer.h"

namespace assay::judge {

/// An attestation report.
struct GpuReport {
  std::string nonce;                         ///< of the request, bytes
  std::map<unsigned, std::string> measured;  ///< measurements by index, bytes
  std::string driver, vbios;                 ///< versions as the GPU states them; empty if it does not
  std::string signed_bytes, signature;       ///< the signature is r and s, 48 bytes each
};

/// The report in `bytes`; nothing for other bytes.
std::optional<GpuReport> gpu_report(std::string_view bytes);

/// Whether `report` is signed by the key of the first certificate in `chain` (PEM).
bool is_signed_by(std::string_view chain, const GpuReport& report);

/// SHA-256 of the identity key of a GPU, hexadecimal: of the public key (SubjectPublicKeyInfo) of the second
/// certificate in `chain` (PEM). Empty if that has not issued the first, or there is none.
std::string identity_key(std::string_view chain);

/// The question to the GPU `uuid` of an attempt with this attempt_nonce, 64 hexadecimal digits: the SHA-256 of both.
std::string gpu_nonce(const std::string& nonce, const std::string& uuid);

/// Answer of one GPU.
struct GpuAnswer {
  AnswerOutcome outcome = AnswerOutcome::no_answer;
  std::string words;                    ///< why, for people; empty if answered
  std::string key = {};                 ///< identity_key
  std::string driver = {}, vbios = {};  ///< as in GpuReport
  std::string chain = {};               ///< its certificates, PEM
};

/// Answers of the GPUs of a node.
struct GpuAnswers {
  AnswerOutcome outcome = AnswerOutcome::not_asked;  ///< that of the first GPU that has not answered
  std::string words = {};                            ///< why, with the name of the GPU; empty if all answered
  std::map<std::string, GpuAnswer> gpus = {};        ///< by UUID
  /// Takes outcome and words of the first GPU that has not answered, if there is one.
  void conclude();
};

/// The answers in `record`, which is complete, to the question with this attempt_nonce. Two GPUs with one identity key
/// are broken.
GpuAnswers gpu_answers_in(const Record& record, const std::string& nonce);

/// By node of the site the answers in its last attempt that asked; where an earlier one does not hold, that one. A GPU
/// that health_gpu or health_inventory names of the node and the record does not have is no_answer.
std::map<std::string, GpuAnswers> gpu_answers(const Run& run, const EvidenceReader& evidence);

}  // namespace assay::judge
