// consistency_cases: each case is an act of the writer, an exchange that passes its end on, and a look of the reader.
//
//   case             the reader first   act                             the reader must find       else
//   new_file                            a new file is written           its content                old: none
//   overwrite        has read it        overwritten in place            the new content            old: the old one
//   held_open        has it open, read  overwritten in place            the new content            old: the old one
//   size             has asked size     cut to 1/2, grown to 3/4        3/4, grown part zeros      old: another size
//   append           (itself appends)   a record each, one after other  the writer finds both      old: its own only
//   append_together                     both append records at once     each record, once          old: some missing
//   exclusive                           all make one name at once       one has won                lie: none or more
//                                       it makes a name that is there   refused                    lie: it is not
//   rename           reads meanwhile    files renamed over one name     one of them, whole         wrong: neither
//                                                                       then the last; its old     old: an earlier
//                                                                       name is gone               one, or both names
//   unlink           has read it        removed                         no file                    old: still there
//   listing          has listed it      one file goes, one comes        the one, not the other     old: as before
//
// Content that was never written is wrong. Old content is read again for `wait`: right by then, it is stale; else
// the call that reported success lied. A refused call is a failure, and its look is left out (check_until_right()).
// held_open, append_together and listing are left out with close_to_open_only. The last four are in consistency_names.
#include "workloads/storage/consistency/consistency_cases.h"

#include <algorithm>
#include <system_error>

#include <fcntl.h>

#include <fmt/format.h>

#include "workloads/storage/shared/payload.h"
#include "workloads/storage/shared/storage_file.h"

