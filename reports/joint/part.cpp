// part: verify's checks, then that no two parts are the same dossier.
#include "reports/joint/part.h"

#include <algorithm>

#include <fmt/format.h>

#include "orchestrator/files/digest.h"
#include "orchestrator/judge/cells/part_identities.h"
#include "reports/dossier/serials.h"
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
            .evidence = judge::evidence_in(evidence_folder),
            .serials = {}};
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

}  // namespace assay::joint
