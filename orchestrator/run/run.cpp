// run: checks before the first step, and errors when evidence cannot be written.
#include "orchestrator/run/run.h"

#include <algorithm>
#include <system_error>

#include <unistd.h>

#include <fmt/format.h>
#include <boost/uuid/random_generator.hpp>
#include <boost/uuid/uuid_io.hpp>

#include "orchestrator/files/atomic_file.h"
#include "orchestrator/run/runner.h"

namespace assay::run {
namespace {

/// "process 4711 on head1": the journal names it to another process that finds the run locked.
std::string process_identity() {
  char host[256] = {};
  if (::gethostname(host, sizeof host - 1) != 0) host[0] = '\0';
  return fmt::format("process {} on {}", ::getpid(), host[0] == '\0' ? "an unnamed host" : host);
}

/// The installed probes must be the planned ones, by SHA-256.
std::optional<InputError> check_programs(const plan::Plan& plan, const std::vector<plan::Program>& programs) {
  for (const auto& [name, planned] : plan.probes) {
    const auto found = std::ranges::find(programs, name, &plan::Program::name);
    if (found == programs.end()) return InputError{name, "is in the plan but not in this build", "plan again"};
    if (found->sha256 != planned.sha256)
      return InputError{found->path, "is not the binary that was planned",
                        "plan again, or use the build that made the plan"};
    for (const auto& [machine, sha256] : planned.builds) {
      const auto build = found->builds.find(machine);
      if (build == found->builds.end() || build->second.sha256 != sha256)
        return InputError{fmt::format("{} for {}", name, machine), "is not the binary that was planned",
                          "plan again, or use the build that made the plan"};
    }
  }
  return std::nullopt;
}

/// The journal in the run directory, read while it is locked; empty for a fresh run.
std::expected<judge::Journal, InputError> earlier(const std::string& directory, const std::string& plan_sha256) {
  const std::string path = directory + "/journal.jsonl";
  const auto text = read_file(path);
  if (!text) return std::unexpected(text.error());
  if (text->find('\n') == std::string::npos) return judge::Journal{};  // killed before its first line was complete
  auto journal = judge::read_journal(*text, path);
  if (journal && journal->plan_sha256 != plan_sha256)
    return std::unexpected(InputError{directory, "the journal belongs to another plan", "restore plan.json"});
  return journal;
}

std::expected<RunEnd, InputError> execute(const plan::Plan& plan, const std::string& plan_sha256,
                                          const std::vector<plan::Program>& programs, const RunOptions& options,
                                          Progress& progress) {
  const std::string path = options.directory + "/journal.jsonl";
  const bool exists = ::access(path.c_str(), F_OK) == 0;
  if (exists && !options.resume)
    return std::unexpected(
        InputError{options.directory, "already contains a run", "use --resume to continue it, or another --out"});
  if (!exists && options.resume)
    return std::unexpected(InputError{path, "does not exist: there is no run to resume",
                                      "start one with `assay run plan.json --out DIR`"});
  judge::JournalWriter writer(path);
  auto journal = earlier(options.directory, plan_sha256);
  if (!journal) return std::unexpected(journal.error());
  if (journal->finished) return RunEnd::finished;
  if (journal->run_id.empty()) {
    writer.write(judge::JournalEntry::run_begin(boost::uuids::to_string(boost::uuids::random_generator()()),
                                                plan_sha256, process_identity()));
    journal->plan_sha256 = plan_sha256;
  } else {
    for (const char* folder : {"/records", "/logs"}) files::remove_partial_files(options.directory + folder);
    writer.write(judge::JournalEntry::run_resume(process_identity()));
  }
  RunJournal run_journal(plan, options.directory, std::move(*journal), std::move(writer), progress, options.records);
  return Runner(plan, programs, options, run_journal, progress).go();
}

}  // namespace

std::expected<RunEnd, InputError> run(const plan::Plan& plan, const std::string& plan_sha256,
                                      const std::vector<plan::Program>& programs, const RunOptions& options,
                                      Progress& progress) {
  if (plan.simulation) {
    return std::unexpected(InputError{options.directory + "/plan.json",
                                      "is the plan of a simulation, which measures nothing",
                                      "plan the site to be measured with `assay plan`"});
  }
  if (auto problem = check_programs(plan, programs)) return std::unexpected(*problem);
  try {
    return execute(plan, plan_sha256, programs, options, progress);
  } catch (const judge::JournalInUse& error) {
    return std::unexpected(InputError{
        options.directory, fmt::format("is in use by {}", error.what()),
        "wait until it ends, or name another --out; two runs at once would disturb each other's measurements"});
  } catch (const std::system_error& error) {
    return std::unexpected(
        InputError{options.directory, fmt::format("evidence cannot be written: {}", error.what()),
                   "free space or fix permissions, then `assay run --resume`: finished steps are kept"});
  }
}

}  // namespace assay::run
