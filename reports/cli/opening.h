// opening: paths, keys and waivers that commands on runs and dossiers are given, and the errors that they print.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "probes/core/error.h"
#include "reports/dossier/opened_run.h"
#include "reports/dossier/waiver.h"
#include "reports/page/content.h"

namespace assay::report_cli {

/// Prints the error on stderr; returns kExitBadInput.
int bad_input(const InputError& error);
/// The same for a refusal; returns kExitRefused.
int refused(const InputError& error);
/// `path` without the slashes at its end, so that a neighbour's name can be made from it.
std::string without_slash(std::string path);
/// Whether `path` is a folder that can be looked at.
bool is_folder(const std::string& path);
/// The error of a path that is none.
InputError not_a_folder(const std::string& path);
/// The public keys in these files.
std::expected<std::vector<dossier::PublicKey>, InputError> public_keys(const std::vector<std::string>& paths);
/// The signers of dossiers that are opened: the keys in these files, or those that the policy at `policy` counts.
std::expected<dossier::Signers, InputError> allowed_signers(const std::vector<std::string>& keys,
                                                            const std::string& policy);

/// The waivers in these files, checked against the policy and the run.
std::expected<std::vector<dossier::Waiver>, InputError> read_waivers(const std::vector<std::string>& paths,
                                                                     const dossier::TrustPolicy& policy,
                                                                     const dossier::WaivedRun& run,
                                                                     dossier::Moment now);
/// Puts the waivers in these files, counted by the trust policy at `policy`, onto the first page of `content`; the exit
/// code of their error, once it is printed.
std::optional<int> show_waivers(page::ReportContent& content, const std::vector<std::string>& paths,
                                const std::string& policy);

/// The error of a run that a process still writes to; nothing if none does.
std::optional<InputError> check_run_is_over(const std::string& directory);

/// The error of a run directory that was named in place of the dossier in it; nothing for anything else.
std::optional<InputError> check_is_dossier(const std::string& directory);

}  // namespace assay::report_cli
