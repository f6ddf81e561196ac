// commons_command: contribute, merge, show.

#include <chrono>
#include <iostream>

#include <fmt/format.h>

#include "orchestrator/files/atomic_file.h"
#include "probes/core/command.h"
#include "probes/core/how_many.h"
#include "probes/core/secret_file.h"
#include "probes/core/text.h"
#include "reports/cli/signer_options.h"
#include "reports/commons/commons.h"
#include "reports/fleet/commands.h"

namespace assay::report_cli {
namespace {

/// Signs and writes `document`.
int write(const commons::Document& document, const CommonsArguments& given) {
  const auto key = dossier::load_signer(given.signer);
  if (!key) return bad_input(key.error());
  const auto text = commons::signed_text(document, **key);
  if (!text) return bad_input(text.error());
  if (const auto problem = files::create_file(given.out, *text, 0644)) return bad_input(*problem);
  std::cout << harmless_page(given.out) << '\n';
  return files::kExitSuccess;
}

int run_contribute(const CommonsArguments& given) {
  const auto signers = allowed_signers(given.keys, given.policy);
  if (!signers) return bad_input(signers.error());
  std::vector<dossier::OpenedRun> runs;
  for (const auto& path : given.inputs) {
    if (!is_folder(path)) return bad_input(not_a_folder(path));
    auto run = dossier::open_run(without_slash(path), *signers);
    if (!run) return refused(run.error());
    runs.push_back(std::move(*run));
  }
  auto contribution = commons::contribution_of(runs);
  if (!contribution) return refused(contribution.error());
  const std::size_t groups = contribution->figures.size();
  const int code = write({.kind = commons::FileKind::contribution,
                          .made_on = commons::day_of(std::chrono::system_clock::now()),
                          .figures = std::move(contribution->figures),
                          .boards = std::move(contribution->boards)},
                         given);
  if (code != files::kExitSuccess) return code;
  std::cerr << fmt::format("{} of figures, signed; no node, serial number or time of day is in it\n",
                           how_many(groups, "group"));
  for (const auto& [reason, count] : contribution->left_out)
    std::cerr << fmt::format("left out {}: {}\n", how_many(count, "figure"), harmless(reason));
  return code;
}

/// The signed file at `path`. Prints the error; the exit code is the error.
std::expected<commons::SignedDocument, int> open(const std::string& path, const std::vector<dossier::PublicKey>& keys) {
  const auto text = read_deciding_file(path, commons::kLargestFile);
  if (!text) return std::unexpected(bad_input(text.error()));
  auto document = commons::read_signed(*text, path, keys);
  if (!document) return std::unexpected(refused(document.error()));
  return std::move(*document);
}

int run_merge(const CommonsArguments& given) {
  const auto keys = public_keys(given.keys);
  if (!keys) return bad_input(keys.error());
  std::vector<commons::SignedDocument> all;
  for (const auto& path : given.inputs) {
    auto one = open(path, *keys);
    if (!one) return one.error();
    all.push_back(std::move(*one));
  }
  const auto sum = commons::merged(all, given.inputs, std::chrono::system_clock::now());
  if (!sum) return refused(sum.error());
  const int code = write(*sum, given);
  if (code == files::kExitSuccess)
    std::cerr << fmt::format("{} groups, {} withheld: fewer than {} boards or {} contributors\n", sum->figures.size(),
                             sum->withheld, commons::kLeastBoards, commons::kLeastContributors);
  return code;
}

int run_show(const CommonsArguments& given) {
  const auto keys = public_keys(given.keys);
  if (!keys) return bad_input(keys.error());
  const auto document = open(given.file, *keys);
  if (!document) return document.error();
  std::cout << harmless_page(given.json ? commons::json_of(*document, given.model)
                                        : commons::table(*document, given.model));
  return files::kExitSuccess;
}

void add_keys(Command& command, CommonsArguments& given, bool required) {
  auto* option =
      add_repeated(command, "--with-key", given.keys, "FILE", "public key of a signer of them; may be repeated");
  if (required) option->required();
}

void add_writer(Command& command, CommonsArguments& given, const std::string& whose) {
  add_signer_options(command, given.signer, whose)->required();
  add_option(command, "--out", given.out, "FILE", "file to write")->required();
}

}  // namespace

void add_commons_command(Command& app, CommonsArguments& given, Action& action) {
  auto& parent = app.add_command("commons", "figures of accepted boards of several sites, as a source of limits");
  parent.need_commands(1, 1);
  auto& contribute = parent.add_command("contribute", "sign the figures of accepted dossiers, without names");
  add_option(contribute, "dossiers", given.inputs, "DIR", "folders of dossiers, the newest last")->required();
  add_keys(contribute, given, false);
  add_option(contribute, "--policy", given.policy, "FILE", "or the trust policy that counts their signatures");
  add_writer(contribute, given, " of the site");
  end_command(contribute,
              "Example: assay commons contribute run/dossier --with-key lab.key.pub --key site.key --out site.figures",
              action, [&] { return run_contribute(given); });
  auto& merge = parent.add_command("merge", "add up contributions, and withhold small groups");
  add_option(merge, "contributions", given.inputs, "FILE", "files, one of each site")->required();
  add_keys(merge, given, true);
  add_writer(merge, given, " of the merger");
  end_command(merge,
              "Example: assay commons merge a.figures b.figures c.figures --with-key a.pub --with-key b.pub\n"
              "           --with-key c.pub --key commons.key --out commons.figures",
              action, [&] { return run_merge(given); });
  auto& show = parent.add_command("show", "percentiles of every group, and with --json limits with their source");
  add_option(show, "file", given.file, "FILE", "file of merge or contribute")->required();
  add_keys(show, given, true);
  add_option(show, "--model", given.model, "TEXT", "only groups whose model has this in its name");
  show.add_flag("--json", given.json, "print JSON, assay.commons-shown/1");
  end_command(show, "Example: assay commons show commons.figures --with-key commons.pub --model H200 --json", action,
              [&] { return run_show(given); });
}

}  // namespace assay::report_cli
