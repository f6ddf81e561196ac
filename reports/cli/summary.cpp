// summary: five lines, each whole, so that none of them has to be looked for among nodes and digests.
#include "reports/cli/summary.h"

#include <algorithm>
#include <iostream>

#include <fmt/ranges.h>

#include "probes/core/text.h"

namespace assay::report_cli {
namespace {

/// An open property, with the option that pins it and the fact as the signer has it.
std::string open_words(const std::string& what, const Summary& summary) {
  if (what == "site") return "site (--site FILE)";
  if (what == "nodes") return fmt::format("nodes ({}: --nodes)", summary.nodes);
  if (what == "machines") return "machines (--serials)";
  if (what == "run") return "run, of which there may be others (--run-id, --head)";
  if (what == "agreement") return "agreement (--risk, --stability)";
  if (what == "age") return fmt::format("age (ended {}: --max-age)", summary.ended);
  return fmt::format("{0} (--{0})", what);
}

void line(const std::string& text) { std::cout << fmt::format("  {}\n", harmless(text)); }

/// "; TPM answered with the key 1f…, bound to its endorsement key"; empty for a node whose TPM was not asked.
std::string tpm_words(const nlohmann::ordered_json& node) {
  if (!node.contains("tpm")) return "";
  const auto& tpm = node.at("tpm");
  const auto text = [&](const char* name) { return harmless(tpm.at(name).get<std::string>()); };
  if (tpm.at("outcome") != "answered") return fmt::format("; TPM {}: {}", text("outcome"), text("why"));
  return fmt::format("; TPM answered with the key {}, {} to its endorsement key", text("key"),
                     tpm.at("bound_to_endorsement_key").get<bool>() ? "bound" : "NOT bound");
}

/// "; 8 GPUs answered"; empty for a node whose GPUs were not asked.
std::string gpu_words(const nlohmann::ordered_json& node) {
  if (!node.contains("gpu_attestation")) return "";
  const auto& said = node.at("gpu_attestation");
  if (said.at("outcome") == "answered") return fmt::format("; {} GPUs answered", said.at("gpus").size());
  return harmless(
      fmt::format("; GPUs {}: {}", said.at("outcome").get<std::string>(), said.at("why").get<std::string>()));
}

}  // namespace

Pins pins_of(const dossier::Expectations& expected, bool witnessed) {
  const bool plan = !expected.plan_sha256.empty();
  const bool site = plan || expected.whole_site || !expected.site_sha256.empty();
  const std::pair<const char*, bool> all[] = {{"profile", plan || expected.profile || !expected.targets_sha256.empty()},
                                              {"probes", plan || !expected.probes.empty()},
                                              {"site", site},
                                              {"nodes", site || !expected.nodes.empty() || !expected.serials.empty()},
                                              {"machines", !expected.serials.empty()},
                                              {"run", !expected.run_id.empty() || witnessed},
                                              {"age", expected.begun_after || expected.max_age}};
  Pins pins;
  for (const auto& [what, pinned] : all) (pinned ? pins.pinned : pins.open).emplace_back(what);
  if (!expected.challenge.empty()) pins.pinned.emplace_back("challenge");
  if (expected.risk || expected.stability) pins.pinned.emplace_back("agreement");
  if (expected.tpm.demands()) pins.pinned.emplace_back("TPMs");
  if (expected.gpu.demands()) pins.pinned.emplace_back("GPUs");
  if (expected.no_deviations) pins.pinned.emplace_back("deviations");
  return pins;
}

void add_tpm(const judge::TpmAnswer& answer, nlohmann::ordered_json& node) {
  if (answer.outcome == judge::AnswerOutcome::not_asked) return;
  node["tpm"] = {{"outcome", answer.outcome},
                 {"why", answer.words},
                 {"key", answer.key},
                 {"bound_to_endorsement_key", answer.activated},
                 {"registers_sha256", answer.pcr_digest}};
}

void add_gpus(const judge::GpuAnswers& answers, nlohmann::ordered_json& node) {
  if (answers.outcome == judge::AnswerOutcome::not_asked) return;
  auto all = nlohmann::ordered_json::array();
  for (const auto& [uuid, gpu] : answers.gpus) {
    all.push_back({{"uuid", uuid},
                   {"outcome", gpu.outcome},
                   {"why", gpu.words},
                   {"key", gpu.key},
                   {"driver", gpu.driver},
                   {"vbios", gpu.vbios}});
  }
  node["gpu_attestation"] = {{"outcome", answers.outcome}, {"why", answers.words}, {"gpus", std::move(all)}};
}

std::string hardware_words(const nlohmann::ordered_json& node) { return tpm_words(node) + gpu_words(node); }

void print_summary(const Summary& summary) {
  std::cout << fmt::format("{}\n", harmless(summary.verdict));
  line(fmt::format("{}", fmt::join(summary.signers, "; ")));
  std::vector<std::string> open;
  for (const auto& what : summary.pins.open) open.push_back(open_words(what, summary));
  line(fmt::format("pinned: {}; NOT pinned: {}",
                   summary.pins.pinned.empty() ? "nothing" : fmt::format("{}", fmt::join(summary.pins.pinned, ", ")),
                   open.empty() ? "nothing" : fmt::format("{}", fmt::join(open, ", "))));
  const auto& deviations = summary.deviations;
  line(deviations.empty() ? "no deviations in the run"
                          : fmt::format("{} deviations, first: {}", deviations.size(), deviations.front()));
  const bool agreed = std::ranges::find(summary.pins.pinned, "profile") != summary.pins.pinned.end();
  line(fmt::format("profile {}: {}; {}", summary.profile,
                   agreed             ? "the expected targets"
                   : summary.built_in ? "targets as built into this version"
                                      : "NOT those of a built-in profile",
                   summary.unknown.empty()
                       ? "every probe is known"
                       : fmt::format("described by the signer alone: {}", fmt::join(summary.unknown, ", "))));
}

}  // namespace assay::report_cli
