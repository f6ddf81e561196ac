// verdict_table: columns for people.
#include "orchestrator/judge/verdict_table.h"

#include <algorithm>

#include <fmt/format.h>

#include "probes/core/scale.h"

namespace assay::judge {
namespace {

std::string accepted_from(const Result& result) {
  if (result.acceptance_low && result.acceptance_high) {
    return fmt::format("{} .. {}", for_people(*result.acceptance_low, result.unit),
                       for_people(*result.acceptance_high, result.unit));
  }
  if (result.acceptance_low) return ">= " + for_people(*result.acceptance_low, result.unit);
  if (result.acceptance_high) return "<= " + for_people(*result.acceptance_high, result.unit);
  return "-";
}

std::string subject_of(const Result& result) {
  return result.subject.kind == "node" || result.subject.id == result.node
             ? result.node
             : fmt::format("{} {} {}", result.node, result.subject.kind, result.subject.id);
}

/// Who is at fault where nodes that work together fell short, with the tests that show it.
std::string localised_text(const Verdict& verdict) {
  std::string text;
  for (const auto& one : verdict.localised) {
    text += fmt::format("  {}{}: {}\n", fmt::join(one.requirements, ", "), one.step.empty() ? "" : " in " + one.step,
                        one.reason);
    for (const auto& culprit : one.culprits)
      text += fmt::format("    {} (shown by {})\n", culprit.words, fmt::join(culprit.tests, ", "));
    if (!one.undecided.empty()) text += fmt::format("    undecided: {}\n", fmt::join(one.undecided, ", "));
  }
  return text.empty() ? "" : "\nlocated faults:\n" + text;
}

}  // namespace

std::string verdict_table(const Verdict& verdict) {
  std::string text = verdict.simulated ? "\nSIMULATION: nothing was measured\n" : "";
  text += fmt::format("\n{:<34} {:<20} {:>16} {:>22}  {}\n", "requirement", "subject", "value", "accepted", "outcome");
  std::string reasons;
  for (const auto& result : verdict.results) {
    const std::string value = result.value ? for_people(*result.value, result.unit) : "-";
    text += fmt::format("{:<34} {:<20} {:>16} {:>22}  {}{}\n", result.requirement, subject_of(result), value,
                        accepted_from(result), to_string(result.outcome), result.required ? "" : " (advisory)");
    if (result.outcome != Outcome::pass)
      reasons += fmt::format("  {} on {}: {}\n", result.requirement, subject_of(result), result.reason);
  }
  if (!reasons.empty()) text += "\nnot passed:\n" + reasons;
  text += localised_text(verdict);
  for (const auto& deviation : verdict.deviations) text += fmt::format("deviation: {}\n", deviation.what);
  std::string overall = to_string(verdict.overall);
  std::ranges::transform(overall, overall.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  text += fmt::format("\n{}: {}\n", overall, verdict.reason);
  std::ranges::replace_if(
      text, [](unsigned char c) { return (c < 0x20 && c != '\n') || c == 0x7f; }, ' ');
  return text;
}

}  // namespace assay::judge
