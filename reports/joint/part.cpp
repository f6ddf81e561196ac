// part: verify's checks, then that no two parts are the same dossier; the parts as one plan and one journal with only
// the steps that limits of the fleet need.
#include "reports/joint/part.h"

#include <algorithm>

#include <fmt/format.h>

#include "orchestrator/files/digest.h"
#include "orchestrator/judge/cells/judge.h"
#include "orchestrator/judge/cells/part_identities.h"
#include "orchestrator/plan/derived.h"
#include "reports/dossier/hardware_trust.h"
#include "reports/dossier/sign.h"

namespace assay::joint {
namespace {

InputError of_part(const std::string& name, InputError error) {
  error.where = fmt::format("part {}: {}", name, error.where);
  return error;
}

std::expected<dossier::Verified, InputError> verify_part(const std::string& directory,
                                                         const dossier::Envelope& envelope, const Trust& trust) {
  std::vector<dossier::PublicKey> keys;
  for (const auto& key : trust.keys) {
    if (dossier::is_signed_by(envelope, key)) keys.push_back(key);
  }
  if (keys.empty() && !trust.expected.trust) {
    return std::unexpected(InputError{dossier::kStatementFile, "has no valid signature of any key that was given",
                                      "give the public key of each signer, too, or a --policy that has all of them"});
  }
  return dossier::verify_envelope(directory, envelope, keys, trust.expected);
}

/// Plan and journal, as they were verified.
std::expected<judge::Run, InputError> run_of(const std::string& directory, const dossier::CheckedContents& contents) {
  auto run = judge::read_run(directory);
  if (!run) return run;
  const auto journal = files::sha256_of_file(directory + "/journal.jsonl");
  if (!journal) return std::unexpected(journal.error());
  if (run->plan_sha256 != contents.verdict.plan_sha256 || *journal != contents.journal_sha256)
    return std::unexpected(
        InputError{directory, "changed while it was read", "no other process may write to a dossier"});
  return run;
}

bool is_of_fleet(const plan::Plan& plan, const std::string& id) {
  const auto* requirement = plan.requirement(id);
  return requirement != nullptr && requirement->limit.reference == plan::Reference::fleet_median;
}

std::optional<InputError> check_may_join(const Part& part, Kind kind) {
  const auto& verdict = part.verified.contents.verdict;
  if (verdict.overall == judge::Overall::accepted || (kind == Kind::expand && waits_for_fleet(part)))
    return std::nullopt;
  return InputError{"part " + part.name, fmt::format("is {}: {}", to_string(verdict.overall), verdict.reason),
                    "only accepted dossiers are joined; others need a further run"};
}

/// That two parts are different runs, judged by the same targets.
std::optional<InputError> check_pair(const Part& first, const Part& other, Kind kind) {
  const auto& a = first.verified.contents;
  const auto& b = other.verified.contents;
  const auto refused = [&](const std::string& what, const std::string& hint) {
    return InputError{fmt::format("part {} and part {}", first.name, other.name), what, hint};
  };
  if (first.statement_sha256 == other.statement_sha256 || a.verdict.run_id == b.verdict.run_id)
    return refused(fmt::format("are of the same run {}", a.verdict.run_id), "each run is joined once");
  if (a.targets_sha256 != b.targets_sha256) {
    return refused(
        fmt::format("have other targets: {} revision {} ({}), {} revision {} ({})", a.verdict.profile,
                    a.profile_revision, a.targets_sha256, b.verdict.profile, b.profile_revision, b.targets_sha256),
        "one statement is of one profile; `assay verify --profile` shows the difference limit by limit");
  }
  if (kind == Kind::merge && a.verdict.site == b.verdict.site)
    return refused(fmt::format("are both of the site {}", a.verdict.site), "`assay expand` joins runs of one site");
  if (kind == Kind::merge) return std::nullopt;
  if (a.verdict.site != b.verdict.site)
    return refused(fmt::format("are of the sites {} and {}", a.verdict.site, b.verdict.site),
                   "`assay merge` joins runs of several sites");
  const auto twice = std::ranges::find_if(
      a.nodes, [&](const std::string& node) { return std::ranges::find(b.nodes, node) != b.nodes.end(); });
  if (twice == a.nodes.end()) return std::nullopt;
  return refused(fmt::format("both test the node {}", *twice), "a site grows by nodes that it did not have");
}

std::string place_of(const Part& part, const std::string& node) {
  return fmt::format("{} of part {}", node, part.name);
}

/// That every agent was on a machine of its own, by host name and boot.
std::optional<InputError> check_boots(const std::vector<Part>& parts) {
  struct Place {
    const Part* part;
    std::string words;
  };
  std::map<std::string, Place> seen;
  for (const auto& part : parts) {
    for (const auto& [node, said] : part.run.journal.node_facts) {
      const std::string boot = said.value("boot_id", "");
      if (boot.empty()) continue;
      const auto [known, is_new] =
          seen.emplace(said.value("name", "") + "\n" + boot, Place{.part = &part, .words = place_of(part, node)});
      if (!is_new && known->second.part != &part)
        return InputError{"parts",
                          fmt::format("{} and {} are one machine: host name {}, boot {}", known->second.words,
                                      place_of(part, node), said.value("name", ""), boot),
                          "each machine is in one part"};
    }
  }
  return std::nullopt;
}

/// That no part of a machine is in two of them, by what their records show.
std::optional<InputError> check_identities(const std::vector<Part>& parts) {
  judge::PartIdentities identities;
  for (const auto& part : parts) {
    const judge::Machines machines(part.run.journal);
    for (const auto& step : part.run.plan.steps) {
      if (step.nodes.size() != 1) continue;
      const auto found = judge::collect(part.run.plan, step, part.run.journal.attempts.of(step.id), part.run.journal,
                                        machines, part.evidence);
      auto named = step;
      named.nodes.front() = place_of(part, step.nodes.front());
      identities.look(named, found);
    }
  }
  const auto twins = identities.twins();
  if (!twins) return std::nullopt;
  return InputError{"parts",
                    fmt::format("{} and {} show the same {} {}", twins->a, twins->b, twins->kind, twins->identity),
                    "each machine is in one part; exchanged or moved parts are measured again"};
}

/// Path of a file of the whole.
struct Source {
  const judge::EvidenceReader* reader = nullptr;
  judge::EvidenceFile file;
};

/// One run of all nodes. Steps have the name of their part in front, so that two of the same order and place differ.
struct Whole {
  plan::Plan plan;
  judge::Journal journal;
  std::map<std::string, Source> files;
};

std::set<std::string> fleet_limits(const plan::Profile& profile) {
  std::set<std::string> ids;
  for (const auto& requirement : profile.requirements) {
    if (requirement.limit.reference == plan::Reference::fleet_median) ids.insert(requirement.id);
  }
  return ids;
}

std::string renamed(const Part& part, const std::string& step) { return fmt::format("{}.{}", part.name, step); }

/// `path` of an attempt of `step`, as it is called under the step's name in the whole.
std::string moved(const Part& part, const std::string& path, const std::string& step) {
  const auto at = path.find("/" + step + "/");
  return at == std::string::npos ? path : path.substr(0, at + 1) + part.name + "." + path.substr(at + 1);
}

void add_plan(Whole& whole, const Part& part, const std::set<std::string>& limits, std::set<std::string>& steps) {
  const plan::Plan& plan = part.run.plan;
  for (const auto& step : plan.steps) {
    const bool judged = std::ranges::any_of(step.requirements, [&](const auto& id) { return limits.contains(id); });
    // The inventory bounds every honest figure.
    if (!judged && step.probe != plan::kInventoryProbe) continue;
    steps.insert(step.id);
    whole.plan.steps.push_back(step);
    whole.plan.steps.back().id = renamed(part, step.id);
  }
  for (const auto& cell : plan.coverage) {
    if (!limits.contains(cell.requirement)) continue;
    whole.plan.coverage.push_back(cell);
    if (!cell.step.empty()) whole.plan.coverage.back().step = renamed(part, cell.step);
  }
}

void add_journal(Whole& whole, const Part& part, const std::set<std::string>& steps) {
  const judge::Journal& journal = part.run.journal;
  whole.journal.node_facts.insert(journal.node_facts.begin(), journal.node_facts.end());
  std::ranges::copy(journal.node_events, std::back_inserter(whole.journal.node_events));
  for (const auto& [step, why] : journal.left_out) whole.journal.left_out[renamed(part, step)] = why;
  for (const auto& [step, why] : journal.more_attempts) whole.journal.more_attempts[renamed(part, step)] = why;
  for (const auto& attempt : journal.attempts) {
    if (attempt.is_extra() || !steps.contains(attempt.step)) continue;
    judge::Attempt own = attempt;
    own.step = renamed(part, attempt.step);
    for (auto& file : own.evidence) {
      const judge::EvidenceFile original = file;
      file.path = moved(part, file.path, attempt.step);
      whole.files[file.path] = {.reader = &part.evidence, .file = original};
    }
    whole.journal.attempts.push_back(own);
  }
}

std::optional<InputError> check_probes(const std::vector<Part>& parts, const Whole& whole) {
  std::set<std::string> used;
  for (const auto& step : whole.plan.steps) used.insert(step.probe);
  for (const auto& part : parts) {
    for (const auto& name : used) {
      const auto& first = parts.front().run.plan.probes;
      const auto a = first.find(name);
      const auto b = part.run.plan.probes.find(name);
      if (a != first.end() && b != part.run.plan.probes.end() &&
          a->second.description.revision == b->second.description.revision)
        continue;
      return InputError{fmt::format("part {} and part {}", parts.front().name, part.name),
                        fmt::format("measured with another revision of {}", name),
                        "figures of two revisions are not of one fleet; measure with one version of assay"};
    }
  }
  return std::nullopt;
}

}  // namespace

bool waits_for_fleet(const Part& part) {
  const plan::Plan& plan = part.run.plan;
  const auto& verdict = part.verified.contents.verdict;
  if (verdict.overall != judge::Overall::incomplete || !part.run.journal.finished || plan.quick || !plan.only.empty() ||
      plan.simulation)
    return false;
  return std::ranges::all_of(verdict.results, [&](const judge::Result& result) {
    return !result.required || result.outcome == judge::Outcome::pass || is_of_fleet(plan, result.requirement);
  });
}

std::expected<Part, InputError> open_part(const std::string& directory, const std::string& name, const Trust& trust) {
  const auto envelope = dossier::envelope_in(directory, dossier::kStatementFile, dossier::kLargestEnvelope);
  if (!envelope) return std::unexpected(of_part(name, envelope.error()));
  auto verified = verify_part(directory, *envelope, trust);
  if (!verified) return std::unexpected(of_part(name, verified.error()));
  const std::string evidence_folder = fmt::format("{}/{}", directory, dossier::kEvidenceFolder);
  auto run = run_of(evidence_folder, verified->contents);
  if (!run) return std::unexpected(of_part(name, run.error()));
  Part part{.name = name,
            .verified = std::move(*verified),
            .statement_sha256 = files::sha256(envelope->payload),
            .run = std::move(*run),
            .evidence = judge::evidence_in(evidence_folder)};
  part.serials = dossier::recorded_serials(part.run, part.evidence);
  return part;
}

std::optional<InputError> check_together(const std::vector<Part>& parts, Kind kind) {
  if (parts.size() < 2) return InputError{"parts", "is only one dossier", "name two dossiers or more"};
  for (const auto& part : parts) {
    if (auto problem = check_may_join(part, kind)) return problem;
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (auto problem = check_pair(parts[j], parts[i], kind)) return problem;
    }
  }
  if (auto problem = check_boots(parts)) return problem;
  return check_identities(parts);
}

