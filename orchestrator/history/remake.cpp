// remake: makes the database again from all additions.
#include <filesystem>

#include "orchestrator/files/atomic_file.h"
#include "orchestrator/files/digest.h"
#include "orchestrator/files/exit_codes.h"
#include "orchestrator/history/entries.h"
#include "orchestrator/history/history_internal.h"

namespace assay::history {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCompanions[] = {"-wal", "-shm"};  // files that SQLite keeps next to a database

/// Keeps other writers away from a database that can still be opened.
struct Guard {
  explicit Guard(const std::string& path) : database(path, true, false), all(database) {}
  Database database;
  Transaction all;
};

/// Refuses where another process writes; a damaged database has no writer.
std::unique_ptr<Guard> guard_of(const std::string& path) {
  std::error_code unknown;
  if (!fs::exists(path, unknown)) return nullptr;
  try {
    return std::make_unique<Guard>(path);
  } catch (const Broken& broken) {
    if (broken.failure.exit_code != files::kExitRefused) throw;
  }
  return nullptr;
}

void remove_with_companions(const std::string& path) {
  std::error_code gone;  // a missing file need not be removed
  fs::remove(path, gone);
  for (const char* more : kCompanions) fs::remove(path + more, gone);
}

void move(const std::string& from, const std::string& to) {
  std::error_code absent;
  if (!fs::exists(from, absent)) return;
  if (auto problem = files::move_to_new(from, to)) throw Broken({*problem, files::kExitBadInput});
}

}  // namespace

void History::Internal::keep_entry(const char* kind, const std::string& text) const {
  Statement last(database, "SELECT (SELECT coalesce(max(id),0) FROM sweep)+(SELECT coalesce(max(id),0) FROM event)");
  last.step();
  const std::string file = path + ".raw/" + entry_name(last.whole(0) + 1, kind);
  try {
    files::write_durably(file, compressed(text, file));
  } catch (const std::system_error& error) {
    throw Broken(Failure{{file, error.what(), "nothing was added; check the free space"}, files::kExitBadInput});
  }
}

Result<Remade> remake(const std::string& path) {
  return guarded([&] {
    const auto entries = entry_files(path);
    if (entries.empty())
      throw Broken({{path + ".raw", "holds no additions to a history", "name the database that it belonged to"},
                    files::kExitBadInput});
    const std::string fresh = path + ".new", old = path + ".old";
    if (fs::exists(old))
      throw Broken(
          {{old, "is there already", "it is the database before the last time: move it away"}, files::kExitBadInput});
    const auto guard = guard_of(path);
    remove_with_companions(fresh);
    Remade made{.old = old};
    {
      auto history = taken(History::open(fresh, Access::create));
      history.replay_into(path);
      for (const auto& file : entries) {
        const Entry entry = entry_from(expanded(file), file);
        if (const auto* sweep = std::get_if<Sweep>(&entry))
          made.sweeps += taken(history.add(*sweep)).already ? 0 : 1;
        else if (const auto* event = std::get_if<drift::Event>(&entry))
          made.events += history.add_event(*event) ? 1 : 0;
        else if (const auto& baseline = std::get<Baseline>(entry); true)
          made.baselines += taken(history.set_baseline(baseline.acceptance, baseline.who)) > 0 ? 1 : 0;
      }
    }
    move(path, old);
    for (const char* more : kCompanions) move(path + more, old + more);
    move(fresh, path);
    return made;
  });
}

}  // namespace assay::history
