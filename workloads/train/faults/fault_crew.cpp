// fault_crew: puts requests to ranks and waits, one tick of the fleet after the other (watched_fleet.h), until all have
// answered or some are lost. The requests, as fault_rank.cpp answers them:
//   hello                  greet(), restock(): the slot reports its free memory
//   be                     begin(), rebuild(): the slot becomes a rank, with the weights of step 0
//   introduce, enter       connect(): addresses of all, then the connections of group number group_ and a key for beats
//   run, save              ask(): the work; with a fault for one rank
//   leave                  begin(), abort(): nothing of the group is left
//   spoil, lend, restore   restore(): a copy is damaged on purpose, sent to another rank, checked and taken back
//   facts                  demand(): facts about the connections
//
// abort(): the lost processes are ended; the others get give_up on their page, which their heartbeat's thread reads
// while the rank itself may still wait in a collective; their open answers are awaited and discarded (settle()), and
// they leave. restore(): each survivor has its own state; a lost rank's is looked for in the memory of the next rank,
// in a file on the node, in a shared file (Tier), and a copy with another print is refused.
#include "workloads/train/faults/fault_crew.h"

#include <algorithm>
#include <random>
#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "probes/collective/limits.h"
#include "probes/core/rendezvous_link.h"
#include "probes/gloo/rank_start.h"

