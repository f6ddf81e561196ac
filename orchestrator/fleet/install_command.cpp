// install_command: `assay install`: writes files and nothing else; the user installs them.
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string>

#include <sys/vfs.h>

#include "orchestrator/cli/run_stages.h"
#include "orchestrator/files/atomic_file.h"
#include "orchestrator/fleet/nightly.h"
#include "orchestrator/fleet/sweep_measure.h"
#include "orchestrator/history/history.h"
#include "orchestrator/plan/programs.h"
#include "orchestrator/sweep/install_files.h"
#include "probes/core/text.h"

namespace assay::cli {
namespace {

/// An error where the folder of the database `history` exists here on a file system that no database may be on.
std::optional<InputError> unfit_place(const std::string& history) {
  struct statfs facts {};
  // One that is not here is made later, or on another machine.
  if (::statfs(std::filesystem::path(history).parent_path().c_str(), &facts) != 0) return std::nullopt;
  const auto unfit = history::unfit_file_system(static_cast<std::uint64_t>(facts.f_type));
  if (!unfit) return std::nullopt;
  return InputError{history, *unfit,
                    "name a file on a local disk of the machine that sweeps: --history /var/local/assay/history.db"};
}

}  // namespace

int command_install(const InstallArguments& given) {
  const auto kind = from_word<sweep::InstallKind>(given.what);
  if (!kind)
    return report_error({given.what, "cannot be installed", "known are " + words_listed<sweep::InstallKind>()});
  const auto budget = seconds_of("--budget", given.budget);
  if (!budget) return report_error(budget.error());
  const sweep::InstallRequest request{.assay = plan::installation().binaries + "/assay",
                                      .site = given.site,
                                      .profile = given.profile,
                                      .budget = given.budget,
                                      .budget_s = budget->count,
                                      .at = given.at,
                                      .until = given.until,
                                      .folder = given.folder,
                                      .image = given.image,
                                      .kube_namespace = given.kube_namespace,
                                      .gpus = given.gpus,
                                      .nodes = given.nodes,
                                      .gpu_resource = given.gpu_resource,
                                      .history = given.history};
  const auto files = sweep::install_files(*kind, request);
  if (!files) return report_error(files.error());
  if (*kind != sweep::InstallKind::npd) {  // which has no database
    if (const auto problem = unfit_place(sweep::history_of(request))) return report_error(*problem);
  }
  std::error_code problem;
  std::filesystem::create_directories(given.out, problem);
  for (const auto& [name, text] : *files) {
    const std::string path = given.out + "/" + name;
    if (auto failure = files::create_file(path, text, name.ends_with(".sh") ? 0755 : 0644))
      return report_error(*failure);
    std::cout << harmless(path) << '\n';
  }
  std::cerr << "written; nothing was installed or started\n";
  if (*kind == sweep::InstallKind::timer)
    std::cerr << "next: copy them to /etc/systemd/system, then `systemctl enable --now assay-sweep.timer`\n";
  return files::kExitSuccess;
}

}  // namespace assay::cli