std::expected<judge::Results, InputError> judge_fleet(const std::vector<Part>& parts) {
  const plan::Plan& first = parts.front().run.plan;
  const auto limits = fleet_limits(first.profile);
  if (limits.empty()) return judge::Results{};
  Whole whole{.plan = first};
  whole.plan.steps.clear();
  whole.plan.coverage.clear();
  whole.plan.searches.clear();
  whole.plan.agreed_stability.reset();  // each part has its own
  whole.plan.site.nodes.clear();
  whole.journal.finished = true;
  for (const auto& part : parts) {
    std::set<std::string> steps;
    add_plan(whole, part, limits, steps);
    add_journal(whole, part, steps);
    std::ranges::copy(part.run.plan.site.nodes, std::back_inserter(whole.plan.site.nodes));
  }
  if (auto problem = check_probes(parts, whole)) return std::unexpected(*problem);
  return judge::judge_cells(whole.plan, whole.journal,
                            [&](const judge::EvidenceFile& file) -> std::expected<std::string, InputError> {
                              const auto known = whole.files.find(file.path);
                              if (known == whole.files.end())
                                return std::unexpected(InputError{file.path, "is no evidence of any part", ""});
                              return (*known->second.reader)(known->second.file);
                            });
}

}  // namespace assay::joint
