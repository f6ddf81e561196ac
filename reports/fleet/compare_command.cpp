// compare_command: `assay compare`.

#include <iostream>

#include <unistd.h>

#include "orchestrator/files/atomic_file.h"
#include "orchestrator/files/terminal.h"
#include "orchestrator/judge/verdict.h"
#include "orchestrator/plan/loosened.h"
#include "probes/core/command.h"
#include "probes/core/text.h"
#include "reports/compare/shown.h"
#include "reports/fleet/commands.h"

namespace assay::report_cli {
namespace {

/// The run or dossier at `path`.
std::expected<dossier::OpenedRun, InputError> side_at(const std::string& path, const dossier::Signers& signers) {
  if (!is_folder(path)) return std::unexpected(not_a_folder(path));
  const std::string directory = without_slash(path);
  if (auto problem = check_run_is_over(directory)) return std::unexpected(*problem);
  return dossier::open_run(directory, signers);
}

/// With --no-worse: whether something got worse, a figure or the outcome of a cell that passed, which a condition and a
/// count of faults have alone; and whether nothing shows that: B is A, nothing passed in A, or B does not judge what A
/// judges, or by less.
judge::Overall no_worse(const compare::Comparison& all, const compare::Side& a, const compare::Side& b) {
  bool worse = all.counts.at("worse") > 0, open = a.content.journal_sha256 == b.content.journal_sha256, any = false;
  for (const auto& pair : all.requirements) {
    const auto* of_a = a.content.run.plan.requirement(pair.id);
    const auto* of_b = b.content.run.plan.requirement(pair.id);
    const bool by_less =
        !pair.method.empty() || (of_a != nullptr && of_b != nullptr && !plan::loosened_in(*of_a, *of_b, "A").empty());
    if (pair.design == compare::Design::subjects) open = open || pair.tested == 0;
    any = any || pair.tested > 0;
    for (const auto& cell : pair.cells) {
      worse = worse || cell.finding == compare::Finding::worse;
      if (cell.a == nullptr || cell.a->outcome != judge::Outcome::pass) continue;
      any = true;
      open = open || by_less;
      if (cell.b == nullptr)
        open = open || pair.design == compare::Design::attempts;
      else
        worse = worse || cell.b->outcome == judge::Outcome::fail, open = open || cell.b->outcome > judge::Outcome::fail;
    }
  }
  return worse ? judge::Overall::rejected : open || !any ? judge::Overall::incomplete : judge::Overall::accepted;
}

int run_compare(const CompareArguments& given) {
  const auto signers = allowed_signers(given.keys, given.policy);
  if (!signers) return bad_input(signers.error());
  for (const auto* path : {&given.a, &given.b}) {
    if (!is_folder(*path)) return bad_input(not_a_folder(*path));
  }
  const auto a = side_at(given.a, *signers);
  if (!a) return refused(a.error());
  const auto b = side_at(given.b, *signers);
  if (!b) return refused(b.error());
  const auto all = compare::compare(*a, *b, {.alpha = given.alpha, .smallest_change = given.smallest_change / 100});
  if (!given.out.empty()) {
    if (const auto problem = files::create_file(given.out, compare::comparison_page(all, *a, *b), 0644))
      return bad_input(*problem);
  }
  std::cout << harmless_page(given.json
                                 ? compare::comparison_json(all, *a, *b)
                                 : compare::comparison_table(all, *a, *b, files::terminal_of(STDOUT_FILENO).width));
  return given.no_worse ? judge::exit_code(no_worse(all, *a, *b)) : files::kExitSuccess;
}

}  // namespace

void add_compare_command(Command& app, CompareArguments& given, Action& action) {
  auto& command = app.add_command("compare", "show what differs between two runs, and what of it can be told apart");
  add_option(command, "a", given.a, "DIR", "folder of a run or of a dossier")->required();
  add_option(command, "b", given.b, "DIR", "the one to compare with it")->required();
  add_repeated(command, "--key", given.keys, "FILE",
               "public key of a signer; refuse dossiers that none of them signed");
  add_option(command, "--policy", given.policy, "FILE",
             "refuse dossiers whose signatures this trust policy does not count");
  command.add_option("--alpha", given.alpha, "probability at most to find any change of a requirement by chance")
      ->with_default()
      ->between(1e-6, 0.5);
  command.add_option("--smallest-change", given.smallest_change, "percent: a smaller change is called small")
      ->with_default()
      ->between(0.0, 100.0);
  add_option(command, "--out", given.out, "FILE", "also write a page with plots");
  command.add_flag("--json", given.json, "print JSON, assay.comparison/1");
  command.add_flag(
      "--no-worse", given.no_worse,
      "exit code 1 where a requirement or a cell got worse, 3 where B is A or does not judge what passed in A, or "
      "by less");
  end_command(command, "Example: assay compare run/dossier again/dossier --key lab.key.pub --out compared.html", action,
              [&] { return run_compare(given); });
}

}  // namespace assay::report_cli
