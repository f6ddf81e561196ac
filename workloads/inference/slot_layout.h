// slot_layout: slots of tokens in memory, rank after rank.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "workloads/inference/expert_exchange.h"
#include "workloads/inference/kv_shape.h"
#include "workloads/inference/token_payload.h"

namespace assay::inference {

inline constexpr std::size_t kWord = sizeof(std::uint64_t);

/// The kinds of slots of a job, in B: head, experts (only on the way out), numbers.
struct SlotSizes {
  explicit SlotSizes(const ExchangeJob& job)
      : experts(static_cast<std::size_t>(job.once_per_rank ? job.routing.top_k : 1)),
        out(job.out_bytes()),
        back(job.back_bytes()) {}
  [[nodiscard]] std::size_t before() const {
    return sizeof(SlotHead) + (experts * sizeof(std::uint16_t) + kWord - 1) / kWord * kWord;
  }
  [[nodiscard]] std::size_t out_slot() const { return before() + out; }
  [[nodiscard]] std::size_t back_slot() const { return sizeof(SlotHead) + back; }
  std::size_t experts;    ///< room for them
  std::size_t out, back;  ///< numbers
};

/// Most slots that a rank sends, and that it receives, in one step of any family, and one more for each rank.
struct MostSlots {
  explicit MostSlots(const ExchangeJob& job) {
    const RoutingShape& all = job.routing;
    const std::int64_t ragged = 2 * all.tokens / (all.ranks + 1) + 1;  // tokens of the last rank of ragged_source
    const std::int64_t most_tokens = std::max(ragged, all.tokens / all.ranks + 1);
    const std::int64_t copies = job.once_per_rank ? std::min(all.top_k, all.ranks) : all.top_k;
    const std::int64_t here = job.once_per_rank ? 1 : std::min(all.top_k, all.experts_per_rank());
    tokens = train::sized(most_tokens);
    sent = train::sized(most_tokens * copies + all.ranks);
    received = train::sized(all.tokens * here + all.ranks);
  }
  std::size_t tokens, sent, received;
};

/// Calls `slot(token, target, expert, is_new)` for every copy of some tokens, whose experts are `experts`, top_k each,
/// in order; tokens count from 0, and what is new has a slot of its own.
template <class Slot>
void for_each_copy(const ExchangeJob& job, std::span<const std::int64_t> experts, const Slot& slot) {
  const std::size_t k = train::sized(job.routing.top_k);
  for (std::size_t i = 0; i < experts.size() / k; ++i) {
    const auto own = experts.subspan(i * k, k);
    for (std::size_t j = 0; j < k; ++j) {
      const std::int64_t target = job.routing.rank_of(own[j]);
      const bool is_new = !job.once_per_rank || std::ranges::none_of(own.first(j), [&](std::int64_t before) {
        return job.routing.rank_of(before) == target;
      });
      slot(i, train::sized(target), static_cast<std::uint16_t>(own[j]), is_new);
    }
  }
}

/// Memory of slots of one size, in regions of one rank each, laid out anew for each step.
class SlotRegions {
 public:
  SlotRegions(std::size_t slot, std::size_t ranks, std::size_t most)
      : slot_(slot), counts_(ranks), begins_(ranks), words_(most * slot / kWord) {}

  /// Regions of so many slots, and one more each, in the order of ranks. False if they do not fit.
  [[nodiscard]] bool lay_out(const std::vector<std::size_t>& counts) {
    std::size_t at = 0;
    for (std::size_t rank = 0; rank < counts.size(); ++rank) {
      if (counts[rank] > slots()) return false;
      begins_[rank] = at;
      counts_[rank] = counts[rank];
      at += counts[rank] + 1;
    }
    return at <= slots();
  }
  [[nodiscard]] std::size_t slots() const { return words_.size() * kWord / slot_; }
  [[nodiscard]] std::size_t& count(std::size_t rank) { return counts_[rank]; }
  [[nodiscard]] std::size_t offset(std::size_t rank) const { return begins_[rank] * slot_; }
  [[nodiscard]] std::size_t bytes(std::size_t rank) const { return counts_[rank] * slot_; }
  [[nodiscard]] std::size_t slot_bytes() const { return slot_; }
  /// A slot of the region of `rank`; the one behind the last is there, too.
  [[nodiscard]] std::span<std::byte> slot(std::size_t rank, std::size_t number) {
    return memory().subspan((begins_[rank] + number) * slot_, slot_);
  }
  [[nodiscard]] std::span<std::byte> memory() { return std::as_writable_bytes(std::span(words_)); }

 private:
  std::size_t slot_;
  std::vector<std::size_t> counts_, begins_;
  std::vector<std::uint64_t> words_;
};

inline SlotHead head_of(std::span<const std::byte> slot) {
  SlotHead head;
  std::memcpy(&head, slot.data(), sizeof head);
  return head;
}
inline void set_head(std::span<std::byte> slot, const SlotHead& head) { std::memcpy(slot.data(), &head, sizeof head); }
inline std::uint16_t expert_of(std::span<const std::byte> slot, std::size_t place) {
  std::uint16_t expert = 0;
  std::memcpy(&expert, slot.data() + sizeof(SlotHead) + place * sizeof expert, sizeof expert);
  return expert;
}
inline void set_expert(std::span<std::byte> slot, std::size_t place, std::uint16_t expert) {
  std::memcpy(slot.data() + sizeof(SlotHead) + place * sizeof expert, &expert, sizeof expert);
}
/// The numbers of a slot, as words: they begin at a multiple of 8 B.
inline std::span<std::uint64_t> words_from(std::span<std::byte> slot, std::size_t begin) {
  return {reinterpret_cast<std::uint64_t*>(slot.data() + begin), (slot.size() - begin) / kWord};
}

}  // namespace assay::inference
