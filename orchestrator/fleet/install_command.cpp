// install_command: `assay install`: writes files and nothing else; the user installs them.
#include <filesystem>
#include <iostream>

#include "orchestrator/cli/run_stages.h"
#include "orchestrator/files/atomic_file.h"
#include "orchestrator/fleet/nightly.h"
#include "orchestrator/fleet/sweep_measure.h"
#include "orchestrator/plan/programs.h"
#include "orchestrator/sweep/install_files.h"
#include "probes/core/text.h"

namespace assay::cli {

int command_install(const InstallArguments& given) {
  const auto kind = from_word<sweep::InstallKind>(given.what);
  if (!kind)
    return report_error({given.what, "cannot be installed", "known are " + words_listed<sweep::InstallKind>()});
  const auto budget = seconds_of("--budget", given.budget);
  if (!budget) return report_error(budget.error());
  const auto files = sweep::install_files(*kind, {.assay = plan::installation().binaries + "/assay",
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
                                                  .gpu_resource = given.gpu_resource});
  if (!files) return report_error(files.error());
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
