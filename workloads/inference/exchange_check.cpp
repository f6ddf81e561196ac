// exchange_check: the router determines the expected tokens; every byte of it is made again from the token's number.
#include "workloads/inference/exchange_check.h"

#include <algorithm>

#include <fmt/format.h>

namespace assay::inference {
namespace {}  // namespace

ExchangeCheck::ExchangeCheck(const ExchangeJob& job)
    : job_(job),
      sizes_(job),
      seen_(train::sized(job.routing.tokens * job.routing.experts_per_rank())),
      experts_(train::sized(job.routing.top_k)) {}

Findings ExchangeCheck::arrivals(const Router& router, std::uint64_t step, SlotRegions& came, SlotRegions& own) {
  Findings findings;
  std::ranges::fill(seen_, 0);
  for (std::size_t source = 0; source < train::sized(job_.routing.ranks); ++source) {
    SlotRegions& slots = source == train::sized(job_.rank) ? own : came;
    for (std::size_t i = 0; i < slots.count(source); ++i)
      look_at(router, step, source, slots.slot(source, i), findings);
  }
  const std::int64_t each = job_.routing.experts_per_rank();
  std::int64_t source = 0;
  for (std::int64_t token = 0; token < job_.routing.tokens; ++token) {
    while (token >= router.first_token(source + 1)) ++source;
    router.choose(step, token, experts_);
    for (const std::int64_t expert : experts_) {
      if (job_.routing.rank_of(expert) != job_.rank) continue;
      const std::uint16_t times = seen_[train::sized(token * each + expert % each)];
      if (times == 0)
        findings.add(fmt::format("{} step {}: token {} of rank {} was lost: expert {} on rank {} never had it",
                                 router.family(), step, token, source, expert, job_.rank));
      if (times > 1)
        findings.add(fmt::format("{} step {}: token {} of rank {} was doubled: expert {} on rank {} had it {} times",
                                 router.family(), step, token, source, expert, job_.rank, times));
    }
  }
  return findings;
}

void ExchangeCheck::look_at(const Router& router, std::uint64_t step, std::size_t source, std::span<std::byte> slot,
                            Findings& findings) {
  const SlotHead head = head_of(slot);
  const auto token = static_cast<std::int64_t>(head.token);
  const auto from = static_cast<std::int64_t>(source);
  if (token < router.first_token(from) || token >= router.first_token(from + 1) ||
      head.proof != proof_of(job_.nonce, step, token)) {
    return findings.add(
        fmt::format("{} step {}: what came from rank {} to rank {} has a head that none of its tokens has",
                    router.family(), step, source, job_.rank));
  }
  if (cluster_storage::payload_mismatches(token_key(job_.nonce, step, token), 0, slot.subspan(sizes_.before())) > 0)
    findings.add(fmt::format("{} step {}: token {} of rank {} has other bytes on rank {}", router.family(), step, token,
                             source, job_.rank));
  router.choose(step, token, experts_);
  for (std::size_t place = 0; place < sizes_.experts; ++place) {
    const std::int64_t expert = expert_of(slot, place);
    if (expert == kNoExpert) continue;
    if (std::ranges::find(experts_, expert) == experts_.end() || job_.routing.rank_of(expert) != job_.rank) {
      findings.add(fmt::format("{} step {}: token {} of rank {} came to rank {} for expert {}, which it is not for",
                               router.family(), step, token, source, job_.rank, expert));
      continue;
    }
    const std::int64_t each = job_.routing.experts_per_rank();
    ++seen_[train::sized(token * each + expert % each)];
  }
}

Findings ExchangeCheck::results(const Router& router, std::uint64_t step, std::span<const std::uint64_t> tokens,
                                std::span<const std::uint64_t> sums, SlotRegions& returned, SlotRegions& own) {
  Findings findings;
  const std::size_t out = sizes_.out / kWord, back = sizes_.back / kWord;
  const std::int64_t first = router.first_token(job_.rank);
  for (std::int64_t token = first; token < router.first_token(job_.rank + 1); ++token) {
    router.choose(step, token, experts_);
    ExpertMap map;
    for (const std::int64_t expert : experts_) map.add(job_.nonce, expert);
    const auto words = tokens.subspan(train::sized(token - first) * out, out);
    if (is_applied(map, words, sums.subspan(train::sized(token - first) * back, back))) continue;
    Findings more;
    explain(step, token, words, returned, own, more);
    if (more.count == 0)
      more.add(
          fmt::format("step {}: the sum of token {} of rank {} is wrong, its parts are right", step, token, job_.rank));
    findings.take(std::move(more));
  }
  return findings;
}

/// Compares each rank's result for one token, of which experts_ are the experts, with the expected one.
void ExchangeCheck::explain(std::uint64_t step, std::int64_t token, std::span<const std::uint64_t> words,
                            SlotRegions& returned, SlotRegions& own, Findings& findings) {
  for (std::size_t rank = 0; rank < train::sized(job_.routing.ranks); ++rank) {
    ExpertMap map;
    std::size_t due = 0, found = 0;
    for (const std::int64_t expert : experts_) {
      if (job_.routing.rank_of(expert) != static_cast<std::int64_t>(rank)) continue;
      map.add(job_.nonce, expert);
      due = job_.once_per_rank ? 1 : due + 1;
    }
    std::vector<std::uint64_t> sum(sizes_.back / kWord);
    SlotRegions& slots = rank == train::sized(job_.rank) ? own : returned;
    for (std::size_t i = 0; i < slots.count(rank); ++i) {
      const auto slot = slots.slot(rank, i);
      if (head_of(slot).token != static_cast<std::uint64_t>(token)) continue;
      ++found;
      add_words(words_from(slot, sizeof(SlotHead)), sum);
    }
    const std::string_view how = found < due                   ? "is missing"
                                 : found > due                 ? "came more than once"
                                 : is_applied(map, words, sum) ? ""
                                                               : "is wrong";
    if (!how.empty())
      findings.add(
          fmt::format("step {}: what rank {} made of token {} of rank {} {}", step, rank, token, job_.rank, how));
  }
}

}  // namespace assay::inference
