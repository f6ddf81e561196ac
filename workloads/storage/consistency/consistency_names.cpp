// consistency_names: the cases rename, unlink, listing and append_together; the table of all is in
// consistency_cases.cpp.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <exception>
#include <iterator>
#include <system_error>

#include <fcntl.h>

#include <fmt/format.h>

#include "workloads/storage/consistency/consistency_cases.h"
#include "workloads/storage/shared/concurrent_work.h"
#include "workloads/storage/shared/storage_file.h"

namespace assay::cluster_storage {
namespace {

constexpr std::uint64_t kRenames = 4;  // over one name, so that looks fall between two steps of some
constexpr int kLooksMeanwhile = 40;
constexpr std::uint64_t kTogether = 4;  // records that each of two appends at the same time

/// The reader's view of a removed file. A client that still takes the name for a file whose handle the server has
/// forgotten gets a stale handle: its name is old.
Look look_at_removed(const std::string& path, const Content& old) {
  try {
    return judge_content(content_on_storage(path), std::nullopt, old);
  } catch (const std::system_error& refused) {
    if (refused.code() != std::error_code(ESTALE, std::generic_category())) throw;
    return {Seen::old, "the name is still there, of a stale handle"};
  }
}

/// Says at the end of its scope that something no longer goes on.
struct Ending {
  std::atomic<bool>& goes_on;
  ~Ending() { goes_on = false; }
};

}  // namespace

/// Looks at the name while it is renamed over, at least as long as the own renames `go_on`, which begin with the
/// writer's: each time there must be one of the files, whole.
Look ConsistencyCases::watch_renames(const Pair& pair, const std::vector<Content>& generations,
                                     const std::atomic<bool>& go_on) const {
  for (int look = 0; look < kLooksMeanwhile || go_on; ++look) {
    const auto found = content_on_storage(pair.theirs + "target");
    if (!found) return {Seen::wrong, "while others were renamed to its name, there was no such file"};
    if (std::ranges::find(generations, *found) == generations.end())
      return {Seen::wrong, "while others were renamed to its name, none of them was there whole"};
  }
  return {};
}

/// The writer renames whole files over one name, which the reader reads meanwhile and afterwards.
void ConsistencyCases::renames(const Pair& pair) {
  const std::string mine = pair.mine + "target";
  const auto fresh = [](std::uint64_t number) { return fmt::format("fresh-{}", number); };
  std::vector<Content> written, read;
  for (std::uint64_t number = 0; number <= kRenames; ++number) {
    written.push_back(content(pair.self, pair.round, 8 + number));
    read.push_back(content(pair.writer, pair.round, 8 + number));
  }
  const auto made = made_by_all(Case::rename, mine, written[0]);
  Look meanwhile;
  std::exception_ptr refused;
  bool renamed = false;
  const auto rename_all = [&] {
    for (std::uint64_t number = 1; number <= kRenames; ++number) {
      write_durably(pair.mine + fresh(number), O_CREAT | O_EXCL, written[number]);
      rename_on_storage(pair.mine + fresh(number), mine);
    }
  };
  std::atomic<bool> go_on = true;
  run_concurrently(2, [&](std::size_t which) {
    if (which == 0) {
      const Ending ending{go_on};
      if (made[pair.self]) renamed = attempt(Case::rename, rename_all, settings_.names[pair.self]);
      return;
    }
    if (!made[pair.writer]) return;
    try {
      meanwhile = watch_renames(pair, read, go_on);
    } catch (const std::system_error&) {
      refused = std::current_exception();
    }
  });
  const auto look_back = [&] {
    if (refused) std::rethrow_exception(refused);
    return meanwhile;
  };
  if (made[pair.writer]) check(pair, Case::rename, look_back);
  const auto look_after = [&]() -> Look {
    const auto found = content_on_storage(pair.theirs + "target");
    const auto earlier = std::ranges::find_if(read, [&](const Content& one) { return found == one; });
    if (earlier != read.end() && earlier != std::prev(read.end()))
      return {Seen::old, "a file stands there that others were renamed over"};
    Look after = judge_content(found, read.back(), read.front());
    if (after.seen != Seen::right || !content_on_storage(pair.theirs + fresh(kRenames))) return after;
    return {Seen::old, "the name that it had before is still there"};
  };
  if (done_by_all(renamed)[pair.writer]) check(pair, Case::rename, look_after);
  group_.barrier();
}

/// Both append to one file at the same time: every record must be there, once.
void ConsistencyCases::append_together(const Pair& pair) {
  const std::string mine = pair.mine + "log", theirs = pair.theirs + "log";
  const auto made = made_by_all(Case::append_together, mine, {});
  const auto record = [&](std::uint64_t rank, std::uint64_t file, std::uint64_t number) {
    return content(rank, pair.round, (file == rank ? 16 : 16 + kTogether) + number);
  };
  const auto append_all = [&](const std::string& path, std::uint64_t file) {
    for (std::uint64_t number = 0; number < kTogether; ++number)
      write_durably(path, O_APPEND, record(pair.self, file, number));
  };
  const auto both = [&] {
    run_concurrently(2, [&](std::size_t which) {
      if (which == 0 && made[pair.self]) append_all(mine, pair.self);
      if (which == 1 && made[pair.writer]) append_all(theirs, pair.writer);
    });
  };
  const auto done = done_by_all(attempt(Case::append_together, both, settings_.names[pair.self]));
  if (made[pair.writer] && done[pair.self] && done[pair.writer]) {
    std::vector<Content> records;
    for (std::uint64_t number = 0; number < kTogether; ++number) {
      records.push_back(record(pair.writer, pair.writer, number));
      records.push_back(record(pair.self, pair.writer, number));
    }
    check(pair, Case::append_together, [&] { return judge_records(content_on_storage(theirs), records); });
  }
  group_.barrier();
}

/// A file that the reader has in its caches is removed.
void ConsistencyCases::unlinks(const Pair& pair) {
  const std::string mine = pair.mine + "removed", theirs = pair.theirs + "removed";
  const Content old = content(pair.writer, pair.round, 7);
  const auto made = made_by_all(Case::unlink, mine, content(pair.self, pair.round, 7));
  if (made[pair.writer])
    attempt(
        Case::unlink, [&] { (void)content_on_storage(theirs); }, pair.who);
  group_.barrier();
  act_and_check(
      pair, Case::unlink, [&] { unlink_on_storage(mine); }, [&] { return look_at_removed(theirs, old); });
}

/// A file is removed and another made in a directory that the reader has listed.
void ConsistencyCases::listings(const Pair& pair) {
  const auto made = made_by_all(Case::listing, pair.mine + "goes", {});
  if (made[pair.writer])
    attempt(
        Case::listing, [&] { (void)names_on_storage(pair.theirs); }, pair.who);
  group_.barrier();
  const auto change = [&] {
    unlink_on_storage(pair.mine + "goes");
    write_durably(pair.mine + "comes", O_CREAT | O_EXCL, {});
  };
  act_and_check(pair, Case::listing, change, [&]() -> Look {
    const auto found = names_on_storage(pair.theirs);
    const auto times = [&](const char* name) { return std::ranges::count(found, name); };
    if (times("comes") > 1) return {Seen::wrong, "the listing has one name twice"};
    if (times("comes") == 0) return {Seen::old, "the listing lacks a file that was made"};
    if (times("goes") > 0) return {Seen::old, "the listing has a file that was removed"};
    return {};
  });
}

}  // namespace assay::cluster_storage
