// doctor_command: missing parts of this machine by probe, from the probes themselves.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <system_error>

#include <stdlib.h>
#include <unistd.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "orchestrator/cli/commands.h"
#include "orchestrator/cli/run_stages.h"
#include "orchestrator/cli/table_json.h"
#include "orchestrator/files/terminal.h"
#include "orchestrator/plan/programs.h"
#include "probes/core/child.h"
#include "probes/core/json_io.h"
#include "probes/core/text.h"

namespace assay::cli {
namespace {

/// A probe that has all that it needs measures for longer, and is ended then; one that lacks something says so within a
/// fraction of a second.
constexpr Seconds kPatience{2};

/// The refusal of a probe of several nodes to run on one, which is no defect of this machine.
constexpr std::string_view kAlone = "one rank alone";

struct Finding {
  std::string name, state, reason;  ///< ready, missing, several_nodes or error
};

/// The last line of the record in `log`, which also has the probe's text for people; null if there is none.
nlohmann::json end_of(const std::string& log) {
  const auto text = read_file(log);
  if (!text) return nullptr;
  nlohmann::json end;
  for (std::size_t begin = 0, after = 0; (after = text->find('\n', begin)) != std::string::npos; begin = after + 1) {
    const auto line = std::string_view(*text).substr(begin, after - begin);
    if (!line.starts_with('{')) continue;
    const auto document = parse_json(line, log);
    if (document && document->is_object() && document->contains("end")) end = document->at("end");
  }
  return end;
}

Finding examine(const plan::Program& program, const std::string& folder) {
  const std::string log = fmt::format("{}/{}.log", folder, program.name);
  const auto done = run_child(program.path, {"--quick"}, kPatience, {.directory = folder, .log = log});
  if (done.end == ChildEnd::overdue) return {program.name, "ready", "began to measure, and was ended"};
  const auto end = end_of(log);
  const auto text = [&](const char* name) {
    return end.is_object() && end.contains(name) && end[name].is_string() ? end[name].get<std::string>()
                                                                          : std::string();
  };
  if (text("status") == "complete") return {program.name, "ready", "measured"};
  const std::string reason = text("reason");
  if (text("status") == "skip") {
    if (reason.starts_with(kAlone))
      return {program.name, "several_nodes", "measures between nodes: see `assay site check`"};
    return {program.name, "missing", reason};
  }
  return {program.name, "error",
          reason.empty() ? fmt::format("ended with exit code {} and without a word", done.code) : reason};
}

/// Programs that assay itself starts on this machine.
std::vector<Finding> examine_head() {
  std::vector<Finding> all;
  const std::string agent = plan::installation().binaries + "/assay-node";
  all.push_back(::access(agent.c_str(), X_OK) == 0
                    ? Finding{"assay-node", "ready", agent}
                    : Finding{"assay-node", "missing", agent + " cannot be executed: it is installed beside assay"});
  const auto program = [&](const char* name, const char* purpose) {
    const auto path = find_program(name);
    all.push_back(path ? Finding{name, "ready", *path}
                       : Finding{name, "missing", fmt::format("is not in PATH: {}", purpose)});
  };
  program("ssh", "nodes of launcher ssh cannot be reached; Debian's package is openssh-client");
  program("fio", "the storage probes skip; Debian's package is fio");
  return all;
}

/// A folder for the files of the probes, which goes with them.
class Scratch {
 public:
  explicit Scratch(std::string pattern) : path_(std::move(pattern)) {
    if (::mkdtemp(path_.data()) == nullptr) throw std::system_error(errno, std::generic_category(), path_);
  }
  ~Scratch() {
    std::error_code ignored;  // the remains are in the directory that was named
    std::filesystem::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string table(const std::vector<Finding>& all, std::size_t width) {
  std::size_t longest = 0;
  for (const auto& one : all) longest = std::max(longest, one.name.size());
  std::string text;
  for (const auto& one : all) {
    std::string state = one.state;
    std::ranges::replace(state, '_', ' ');
    text += files::wrapped(harmless(one.reason), width, fmt::format("{:<{}}  {:<13}  ", one.name, longest, state));
  }
  const auto count = [&](const char* state) { return std::ranges::count(all, std::string(state), &Finding::state); };
  return text + fmt::format("\n{} ready, {} for several nodes, {} missing something, {} with an error\n",
                            count("ready"), count("several_nodes"), count("missing"), count("error"));
}

}  // namespace

int command_doctor(const std::string& directory, bool json) {
  const auto programs = plan::find_programs(plan::installation().probes);
  if (!programs) return report_error(programs.error());
  std::error_code failure;
  const std::string parent = directory.empty() ? std::filesystem::temp_directory_path(failure).string() : directory;
  if (!std::filesystem::is_directory(parent, failure))
    return report_error({parent, "is not a folder", "name one on the storage that is to be tested with --directory"});
  const Scratch scratch(parent + "/assay-doctor-XXXXXX");
  std::vector<Finding> all = examine_head();
  for (const auto& program : *programs) all.push_back(examine(program, scratch.path()));
  if (json) {
    nlohmann::ordered_json rows, counts;
    for (const char* state : {"ready", "several_nodes", "missing", "error"})
      counts[state] = std::ranges::count(all, std::string(state), &Finding::state);
    for (const auto& one : all) rows.push_back({{"name", one.name}, {"state", one.state}, {"reason", one.reason}});
    print_table("doctor", std::move(counts), std::move(rows));
  } else {
    std::cout << harmless_page(table(all, files::terminal_of(STDOUT_FILENO).width));
  }
  const bool broken = std::ranges::any_of(all, [](const Finding& one) { return one.state == "error"; });
  return broken ? files::kExitRejected : files::kExitSuccess;
}

}  // namespace assay::cli
