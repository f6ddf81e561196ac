// journal_guard: refuses journal lines with members that their kind does not have, and lines whose times do not ascend.
#include "orchestrator/judge/evidence/journal_guard.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "orchestrator/plan/simulation.h"
#include "probes/core/utc_time.h"

namespace assay::judge {
namespace {

using nlohmann::json;
using Members = std::vector<std::string_view>;

/// The members of each kind of line, besides `time` and `kind`, and `schema` of the first. A new one belongs here too.
const std::map<std::string, Members, std::less<>>& members_by_kind() {
  static const std::map<std::string, Members, std::less<>> kMembers = {
      {"run_begin", {"run_id", "plan_sha256", "by", "kind_of_run"}},
      {"run_resume", {"by"}},
      {"node_up", {"node", "facts"}},
      {"node_down", {"node", "reason"}},
      {"attempt_begin", {"step", "attempt", "node", "nodes", "purpose", "asked"}},
      {"attempt_end", {"step", "attempt", "outcome", "reason", "evidence"}},
      {"watch_begin", {"watch", "probe"}},
      {"watch_end", {"watch", "outcome", "reason", "evidence"}},
      {"second_stage_begin", {"steps"}},
      {"localise_begin", {}},
      {"steps_left_out", {"reason", "steps"}},
      {"clock_jump", {"by_s"}},
      {"run_interrupt", {}},
      {"run_end", {}}};
  return kMembers;
}

const Members kEvidenceMembers = {"path", "sha256", "bytes"};

/// A member of `object` that is not among `known`.
std::optional<std::string> unknown_member(const json& object, const Members& known) {
  for (const auto& [name, value] : object.items()) {
    if (std::ranges::find(known, name) == known.end()) return name;
  }
  return std::nullopt;
}

std::optional<std::string> problem_of_members(const json& line, const std::string& kind, bool first) {
  const auto known = members_by_kind().find(kind);
  if (known == members_by_kind().end()) return fmt::format("unknown kind '{}'", kind);
  Members members = known->second;
  members.insert(members.end(), {"time", "kind"});
  if (first) members.emplace_back("schema");
  if (const auto name = unknown_member(line, members)) return fmt::format("a {} has no member '{}'", kind, *name);
  if (const auto files = line.find("evidence"); files != line.end() && files->is_array()) {
    for (const auto& file : *files) {
      if (!file.is_object()) return "its evidence is not a list of files";
      if (const auto name = unknown_member(file, kEvidenceMembers))
        return fmt::format("a file of evidence has no member '{}'", *name);
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> JournalGuard::problem_of(const json& line) {
  if (!line.is_object()) return "is not an object";
  for (const char* name : {"kind", "time"}) {
    if (!line.contains(name) || !line.at(name).is_string()) return fmt::format("'{}' is missing or not a text", name);
  }
  const std::string kind = line.at("kind");
  const bool first = !last_;
  if (auto problem = problem_of_members(line, kind, first)) return problem;
  const std::string time = line.at("time");
  const auto now = utc_time(time);
  if (!now) return fmt::format("'time' is not UTC with milliseconds: '{}'", time);
  // A simulation counts virtual time step by step, and is never a measurement.
  const bool simulated = first ? line.value("kind_of_run", json()) == plan::kSimulated : journal_.simulated;
  if (!first && !simulated) {
    if (auto problem = problem_of_time(line, kind, *now)) return problem;
  }
  last_ = now;
  journal_.last = time;
  return std::nullopt;
}

std::optional<std::string> JournalGuard::problem_of_time(const json& line, const std::string& kind, Moment now) {
  constexpr double kRounding_s = 0.002;  // both times are cut to milliseconds
  const double passed_s = std::chrono::duration<double>(now - *last_).count();
  if (kind == "clock_jump") {
    const auto by = line.find("by_s");
    if (by == line.end() || !by->is_number() || !std::isfinite(by->get<double>())) return "'by_s' is not a number";
    // Time by the wall clock is the true time, which is not negative, plus the jump.
    if (passed_s + kRounding_s >= by->get<double>()) return std::nullopt;
    return fmt::format("the time goes from {} to {}, which a jump by {} s does not explain", journal_.last,
                       line.at("time").get<std::string>(), by->dump());
  }
  if (passed_s >= -kMostDrift_s) return std::nullopt;
  if (kind == "run_resume") {
    journal_.clock_jumps.push_back({.time = line.at("time"), .by_s = passed_s});
    return std::nullopt;
  }
  return fmt::format("the time goes back from {} to {} without a clock_jump", journal_.last,
                     line.at("time").get<std::string>());
}

}  // namespace assay::judge
