// waive_command: `assay-report waive`, and waivers that other commands are given.
#include <iostream>

#include <fmt/format.h>

#include "orchestrator/files/atomic_file.h"
#include "probes/core/text.h"
#include "probes/core/utc_time.h"
#include "reports/cli/commands.h"
#include "reports/dossier/sign.h"

namespace assay::report_cli {
namespace {

/// The waiver of the chosen cells of the verified run.
std::expected<dossier::Waiver, InputError> waiver_of(const WaiveArguments& given, const dossier::Verified& verified,
                                                     const dossier::TrustPolicy& policy, const dossier::PublicKey& key,
                                                     dossier::Moment now) {
  const auto until = given_time(given.until);
  if (!until || *until <= now) {
    return std::unexpected(InputError{"--until", fmt::format("'{}' is not a time to come", given.until),
                                      std::string(kGivenTimeHint) + "; the waiver holds before it"});
  }
  const auto& verdict = verified.contents.verdict;
  auto cells = dossier::cells_to_waive(
      verdict, {.requirement = given.requirement, .node = given.node, .subject = given.subject});
  if (!cells) return std::unexpected(cells.error());
  const auto by = dossier::listed(policy, key.fingerprint());
  return dossier::Waiver{.run_id = verdict.run_id,
                         .plan_sha256 = verdict.plan_sha256,
                         .verdict_sha256 = verified.contents.verdict_sha256,
                         .cells = std::move(*cells),
                         .reason = given.reason,
                         .until = utc_text(*until),
                         .issued_at = utc_text(now),
                         .role = by.party->role,
                         .name = by.signer->name,
                         .organisation = by.party->name,
                         .key_fingerprint = key.fingerprint()};
}

}  // namespace

int run_waive(const WaiveArguments& given) {
  if (!is_folder(given.directory)) return bad_input(not_a_folder(given.directory));
  const std::string directory = without_slash(given.directory);
  if (const auto problem = check_is_dossier(directory)) return bad_input(*problem);
  const auto loaded = dossier::load_signer(given.signer);
  if (!loaded) return bad_input(loaded.error());
  const dossier::Signer& key = **loaded;
  const auto expected = expectations_of(given.expected);
  if (!expected) return bad_input(expected.error());
  if (!expected->trust) return bad_input({"--policy", "is missing: it says who may waive", ""});
  const auto before = dossier::before_signing(*expected, key);
  if (!before) return refused(before.error());
  if (const auto problem =
          dossier::check_may_waive(*before->trust, dossier::listed(*before->trust, key.public_key().fingerprint())))
    return refused(*problem);
  const auto verified = dossier::verify_dossier(directory, {}, *before);
  if (!verified) return refused(verified.error());
  const auto waiver = waiver_of(given, *verified, *before->trust, key.public_key(), *expected->now);
  if (!waiver) return bad_input(waiver.error());
  const auto text = dossier::waiver_text(*waiver, key);
  if (!text) return bad_input(text.error());
  // Nothing is written that verify would refuse.
  const auto again = dossier::check_waiver(
      *text, given.out, *expected->trust, {{waiver->key_fingerprint, key.public_key()}},
      {verified->contents.verdict, verified->contents.verdict_sha256, verified->contents.ended}, *expected->now);
  if (!again) return refused(again.error());
  if (const auto problem = files::create_file(given.out, *text, 0644)) return bad_input(*problem);
  print_verified(*verified, *before);
  for (const auto& cell : dossier::shown(*waiver).cells) std::cout << fmt::format("waived: {}\n", harmless(cell));
  std::cout << harmless_page(given.out) << '\n';
  return files::kExitSuccess;
}

}  // namespace assay::report_cli