namespace assay::train {
namespace {

using nlohmann::json;
using rendezvous::after;
using rendezvous::Clock;

/// Grace after the heartbeat's silence: an error of a rank is a consequence of a loss that is noticed within it.
constexpr Seconds kConsequence = {5};

std::uint64_t fresh_key() {
  std::random_device random;
  return (std::uint64_t{random()} << 32) | random();
}

}  // namespace

Crew::Crew(collective::WatchedFleet& fleet, const FaultJob& job, FaultOutcome& outcome)
    : fleet_(fleet), job_(job), outcome_(outcome) {
  const std::size_t nodes = fleet.node_of(fleet.slots() - 1) + 1, each = fleet.slots() / nodes;
  for (std::size_t slot = 0; slot < fleet.slots(); ++slot) {
    if (slot % each < job.ranks_per_node)
      slots_.push_back(slot);
    else
      spares_.insert(slot);
  }
  counts_.resize(slots_.size());
}

std::string Crew::title(std::int64_t rank) const {
  const std::size_t slot = slots_.at(sized(rank));
  return fmt::format("rank {} (node {}, process {})", rank, fleet_.node_of(slot), slot);
}

/// Events since the last tick.
void Crew::take_events(std::map<std::size_t, json>& answers, std::vector<LostRank>& lost) {
  for (auto& event : fleet_.tick()) {
    if (!event.lost) {
      --owed_[event.slot];
      answers[event.slot] = std::move(event.answer);
      continue;
    }
    owed_.erase(event.slot);
    const auto rank = std::ranges::find(slots_, event.slot);
    if (rank != slots_.end()) {
      lost.push_back({.rank = rank - slots_.begin(), .slot = event.slot, .how = event.how, .since_s = event.since_s});
    } else if (spares_.erase(event.slot) > 0) {
      outcome_.notes.push_back(fmt::format("the spare process {} {}", event.slot, event.how));
      gone_.push_back(outcome_.notes.back());
      ended_.insert(event.slot);
    }
  }
}

std::map<std::size_t, json> Crew::gather(const Requests& requests, std::vector<LostRank>& lost) {
  for (const auto& [slot, request] : requests) {
    fleet_.ask(slot, request);
    ++owed_[slot];
  }
  std::map<std::size_t, json> answers;
  std::optional<std::pair<Clock::time_point, std::string>> failed;  // until when a loss explains it
  const auto until = after({collective::kBatchLimit.count + collective::kGrace.count});
  const auto owes = [&](const auto& one) { return owed_[one.first] > 0; };
  while (true) {
    take_events(answers, lost);
    if (!lost.empty()) return answers;
    for (const auto& [slot, answer] : answers) {
      if (const auto error = answer.find("error"); error != answer.end() && !failed)
        failed = {after({job_.heartbeat.silence_s() + kConsequence.count}),
                  fmt::format("process {}: {}", slot, error->get<std::string>())};
    }
    if (failed && Clock::now() >= failed->first) throw std::runtime_error(failed->second);
    const auto waiting = std::ranges::find_if(requests, owes);
    if (waiting == requests.end() && !failed) return answers;
    if (Clock::now() >= until)
      throw std::runtime_error(
          fmt::format("process {} said nothing for {:g} s", waiting->first, collective::kBatchLimit.count));
  }
}

std::map<std::size_t, json> Crew::gather_all(const Requests& requests) {
  std::vector<LostRank> lost;
  auto answers = gather(requests, lost);
  if (!lost.empty())
    throw std::runtime_error(
        fmt::format("{} {} while the ranks were being brought back", title(lost[0].rank), lost[0].how));
  return answers;
}

CrewAnswers Crew::ask(const std::vector<json>& requests) {
  Requests by_slot;
  for (std::size_t rank = 0; rank < slots_.size(); ++rank) by_slot.emplace_back(slots_[rank], requests.at(rank));
  CrewAnswers found;
  auto answers = gather(by_slot, found.lost);
  if (!found.lost.empty()) return found;
  for (const std::size_t slot : slots_) found.answers.push_back(std::move(answers.at(slot)));
  return found;
}

std::vector<json> Crew::demand(const json& request) {
  auto found = ask(std::vector<json>(slots_.size(), request));
  if (!found.lost.empty()) throw std::runtime_error(fmt::format("{} {}", title(found.lost[0].rank), found.lost[0].how));
  return std::move(found.answers);
}

void Crew::greet() {
  Requests all;
  for (std::size_t slot = 0; slot < fleet_.slots(); ++slot) all.emplace_back(slot, json{{"do", "hello"}});
  std::vector<json> hellos;
  for (auto& [slot, answer] : gather_all(all)) hellos.push_back(std::move(answer));
  const std::size_t nodes = fleet_.node_of(fleet_.slots() - 1) + 1;
  const Bytes memory = gloo::admitted(hellos, static_cast<std::int64_t>(fleet_.slots() / nodes));
  check_memory(job_.job.model, job_.job.plan, {memory.count / 2});  // states kept twice, of two ranks, besides the rank
}

void Crew::be(std::int64_t rank) {
  const std::size_t slot = slots_.at(sized(rank));
  const auto answers = gather_all(Requests{{slot, json{{"do", "be"}, {"rank", rank}, {"shared", job_.shared}}}});
  counts_.at(sized(rank)) = answers.at(slot).at("count");
}

std::vector<json> Crew::connect() {
  ++group_;
  json words = json::array(), beats = json::array();
  for (auto& answer : demand(json{{"do", "introduce"}})) {
    words.push_back(std::move(answer.at("word")));
    beats.push_back(std::move(answer.at("beat")));
  }
  const json enter = {{"do", "enter"}, {"words", words}, {"beats", beats}, {"group", group_}};
  std::vector<json> requests(slots_.size(), enter);
  const std::uint64_t key = fresh_key();
  for (std::size_t rank = 0; rank < slots_.size(); ++rank) {
    requests[rank]["key"] = key;
    requests[rank]["before_count"] = counts_[(rank + slots_.size() - 1) % slots_.size()];
  }
  auto entered = ask(requests);
  if (!entered.lost.empty()) throw std::runtime_error("a rank was lost while the ranks connected");
  fleet_.watch(slots_);
  return std::move(entered.answers);
}

std::vector<json> Crew::begin() {
  fleet_.watch({});
  if (group_ > 0) (void)demand(json{{"do", "leave"}});  // nothing comes of it
  for (std::size_t rank = 0; rank < slots_.size(); ++rank) be(static_cast<std::int64_t>(rank));
  return connect();
}

/// Waits until the survivors owe no answer: their work has ended, by an error or not.
void Crew::settle(const std::vector<LostRank>& lost) {
  std::map<std::size_t, json> answers;
  std::vector<LostRank> more;
  const auto until = after(collective::kGrace);
  const auto owes = [&](std::size_t slot) {
    return owed_[slot] > 0 && std::ranges::find(lost, slot, &LostRank::slot) == lost.end();
  };
  while (std::ranges::any_of(slots_, owes)) {
    take_events(answers, more);
    if (!more.empty()) throw std::runtime_error(title(more[0].rank) + " was lost while the others were stopped");
    if (Clock::now() >= until) {
      const auto slot = *std::ranges::find_if(slots_, owes);
      throw std::runtime_error(fmt::format("process {} did not stop within {:g} s", slot, collective::kGrace.count));
    }
  }
}

void Crew::abort(const std::vector<LostRank>& lost) {
  fleet_.watch({});
  for (const auto& one : lost) {
    fleet_.end(one.slot);
    ended_.insert(one.slot);
    owed_.erase(one.slot);
  }
  Requests leave;
  for (const std::size_t slot : slots_) {
    if (ended_.contains(slot)) continue;
    fleet_.give_up(slot, group_);
    leave.emplace_back(slot, json{{"do", "leave"}});
  }
  settle(lost);
  (void)gather_all(leave);  // nothing comes of it
}

void Crew::rebuild(const std::vector<LostRank>& lost) {
  for (const auto& one : lost) {
    const auto near = std::ranges::find_if(
        spares_, [&](std::size_t spare) { return fleet_.node_of(spare) == fleet_.node_of(one.slot); });
    const auto spare = near != spares_.end() ? near : spares_.begin();
    if (spare == spares_.end())
      throw std::runtime_error(fmt::format("no spare is left for {}, which {}{}{}", title(one.rank), one.how,
                                           gone_.empty() ? "" : "; before, ", fmt::join(gone_, ", ")));
    gone_.push_back(fmt::format("{} {}", title(one.rank), one.how));
    slots_.at(sized(one.rank)) = *spare;
    spares_.erase(spare);
  }
  for (const auto& one : lost) be(one.rank);
  (void)connect();  // the paths were looked at the first time
}

bool Crew::try_tier(std::int64_t rank, std::int64_t step, std::uint64_t print, Tier tier) {
  const std::size_t slot = slots_.at(sized(rank));
  const std::int64_t holder = (rank + 1) % static_cast<std::int64_t>(slots_.size());
  const std::size_t keeper = slots_.at(sized(holder));
  const json place = {{"of", rank}, {"step", step}, {"tier", static_cast<int>(tier)}};
  if (tier == Tier::memory || tier == Tier::local) {
    json spoil = place;
    spoil["do"] = "spoil";
    if (tier <= job_.corrupt)
      (void)gather_all(Requests{{tier == Tier::memory ? keeper : slot, spoil}});  // nothing comes of it
  }
  Requests both;
  both.emplace_back(
      slot,
      json{{"do", "restore"}, {"step", step}, {"tier", static_cast<int>(tier)}, {"print", print}, {"from", holder}});
  if (tier == Tier::memory) both.emplace_back(keeper, json{{"do", "lend"}, {"to", rank}, {"step", step}});
  const auto answers = gather_all(both);
  const auto refused = answers.at(slot).find("refused");
  if (refused == answers.at(slot).end()) {
    ++outcome_.restored[tier];
    return true;
  }
  ++outcome_.refused;
  outcome_.notes.push_back(fmt::format("the state of rank {} after {} steps in tier {} {}", rank, step, word_of(tier),
                                       refused->get<std::string>()));
  return false;
}

void Crew::restore_one(std::int64_t rank, std::int64_t step, std::uint64_t print, bool holder_lost) {
  for (const Tier tier : {Tier::memory, Tier::local, Tier::shared}) {
    if (tier == Tier::memory && holder_lost) continue;
    if (tier == Tier::shared && job_.shared.empty()) continue;
    if (try_tier(rank, step, print, tier)) return;
  }
  throw std::runtime_error(fmt::format("the state of rank {} after {} steps is nowhere left", rank, step));
}

void Crew::restore(const std::vector<LostRank>& lost, std::int64_t step, const Prints& prints) {
  const auto is_lost = [&](std::int64_t rank) { return std::ranges::find(lost, rank, &LostRank::rank) != lost.end(); };
  const auto all = static_cast<std::int64_t>(slots_.size());
  Requests own;
  for (std::int64_t rank = 0; rank < all; ++rank) {
    const json request = {
        {"do", "restore"}, {"step", step}, {"tier", static_cast<int>(Tier::own)}, {"print", prints.at(sized(rank))}};
    if (!is_lost(rank)) own.emplace_back(slots_[sized(rank)], request);
  }
  const auto answers = gather_all(own);
  for (std::int64_t rank = 0; rank < all; ++rank) {
    const bool refused = !is_lost(rank) && answers.at(slots_[sized(rank)]).contains("refused");
    if (is_lost(rank) || refused) restore_one(rank, step, prints.at(sized(rank)), is_lost((rank + 1) % all));
    if (refused) ++outcome_.refused;
    if (!is_lost(rank) && !refused) ++outcome_.restored[Tier::own];
  }
}

void Crew::restock() {
  Requests hello;
  for (const std::size_t slot : ended_) {
    fleet_.replace(slot);
    spares_.insert(slot);
    hello.emplace_back(slot, json{{"do", "hello"}});
  }
  ended_.clear();
  gone_.clear();
  if (!hello.empty()) (void)gather_all(hello);  // its memory was looked at before
}

}  // namespace assay::train
