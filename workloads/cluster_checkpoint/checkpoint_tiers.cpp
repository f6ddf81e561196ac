// checkpoint_tiers: all ranks go through the tiers in one order, so that those which need nothing more still serve.
#include "workloads/cluster_checkpoint/checkpoint_tiers.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <sstream>
#include <system_error>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "workloads/storage/shared/concurrent_work.h"
#include "workloads/storage/shared/shard.h"
#include "workloads/storage/shared/storage_ranks.h"

namespace assay::cluster_checkpoint {
namespace {

namespace fs = std::filesystem;
using TierClock = std::chrono::steady_clock;

constexpr std::size_t kSeen = 1 << 20;  // of a shard that another node looks at for the first time
constexpr auto kLookAgain = std::chrono::milliseconds(5);

double passed_since(TierClock::time_point begin) {
  return std::chrono::duration<double>(TierClock::now() - begin).count();
}

}  // namespace

PeerPaths::PeerPaths(const Placement& placement, Rendezvous& group, const PeerSettings& settings,
                     std::span<std::byte> state, std::span<std::byte> incoming)
    : group_(group), own_(state), incoming_(incoming) {
  const int forth = group.world() - settings.shift, back = settings.back;
  if (settings.verbs) {
    verbs_.emplace(*settings.verbs, group, state, incoming);
    save_verbs_ = verbs_->connect(forth, false, settings.streams);
    if (back != 0) back_verbs_ = verbs_->connect(back, true, settings.streams);
    return;
  }
  tcp_ = open_peer_streams(placement, group, forth, settings.streams);
  if (back != 0) back_tcp_ = open_peer_streams(placement, group, back, settings.streams);
}

void PeerPaths::save(const std::vector<CheckpointShard>& own, const std::vector<CheckpointShard>& kept) {
  const PeerTurn turn{.sent = &own, .from = own_, .received = &kept, .into = incoming_};
  if (verbs_) return verbs_->exchange(save_verbs_, turn);
  exchange_with_peers(*tcp_, turn, group_);
}

void PeerPaths::restore(const std::vector<CheckpointShard>* kept, const std::vector<CheckpointShard>* wanted) {
  const PeerTurn turn{.sent = kept, .from = incoming_, .received = wanted, .into = own_};
  if (back_verbs_) return verbs_->exchange(*back_verbs_, turn);
  exchange_with_peers(*back_tcp_, turn, group_);
}

std::vector<Tier> tiers_in(const std::string& words) {
  std::vector<Tier> tiers;
  std::istringstream list(words);
  for (std::string word; std::getline(list, word, ',');) {
    const auto found = from_word<Tier>(word);
    if (!found) throw BadParameter(fmt::format("tiers: '{}' is none of {}", word, words_listed<Tier>()));
    if (std::ranges::find(tiers, *found) != tiers.end())
      throw BadParameter(fmt::format("tiers: '{}' is there twice", word));
    tiers.push_back(*found);
  }
  if (tiers.empty()) throw BadParameter("tiers: none is given; name some of memory, peer, local, shared");
  std::ranges::sort(tiers);
  return tiers;
}

bool TierSettings::has(Tier tier) const { return std::ranges::find(tiers, tier) != tiers.end(); }

std::uint64_t CheckpointTiers::memory_of(const TierSettings& settings, int world) {
  std::uint64_t most = 0;
  const auto ranks = static_cast<std::uint64_t>(world);
  for (std::uint64_t rank = 0; rank < ranks; ++rank)
    most = std::max(most, payload_of(checkpoint_shards(settings.model, settings.divisor, rank, ranks)));
  return most * (1U + (settings.has(Tier::memory) ? 1U : 0U) + (settings.has(Tier::peer) ? 1U : 0U)) +
         settings.threads * settings.plan.chunk * settings.plan.depth;
}

CheckpointTiers::CheckpointTiers(const Placement& placement, Rendezvous& group, TierSettings settings)
    : group_(group),
      settings_(std::move(settings)),
      own_(shards_of(group.rank())),
      kept_(shards_of(from_here(settings_.shift))),
      target_(shards_of(restored_rank())),
      state_(std::max(payload_of(own_), payload_of(target_)) + kPeerTail),
      snapshot_(settings_.has(Tier::memory) ? payload_of(own_) : 0),
      incoming_(settings_.has(Tier::peer) ? payload_of(kept_) + kPeerTail : 0),
      failed_(target_.size()) {
  for (std::size_t thread = 0; nearest_files() && thread < settings_.threads; ++thread)
    rings_.emplace_back(settings_.plan.chunk * settings_.plan.depth);
  if (!settings_.has(Tier::peer)) return;
  const int back = settings_.lost == Lost::node ? 2 * settings_.shift : settings_.shift;
  peers_.emplace(placement, group_,
                 PeerSettings{.verbs = settings_.verbs,
                              .streams = settings_.threads,
                              .shift = settings_.shift,
                              .back = back % group_.world()},
                 state_.bytes(), incoming_.bytes());
}

std::vector<CheckpointShard> CheckpointTiers::shards_of(int rank) const {
  return checkpoint_shards(settings_.model, settings_.divisor, static_cast<std::uint64_t>(rank),
                           static_cast<std::uint64_t>(group_.world()));
}

int CheckpointTiers::from_here(int distance) const {
  return (group_.rank() + distance + group_.world()) % group_.world();
}

int CheckpointTiers::restored_rank() const {
  return settings_.lost == Lost::node ? from_here(-settings_.shift) : group_.rank();
}

cluster_storage::PayloadKey CheckpointTiers::key_of(const CheckpointShard& shard, std::uint64_t step) const {
  return {.rank = shard.number, .step = step, .nonce = settings_.nonce};
}

std::string CheckpointTiers::place(Tier tier, std::uint64_t step) const {
  return fmt::format("{}/step-{:04}", tier == Tier::local ? settings_.local : settings_.shared, step);
}

void CheckpointTiers::each(const std::vector<CheckpointShard>& shards, const std::function<void(std::size_t)>& work) {
  std::atomic<bool> abandoned = false;
  cluster_storage::run_concurrently(
      settings_.threads,
      [&](std::size_t thread) {
        for (std::size_t i = thread; i < shards.size(); i += settings_.threads) {
          if (abandoned) throw std::runtime_error("given up, since the group has ended");
          if (stop_requested()) throw std::runtime_error("stopped by a signal");
          work(i);
        }
      },
      [&] { group_.check(); }, abandoned);
}

void CheckpointTiers::save_files(Tier tier, std::uint64_t step) {
  const std::string at = place(tier, step);
  each(own_, [&](std::size_t i) {
    cluster_storage::save_shard(at, key_of(own_[i], step), state_.bytes().subspan(own_[i].offset, own_[i].size),
                                settings_.plan);
  });
  cluster_storage::sync_directory(at);
}

TierSave CheckpointTiers::save(std::uint64_t step) {
  each(own_, [&](std::size_t i) {
    cluster_storage::fill_payload(key_of(own_[i], step), 0, state_.bytes().subspan(own_[i].offset, own_[i].size));
  });
  if (settings_.has(Tier::local)) fs::create_directory(place(Tier::local, step));
  if (settings_.has(Tier::shared) && group_.rank() == 0) fs::create_directory(place(Tier::shared, step));
  (void)cluster_storage::start_together(group_);
  TierSave taken{
      .bytes = static_cast<double>(payload_of(own_)), .stall_s = 0, .peer_s = {}, .durable_s = {}, .visible_s = {}};
  const auto begin = TierClock::now();
  if (settings_.has(Tier::memory)) {
    each(own_, [&](std::size_t i) {
      std::ranges::copy(state_.bytes().subspan(own_[i].offset, own_[i].size),
                        snapshot_.bytes().begin() + static_cast<std::ptrdiff_t>(own_[i].offset));
    });
    taken.stall_s = passed_since(begin);
  }
  if (settings_.has(Tier::peer)) {
    peers_->save(own_, kept_);
    taken.peer_s = passed_since(begin);
  }
  for (const Tier tier : {Tier::local, Tier::shared}) {
    if (!settings_.has(tier)) continue;
    save_files(tier, step);
    taken.durable_s = passed_since(begin);
  }
  if (!settings_.has(Tier::memory)) taken.stall_s = passed_since(begin);
  group_.barrier();
  if (settings_.has(Tier::shared)) taken.visible_s = wait_until_seen(step);
  group_.barrier();
  return taken;
}

bool CheckpointTiers::shows_first_shard(std::uint64_t step) const {
  const auto shards = shards_of(from_here(-settings_.shift));
  if (shards.empty()) return true;
  const auto& shard = shards.front();
  const std::string path = place(Tier::shared, step) + "/" + cluster_storage::shard_name(shard.number);
  try {
    auto file = cluster_storage::DirectFile::open_to_read(path, settings_.plan);
    if (file.size() != shard.size + cluster_storage::kDirectBlock) return false;
    const cluster_storage::DirectMemory block(cluster_storage::kDirectBlock),
        begin(std::min<std::uint64_t>(kSeen, shard.size));
    file.read(block.bytes(), shard.size);
    if (!cluster_storage::read_footer(block.bytes().first<cluster_storage::kDirectBlock>(), path)) return false;
    file.read(begin.bytes(), 0);
    return cluster_storage::payload_mismatches(key_of(shard, step), 0, begin.bytes()) == 0;
  } catch (const std::runtime_error&) {  // it is not there yet, or ends early; the deadline is the caller's
    return false;
  }
}

std::optional<double> CheckpointTiers::wait_until_seen(std::uint64_t step) const {
  const auto begin = TierClock::now();
  while (!shows_first_shard(step)) {
    if (stop_requested()) throw std::runtime_error("stopped by a signal");
    if (passed_since(begin) > settings_.wait.count) return std::nullopt;
    std::this_thread::sleep_for(kLookAgain);
  }
  return passed_since(begin);
}

void CheckpointTiers::fetch_from_peer(const std::vector<char>& pending) {
  // Every holder learns which copies the rank that restores from it wants; copies served by a nearer tier are not
  // overwritten.
  std::string mine;
  for (const char wanted : pending) mine += wanted != 0 ? '1' : '0';
  const auto words = group_.all_gather(mine);
  const auto chosen = [](const std::vector<CheckpointShard>& shards, const std::string& wanted) {
    std::vector<CheckpointShard> some;
    for (std::size_t i = 0; i < shards.size(); ++i)
      if (wanted.at(i) == '1') some.push_back(shards[i]);
    return some;
  };
  const auto wanted = chosen(target_, mine);
  if (!peers_->come_back()) {  // the node that restores is the one that keeps the copies
    for (const auto& shard : wanted)
      std::ranges::copy(incoming_.bytes().subspan(shard.offset, shard.size),
                        state_.bytes().begin() + static_cast<std::ptrdiff_t>(shard.offset));
    return;
  }
  const int back = settings_.lost == Lost::node ? 2 * settings_.shift : settings_.shift;
  const auto served = chosen(kept_, words[static_cast<std::size_t>(from_here(back % group_.world()))]);
  peers_->restore(served.empty() ? nullptr : &served, wanted.empty() ? nullptr : &wanted);
}

/// Brings the pending shards into state_; false where the tier has none of this rank's.
bool CheckpointTiers::fetch(Tier tier, std::uint64_t step, const std::vector<char>& pending) {
  const bool wanted = std::ranges::find(pending, 1) != pending.end();
  std::ranges::fill(failed_, "");
  if (tier == Tier::peer) {
    fetch_from_peer(pending);
    return wanted;
  }
  if (!wanted) return false;
  each(target_, [&](std::size_t i) {
    const auto into = state_.bytes().subspan(target_[i].offset, target_[i].size);
    if (pending[i] == 0) return;
    if (tier == Tier::memory) {
      std::ranges::copy(snapshot_.bytes().subspan(target_[i].offset, target_[i].size), into.begin());
      return;
    }
    try {
      const auto footer =
          cluster_storage::load_shard(place(tier, step), key_of(target_[i], step), into, settings_.plan);
      if (!footer) failed_[i] = footer.error().text();
    } catch (const std::runtime_error& refused) {  // one copy less; a farther tier may have it
      failed_[i] = refused.what();
    }
  });
  return true;
}

bool CheckpointTiers::is_left(Tier tier) const {
  return !(tier == Tier::memory && settings_.lost != Lost::nothing) &&
         !(tier == Tier::local && settings_.lost == Lost::node);
}

/// The nearest remaining tier, if that keeps files.
std::optional<Tier> CheckpointTiers::nearest_files() const {
  const auto nearest = std::ranges::find_if(settings_.tiers, [&](Tier tier) { return is_left(tier); });
  const bool files = nearest != settings_.tiers.end() && (*nearest == Tier::local || *nearest == Tier::shared);
  return files ? std::optional(*nearest) : std::nullopt;
}

/// All ranks together, after the restore: a cache of the last reads can only make this faster. Nothing if a file cannot
/// be read.
std::optional<double> CheckpointTiers::read_raw(Tier tier, std::uint64_t step) {
  (void)cluster_storage::drop_cached(paths_to_read(step));
  std::atomic<bool> whole = true;
  (void)cluster_storage::start_together(group_);
  const auto begin = TierClock::now();
  each(target_, [&](std::size_t i) {
    try {
      auto file = cluster_storage::DirectFile::open_to_read(
          place(tier, step) + "/" + cluster_storage::shard_name(target_[i].number), settings_.plan);
      file.read_and_forget(target_[i].size, rings_[i % settings_.threads].bytes());
    } catch (const std::runtime_error&) {  // the restore has counted it
      whole = false;
    }
  });
  return whole ? std::optional(passed_since(begin)) : std::nullopt;
}

void CheckpointTiers::verify(std::uint64_t step, std::vector<char>& pending, Tier tier, TierRestore& taken) {
  std::vector<std::uint64_t> wrong(target_.size());
  each(target_, [&](std::size_t i) {
    if (pending[i] == 0) return;
    const auto found = state_.bytes().subspan(target_[i].offset, target_[i].size);
    wrong[i] =
        failed_[i].empty() ? cluster_storage::payload_mismatches(key_of(target_[i], step), 0, found) : target_[i].size;
  });
  for (std::size_t i = 0; i < target_.size(); ++i) {
    if (pending[i] == 0) continue;
    if (wrong[i] == 0) {
      ++taken.served[std::string(word_of(tier))];
      pending[i] = 0;
      continue;
    }
    taken.mismatches += wrong[i];
    if (!taken.first_wrong.empty()) continue;
    taken.first_wrong = fmt::format("{} of {} B of {} in tier {}{}{}", wrong[i], target_[i].size,
                                    cluster_storage::shard_name(target_[i].number), word_of(tier),
                                    failed_[i].empty() ? "" : ": ", failed_[i]);
  }
}

std::vector<std::string> CheckpointTiers::paths_to_read(std::uint64_t step) const {
  std::vector<std::string> paths;
  for (const Tier tier : {Tier::local, Tier::shared}) {
    if (!settings_.has(tier) || !is_left(tier)) continue;
    for (const auto& shard : target_) {
      const std::string path = place(tier, step) + "/" + cluster_storage::shard_name(shard.number);
      if (std::error_code none; fs::exists(path, none)) paths.push_back(path);
    }
  }
  return paths;
}

TierRestore CheckpointTiers::restore(std::uint64_t step) {
  // Remains of the payload in memory must not pass for data read.
  std::ranges::fill(state_.bytes(), std::byte{0});
  if (settings_.lost != Lost::nothing) std::ranges::fill(snapshot_.bytes(), std::byte{0});
  TierRestore taken{.bytes = static_cast<double>(payload_of(target_)), .served = {}, .first_wrong = {}, .cold = {}};
  taken.cold.resident = cluster_storage::drop_cached(paths_to_read(step));
  std::vector<char> pending(target_.size(), 1);
  std::size_t left = target_.size();
  bool nearest = true;
  (void)cluster_storage::start_together(group_);
  const auto begin = TierClock::now();
  for (const Tier tier : settings_.tiers) {
    if (!is_left(tier)) continue;
    const cluster_storage::Arrivals arrivals(tier == Tier::local ? settings_.local : settings_.shared);
    const auto at = TierClock::now();
    if (!fetch(tier, step, pending)) continue;
    taken.read_s += passed_since(at);
    if (tier == Tier::local || tier == Tier::shared) {
      taken.cold.active = true;
      for (std::size_t i = 0; i < target_.size(); ++i)
        taken.cold.bytes += pending[i] != 0 ? static_cast<double>(target_[i].size) : 0;
      if (const auto came = arrivals.since()) taken.cold.wire = taken.cold.wire.value_or(0) + *came;
    }
    verify(step, pending, tier, taken);
    const auto now = static_cast<std::size_t>(std::ranges::count(pending, 1));
    if (!nearest) taken.fallbacks += left - now;
    left = now;
    nearest = false;
  }
  taken.resume_s = passed_since(begin);
  if (left > 0) taken.served["none"] += left;
  if (const auto tier = nearest_files()) {
    const auto raw_s = read_raw(*tier, step);
    if (left == 0 && taken.fallbacks == 0) taken.raw_s = raw_s;
  }
  return taken;
}

void CheckpointTiers::clear_local(std::uint64_t step) const {
  if (settings_.has(Tier::local)) fs::remove_all(place(Tier::local, step));
}

}  // namespace assay::cluster_checkpoint