namespace assay::cluster_storage {
namespace {

constexpr std::uint64_t kGenerations = 32;  // payloads of one rank in one round, at most

}  // namespace

ConsistencyCases::ConsistencyCases(Rendezvous& group, const ConsistencySettings& settings)
    : group_(group), settings_(settings) {}

/// No two generations of a round have anything in common, nor have two ranks or rounds.
Content ConsistencyCases::content(std::uint64_t rank, std::uint64_t round, std::uint64_t generation) const {
  Content bytes(settings_.size);
  fill_payload({.rank = rank, .step = round * kGenerations + generation, .nonce = settings_.nonce}, 0, bytes);
  return bytes;
}

/// Does `work`; whether the storage refused none of it. A refusal is counted.
bool ConsistencyCases::attempt(Case which, const std::function<void()>& work, const std::string& who) {
  try {
    work();
    return true;
  } catch (const std::system_error& error) {
    tallies_[which].fault(&CaseTally::failures, who + ": refused: " + error.what());
    return false;
  }
}

/// By rank, whether it could do its part.
std::vector<bool> ConsistencyCases::done_by_all(bool mine) {
  std::vector<bool> done;
  for (const auto& word : group_.all_gather(mine ? "1" : "0")) done.push_back(word == "1");
  return done;
}

/// Every rank makes a new file; by rank, whether it could.
std::vector<bool> ConsistencyCases::made_by_all(Case which, const std::string& path, const Content& bytes) {
  return done_by_all(attempt(
      which, [&] { write_durably(path, O_CREAT | O_EXCL, bytes); },
      settings_.names[static_cast<std::size_t>(group_.rank())]));
}

void ConsistencyCases::check(const Pair& pair, Case which, const std::function<Look()>& look) {
  attempt(
      which, [&] { check_until_right(tallies_[which], look, settings_.wait, pair.who); }, pair.who);
}

/// Every rank acts on its own files; then each looks at its writer's, where the act was not refused.
void ConsistencyCases::act_and_check(const Pair& pair, Case which, const std::function<void()>& act,
                                     const std::function<Look()>& look) {
  const auto done = done_by_all(attempt(which, act, settings_.names[pair.self]));
  if (done[pair.writer]) check(pair, which, look);
  group_.barrier();
}

void ConsistencyCases::round(std::uint64_t number, int shift) {
  const auto world = static_cast<std::uint64_t>(group_.world());
  const auto self = static_cast<std::uint64_t>(group_.rank());
  const auto back = static_cast<std::uint64_t>(shift);
  const auto folder = [&](std::uint64_t rank) { return fmt::format("{}/{:04}-{:06}", settings_.folder, number, rank); };
  Pair pair{.round = number, .self = self, .writer = (self + world - back) % world, .reader = (self + back) % world};
  pair.mine = folder(self) + "/";
  pair.theirs = folder(pair.writer) + "/";
  pair.who = fmt::format("{} to {}", settings_.names[pair.writer], settings_.names[self]);
  const auto folders = done_by_all(attempt(
      Case::new_file, [&] { mkdir_on_storage(folder(self)); }, settings_.names[self]));
  if (std::ranges::any_of(folders, [](bool made) { return !made; })) return;  // nothing can be looked at
  close_to_open(pair);
  sizes(pair);
  append(pair);
  exclusive(pair);
  renames(pair);
  unlinks(pair);
  if (settings_.close_to_open_only) return;
  held_open(pair);
  append_together(pair);
  listings(pair);
}

/// A new file, which the reader then has in its caches; then the same overwritten in place, and opened again.
void ConsistencyCases::close_to_open(const Pair& pair) {
  const std::string mine = pair.mine + "content", theirs = pair.theirs + "content";
  const auto mine_of = [&](std::uint64_t generation) { return content(pair.self, pair.round, generation); };
  const Content first = content(pair.writer, pair.round, 0), second = content(pair.writer, pair.round, 1);
  act_and_check(
      pair, Case::new_file, [&] { write_durably(mine, O_CREAT | O_EXCL, mine_of(0)); },
      [&] { return judge_content(content_on_storage(theirs), first, std::nullopt); });
  act_and_check(
      pair, Case::overwrite, [&] { write_durably(mine, 0, mine_of(1)); },
      [&] { return judge_content(content_on_storage(theirs), second, first); });
}

/// A file is overwritten in place while the reader has it open and has read it.
void ConsistencyCases::held_open(const Pair& pair) {
  const std::string mine = pair.mine + "held", theirs = pair.theirs + "held";
  const Content old = content(pair.writer, pair.round, 2), now = content(pair.writer, pair.round, 3);
  const auto made = made_by_all(Case::held_open, mine, content(pair.self, pair.round, 2));
  Descriptor held;
  if (made[pair.writer]) {
    attempt(
        Case::held_open,
        [&] {
          held = open_on_storage(theirs, O_RDONLY);
          (void)read_on_storage(held, theirs);
        },
        pair.who);
  }
  group_.barrier();
  const auto done = done_by_all(attempt(
      Case::held_open, [&] { write_durably(mine, 0, content(pair.self, pair.round, 3)); }, settings_.names[pair.self]));
  if (done[pair.writer] && held)
    check(pair, Case::held_open, [&] { return judge_content(read_on_storage(held, theirs), now, old); });
  group_.barrier();
}

/// Cut to half, then grown to three quarters: the size is seen, and the grown part is zeros.
void ConsistencyCases::sizes(const Pair& pair) {
  const std::string mine = pair.mine + "size", theirs = pair.theirs + "size";
  const std::size_t cut = settings_.size / 2, grown = settings_.size / 4 * 3;
  const Content old = content(pair.writer, pair.round, 4);
  Content now(old.begin(), old.begin() + static_cast<std::ptrdiff_t>(cut));
  now.resize(grown);
  const auto made = made_by_all(Case::size, mine, content(pair.self, pair.round, 4));
  if (made[pair.writer])
    attempt(
        Case::size, [&] { (void)size_on_storage(theirs); }, pair.who);  // the reader's caches may now hold the old size
  group_.barrier();
  const auto change = [&] {
    Descriptor file = open_on_storage(mine, O_WRONLY);
    resize_on_storage(file, cut, mine);
    resize_on_storage(file, grown, mine);
    sync_and_close(std::move(file), mine);
  };
  act_and_check(pair, Case::size, change, [&]() -> Look {
    if (const auto size = size_on_storage(theirs); size != grown)
      return {Seen::old, fmt::format("the size is {} B, not {} B", size, grown)};
    return judge_content(content_on_storage(theirs), now, old);
  });
}

/// A record by the writer, then one by the reader, which the writer must see behind its own.
void ConsistencyCases::append(const Pair& pair) {
  const std::string mine = pair.mine + "append", theirs = pair.theirs + "append";
  const auto made = made_by_all(Case::append, mine, content(pair.self, pair.round, 5));
  bool appended = false;
  if (made[pair.writer]) {
    appended = attempt(
        Case::append, [&] { write_durably(theirs, O_APPEND, content(pair.self, pair.round, 6)); },
        settings_.names[pair.self]);
  }
  const auto all_appended = done_by_all(appended);
  const Content old = content(pair.self, pair.round, 5);
  Content now = old;
  const Content second = content(pair.reader, pair.round, 6);
  now.insert(now.end(), second.begin(), second.end());
  if (all_appended[pair.reader]) {
    Pair back = pair;
    back.who = fmt::format("{} to {}", settings_.names[pair.reader], settings_.names[pair.self]);
    check(back, Case::append, [&] { return judge_content(content_on_storage(mine), now, old); });
  }
  group_.barrier();
}

/// All make one name at once: one must win. Then the reader makes a name that is there: it must learn that it is.
void ConsistencyCases::exclusive(const Pair& pair) {
  const std::string name = fmt::format("{}/{:04}-won-by-one", settings_.folder, pair.round);
  bool won = false;
  group_.barrier();
  const auto answered = done_by_all(attempt(
      Case::exclusive, [&] { won = make_alone(name); }, settings_.names[pair.self]));
  const auto winners = std::ranges::count(done_by_all(won), true);
  auto& tally = tallies_[Case::exclusive];
  const auto lie = [&](std::uint64_t count, const std::string& text) { tally.fault(&CaseTally::lies, text, count); };
  if (pair.self == 0 && std::ranges::find(answered, false) == answered.end()) {
    ++tally.checks;
    if (winners != 1) {
      lie(static_cast<std::uint64_t>(std::abs(winners - 1)),
          fmt::format("{} of {} nodes were answered that they alone made {}", winners, answered.size(), name));
    }
  }
  const std::string mine = pair.mine + "taken", theirs = pair.theirs + "taken";
  const auto made = made_by_all(Case::exclusive, mine, {});
  if (made[pair.writer]) {
    const auto make_again = [&] {
      ++tally.checks;
      if (make_alone(theirs)) lie(1, pair.who + ": answered that it alone made a file that was there: " + theirs);
    };
    attempt(Case::exclusive, make_again, pair.who);
  }
  group_.barrier();
}

}  // namespace assay::cluster_storage
