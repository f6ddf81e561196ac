// assay-node: the agent on a node. One static file; runs probes for an orchestrator on the other end of stdin and
// stdout.
#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <string_view>
#include <system_error>

#include <sys/stat.h>
#include <unistd.h>

#include "orchestrator/node/scratch.h"
#include "orchestrator/node/session.h"
#include "probes/core/command.h"
#include "probes/core/manual.h"
#include "probes/core/text.h"

namespace {

namespace fs = std::filesystem;

/// Whether a file holds this program or its beginning, as a copy does that was broken off: Slurm sends a copy in
/// blocks, and stops if one node does not take them.
bool is_copy(const fs::path& path) {
  std::ifstream copy(path, std::ios::binary), own("/proc/self/exe", std::ios::binary);
  std::array<char, 1 << 16> theirs, ours;
  while (copy.read(theirs.data(), theirs.size()) || copy.gcount() > 0) {
    own.read(ours.data(), copy.gcount());
    if (own.gcount() != copy.gcount() || !std::equal(theirs.begin(), theirs.begin() + copy.gcount(), ours.begin()))
      return false;
  }
  return copy.eof();
}

/// Removes the file that this program was started from, and copies next to it that an srun left when it failed before
/// starting them: Slurm's name, the same user, the same bytes. Another srun that is about to start such a copy fails
/// and is tried again.
void remove_copies() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  if (error) return;
  for (fs::directory_iterator entry(self.parent_path(), error), end; !error && entry != end; entry.increment(error)) {
    struct stat info = {};
    if (!entry->path().filename().string().starts_with("slurm_bcast_") || lstat(entry->path().c_str(), &info) != 0)
      continue;
    if (!S_ISREG(info.st_mode) || info.st_uid != geteuid() || !is_copy(entry->path())) continue;
    std::error_code ignored;  // a copy that cannot be removed stays in the directory
    fs::remove(entry->path(), ignored);
  }
  fs::remove(self, error);
  if (error) std::cerr << "assay-node: cannot remove itself: " << error.message() << '\n';
}

}  // namespace

int main(int argc, char** argv) {
  assay::Command app(
      "Runs probes on this node for assay, which starts it and exchanges messages with it on stdin and stdout.",
      "assay-node");
  assay::node::NodeOptions options;
  std::string programs = "memfd";
  app.add_option("--directory", options.directory, "directory for scratch directories; absolute, created when missing")
      ->required();
  app.add_option("--silence", options.silence.count,
                 "seconds without a message from assay after which every probe is killed [60]")
      ->between(0.1, 86400.0);
  app.add_option("--programs", programs,
                 "storage of programs: memfd (sealed), or file where a policy refuses memfd [memfd]")
      ->one_of({"memfd", "file"});
  bool remove_self = false;
  auto* dial =
      app.add_option("--dial", options.connect_back.endpoints,
                     "ADDRESS:PORT of assay to connect back to, instead of stdin and stdout; the token comes on stdin");
  app.add_option("--pin", options.connect_back.pin, "SHA-256 of the certificate of that assay")->needs(dial);
  app.add_option("--patience", options.connect_back.patience.count,
                 "seconds until assay has taken the connection [120]")
      ->needs(dial)
      ->between(1.0, 86400.0);
  app.add_flag("--remove-self", remove_self, "remove the file of this program, which was copied here for one run");
  app.add_version("assay-node " ASSAY_VERSION);
  app.end_help("Example: assay-node --directory /var/tmp/assay");
  if (argc == 2 && std::string_view(argv[1]) == "--manual") {  // for packages; no option of the help
    std::cout << assay::harmless_page(assay::manual_page(app));
    return 0;
  }
  return assay::run_command_line(
      app,
      [&] {
        if (programs == "file") options.programs = assay::node::ProgramPlace::file;
        if (remove_self) remove_copies();
        if (const auto claimed = assay::node::claim_directory(options.directory); !claimed) {
          std::cerr << "assay-node: " << assay::harmless(claimed.error()) << '\n';
          return 1;
        }
        return assay::node::serve_node(options);
      },
      argc, argv);
}
