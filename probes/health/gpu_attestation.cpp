// gpu_attestation: the attestation report of every GPU over the question of the attempt, with its certificates.
//   1. The question of a GPU is the SHA-256 of the attempt's and the GPU's UUID, so that no two GPUs share an answer.
//   2. NVML has the GPU sign its measurements and the question, and gives the certificates of the key.
// Nothing is changed, nothing is sent to a service. Without --challenge the question is of zeros, which answers
// nothing.
#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>

#include <fmt/format.h>

#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "probes/core/sha256.h"
#include "probes/core/text.h"
#include "probes/nvml/nvml_gpu.h"

namespace assay::health {
namespace {

constexpr Parameter kParameters[] = {
    parameter("nvml_library", "", nvml_api::kLibrary, "file name or path of NVML"),
};

constexpr Metric kMetrics[] = {
    lower("report_time", "s", "wall time until the driver gave report and certificates of a GPU that has them",
          Recorded::if_reported),
};

constexpr ConditionSpec kConditions[] = {
    {.name = "attested", .meaning = "whether all GPUs that the driver lists gave a report, or some of them"},
    {.name = "gpus_listed", .meaning = "GPUs that the driver counts"},
    {.name = "driver_version", .meaning = "version of the NVIDIA driver"},
    {.name = "confidential_computing",
     .meaning = "on, devtools (on, and open to debuggers), off or not_reported, as the driver states it"},
    if_reported("attestation_report",
                "request and response of SPDM GET_MEASUREMENTS of a GPU, with its signature, hexadecimal"),
    if_reported("certificate_chain", "certificates of the key that signed, that key's first, PEM in hexadecimal"),
    if_occurred("attestation_error", "why a GPU gave no report, in NVML's words, if one did not"),
};

constexpr ProbeSpec kSpec{
    .name = "gpu_attestation",
    .measures = "Which GPUs a node has by keys in them, and that they answer the question of this attempt.",
    .method =
        "NVML asks each GPU for its attestation report over the SHA-256 of the receiver's challenge, the plan, the "
        "node "
        "and the journal so far, and of its UUID, and for its certificates. Judging checks structure, signature and "
        "question; `assay-report verify --gpu-roots` and `--gpu-keys` check whose GPU it is, `--crls` whether it is "
        "revoked. Measurements, and the firmware's digest in the certificate, are compared with nothing; versions are "
        "shown as the GPU states them. Run on made-up GPUs only so far, and read one published report of an H100.",
    .source =
        "NVIDIA nvml.h of go-nvml at 2f9e261f (2026-07-01); NVIDIA nvtrust at 02817309 (2026-04-20), "
        "guest_tools/gpu_verifiers/local_gpu_verifier; DMTF DSP0274 1.1, GET_MEASUREMENTS.",
    .needs = "GPUs and a driver of NVIDIA with confidential computing on",
    .typical = {5},
    .deadline = {300},
    .parameters = kParameters,
    .metrics = kMetrics,
    .conditions = kConditions,
    .between_runs = {.least = 0.3,
                     .source = "Assumed on 2026-11-28: the time of a report depends on the GPU's other users; no real "
                               "one was measured yet."}};

/// Why no GPU has a report, for people.
std::string absence(const nvml::Nvml& nvml, nvml_api::Return code) {
  const std::string state = nvml.confidential_computing();
  if (code == nvml_api::kFunctionNotFound)
    return fmt::format("the NVML of driver {} has no call for attestation reports: install a newer driver",
                       nvml.driver_version());
  if (code == nvml_api::kNoPermission) return "the driver gives this user no attestation report: run as root";
  if (state == "off") return "confidential computing is off in the driver: GPUs give no attestation reports";
  return fmt::format("no GPU has an attestation report: {} (confidential computing: {})", nvml.words(code), state);
}

void measure(const Parameters& given, const Placement& placement, Recorder& record) {
  constexpr std::size_t kDigits = 64;
  const auto& challenge = placement.challenge;
  const std::string nonce = challenge.empty() ? std::string(kDigits, '0') : challenge.substr(0, challenge.find(':'));
  if (nonce.size() != kDigits || !from_hexadecimal(nonce))
    throw std::runtime_error("challenge: does not begin with 64 hexadecimal digits");
  const nvml::Nvml nvml(given.text("nvml_library"));
  const auto gpus = nvml.gpus();
  if (gpus.empty()) throw Skip("the NVIDIA driver lists no GPU");
  std::size_t attested = 0;
  std::optional<nvml_api::Return> absent;
  for (const auto& gpu : gpus) {
    const auto uuid = gpu.uuid().value;
    const Subject subject{.kind = "gpu", .id = uuid.value_or(fmt::format("index-{}", gpu.index()))};
    const auto begin = std::chrono::steady_clock::now();
    const auto answer = gpu.attestation(sha256_of(fmt::format("assay.gpu/1\n{}\n{}\n", nonce, subject.id)));
    const double time_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (!answer.value) {
      if (!answer.failed()) absent = answer.code;
      record.condition("attestation_error", nvml.words(answer.code), subject);
      continue;
    }
    ++attested;
    record.condition("attestation_report", to_hexadecimal(answer.value->report), subject);
    record.condition("certificate_chain", to_hexadecimal(answer.value->certificates), subject);
    record.measurement("report_time", time_s, subject);
  }
  if (attested == 0 && absent) throw Skip(absence(nvml, *absent));
  if (attested == 0) throw std::runtime_error("every GPU answered the question for its report with an error");
  record.condition("attested", attested == gpus.size() ? "all" : "some");
  record.condition("gpus_listed", static_cast<std::int64_t>(gpus.size()));
  record.condition("driver_version", nvml.driver_version());
  record.condition("confidential_computing", nvml.confidential_computing());
}

}  // namespace
}  // namespace assay::health

int main(int argc, char** argv) { return assay::probe_main(argc, argv, assay::health::kSpec, assay::health::measure); }
