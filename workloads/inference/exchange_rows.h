// exchange_rows: the work of a kernel on one row of an exchange, a slot or a token: making, packing, adding up and
// checking. Plain constexpr C++: the threads of a GPU and the tests on a host run the same lines.
//
// Rows of one kind follow each other rank by rank; region r begins with row firsts[r], at a multiple of 16 B, from
// where NCCL copies 16 B at a time. `lanes` lanes share a row: they take its words in turns and need nothing of each
// other.
//
//   leaving, returned: a row for each slot that this rank sends, by target;  came, made: for each it gets, by source
//
// Slots for experts of this rank itself are packed into `came`, and their results are made in `returned`: no message. A
// single rank sends them to itself, so that there is one.
#pragma once

#include <cstdint>

#include "workloads/inference/token_payload.h"

namespace assay::inference {

/// The first word of region `region`, whose first row is `first`, of rows of `each` words. Regions do not overlap.
constexpr std::uint64_t region_offset(std::uint64_t first, std::uint64_t region, std::uint64_t each) {
  return (first * each + 2 * region) / 2 * 2;
}
/// Words of `rows` rows in `regions` regions, at most.
constexpr std::uint64_t region_words(std::uint64_t rows, std::uint64_t regions, std::uint64_t each) {
  return rows * each + 2 * regions;
}
static_assert(region_offset(1, 1, 1) == 2 && region_offset(2, 2, 1) == 6);
static_assert(region_offset(std::uint64_t{1} << 33, 0, 928) == (std::uint64_t{1} << 33) * 928);

/// The region of row `row`: the last that begins at or before it. `firsts` has regions + 1 entries, and `row` is before
/// the last.
template <class Number>
constexpr std::uint32_t region_of(const Number* firsts, std::uint32_t regions, Number row) {
  std::uint32_t low = 0, high = regions;  // firsts[low] <= row < firsts[high]
  while (high - low > 1) {
    const std::uint32_t middle = low + (high - low) / 2;
    (firsts[middle] <= row ? low : high) = middle;
  }
  return low;
}

/// Kinds of work. Each is done to every row of its kind; the last four are checks.
enum class RowWork { make, pack, work, add_up, check_came, check_experts, check_returned, check_sums };
constexpr bool is_check(RowWork work) { return work >= RowWork::check_came; }

/// Faults of a row.
enum class RowFault : std::uint32_t { foreign_head, other_bytes, other_expert, lost, doubled, wrong_result, wrong_sum };
inline constexpr std::uint32_t kRowFaults = 7;
constexpr std::uint32_t bit_of(RowFault fault) { return std::uint32_t{1} << static_cast<std::uint32_t>(fault); }

inline constexpr std::uint64_t kNoRow = UINT64_MAX;
inline constexpr std::uint64_t kHeadWords = sizeof(SlotHead) / sizeof(std::uint64_t);
inline constexpr std::uint32_t kPlacesOfWord = sizeof(std::uint64_t) / sizeof(std::uint16_t);

/// One step of one rank. Pointers are the device's, memory is counted in words.
struct RowView {
  std::uint64_t nonce = 0, step = 0;
  std::uint32_t ranks = 1, own = 0, top_k = 1;
  std::uint32_t places = 1;         ///< for experts in a slot
  std::uint32_t copies = 1;         ///< slots of a token, at most
  std::uint64_t experts_each = 1;   ///< of a rank
  bool loops = false;               ///< slots for this rank itself are sent, too
  std::uint64_t before = 0;         ///< words of a slot on the way out before its token
  std::uint64_t out = 0, back = 0;  ///< words of a token

  const std::uint64_t *to = nullptr, *from = nullptr;  ///< the first row of every rank, and the end
  const std::int64_t* firsts = nullptr;                ///< the first token of every rank, and the end
  const std::uint32_t* tokens_of = nullptr;            ///< of each row that leaves: its token among those of this rank
  const std::uint16_t* experts = nullptr;              ///< of each row that leaves: `places`
  const std::uint64_t* rows_of = nullptr;  ///< of each token of this rank: where `copies` rows return, or kNoRow
  const std::uint16_t* routes = nullptr;   ///< of each token of all ranks: top_k experts

  std::uint64_t *tokens = nullptr, *sums = nullptr;  ///< of this rank
  std::uint64_t *leaving = nullptr, *came = nullptr, *made = nullptr, *returned = nullptr;
  std::uint32_t* seen = nullptr;   ///< by token of all ranks and expert of this one: how often it was there
  std::uint64_t* found = nullptr;  ///< by fault and rank, how many rows have it; behind them the least token
                                   ///< of each, its bits turned

  [[nodiscard]] constexpr std::uint64_t out_slot() const { return before + out; }
  [[nodiscard]] constexpr std::uint64_t back_slot() const { return kHeadWords + back; }
  [[nodiscard]] constexpr std::int64_t token_of(std::uint64_t row) const {
    return firsts[own] + static_cast<std::int64_t>(tokens_of[row]);
  }
};

/// Words of RowView::found.
constexpr std::uint64_t found_words(std::uint64_t ranks) { return ranks * 2 * kRowFaults; }

namespace rows {

constexpr std::uint64_t* at(std::uint64_t* memory, const std::uint64_t* firsts, std::uint32_t region, std::uint64_t row,
                            std::uint64_t each) {
  return memory + region_offset(firsts[region], region, each) + (row - firsts[region]) * each;
}
constexpr std::uint64_t* came(const RowView& v, std::uint32_t source, std::uint64_t row) {
  return at(v.came, v.from, source, row, v.out_slot());
}
constexpr std::uint64_t* returned(const RowView& v, std::uint32_t target, std::uint64_t row) {
  return at(v.returned, v.to, target, row, v.back_slot());
}
constexpr std::uint64_t seed(const RowView& v, std::int64_t token) {
  return cluster_storage::payload_seed(token_key(v.nonce, v.step, token));
}
constexpr std::uint16_t expert_in(const std::uint64_t* slot, std::uint32_t place) {
  return static_cast<std::uint16_t>(slot[kHeadWords + place / kPlacesOfWord] >> (place % kPlacesOfWord * 16));
}
/// The word of a token from which word `word` of its result is made: they repeat in a longer result.
constexpr std::uint64_t source_word(const RowView& v, std::uint64_t word) {
  while (word >= v.out) word -= v.out;
  return word;
}

constexpr void make(const RowView& v, std::uint64_t row, std::uint32_t lane, std::uint32_t lanes) {
  const std::uint64_t stream = seed(v, v.firsts[v.own] + static_cast<std::int64_t>(row));
  for (std::uint64_t i = lane; i < v.out; i += lanes)
    v.tokens[row * v.out + i] = cluster_storage::payload_word(stream, i);
}

constexpr void pack(const RowView& v, std::uint64_t row, std::uint32_t lane, std::uint32_t lanes) {
  const std::uint32_t target = region_of(v.to, v.ranks, row);
  std::uint64_t* const slot = target == v.own && !v.loops ? came(v, v.own, v.from[v.own] + row - v.to[v.own])
                                                          : at(v.leaving, v.to, target, row, v.out_slot());
  const std::uint64_t* const token = v.tokens + v.tokens_of[row] * v.out;
  for (std::uint64_t i = lane; i < v.out_slot(); i += lanes) {
    if (i >= v.before) {
      slot[i] = token[i - v.before];
    } else if (i < kHeadWords) {
      slot[i] = i == 0 ? static_cast<std::uint64_t>(v.token_of(row)) : proof_of(v.nonce, v.step, v.token_of(row));
    } else {
      slot[i] = 0;
      for (std::uint32_t j = 0; j < kPlacesOfWord; ++j) {
        const std::uint64_t place = (i - kHeadWords) * kPlacesOfWord + j;
        const std::uint64_t expert = place < v.places ? v.experts[row * v.places + place] : 0;
        slot[i] |= expert << (16 * j);
      }
    }
  }
}

constexpr void work(const RowView& v, std::uint64_t row, std::uint32_t lane, std::uint32_t lanes) {
  const std::uint32_t source = region_of(v.from, v.ranks, row);
  const std::uint64_t* const slot = came(v, source, row);
  ExpertMap map;
  for (std::uint32_t place = 0; place < v.places && expert_in(slot, place) != kNoExpert; ++place)
    map.add(v.nonce, expert_in(slot, place));
  std::uint64_t* const result = source == v.own && !v.loops ? returned(v, v.own, v.to[v.own] + row - v.from[v.own])
                                                            : at(v.made, v.from, source, row, v.back_slot());
  for (std::uint64_t i = lane; i < v.back_slot(); i += lanes)
    result[i] = i < kHeadWords ? slot[i] : map.of(slot[v.before + source_word(v, i - kHeadWords)]);
}

constexpr void add_up(const RowView& v, std::uint64_t row, std::uint32_t lane, std::uint32_t lanes) {
  const std::uint64_t* const parts = v.rows_of + row * v.copies;
  for (std::uint64_t i = lane; i < v.back; i += lanes) {
    std::uint64_t sum = 0;
    for (std::uint32_t j = 0; j < v.copies && parts[j] != kNoRow; ++j) sum += v.returned[parts[j] + kHeadWords + i];
    v.sums[row * v.back + i] = sum;
  }
}

template <class Count>
constexpr std::uint32_t check_came(const RowView& v, std::uint64_t row, std::uint32_t lane, std::uint32_t lanes,
                                   const Count& count) {
  const std::uint32_t source = region_of(v.from, v.ranks, row);
  const std::uint64_t* const slot = came(v, source, row);
  const auto token = static_cast<std::int64_t>(slot[0]);
  if (token < v.firsts[source] || token >= v.firsts[source + 1] || slot[1] != proof_of(v.nonce, v.step, token))
    return bit_of(RowFault::foreign_head);
  std::uint64_t differing = 0;
  const std::uint64_t stream = seed(v, token);
  for (std::uint64_t i = lane; i < v.out; i += lanes)
    differing |= slot[v.before + i] ^ cluster_storage::payload_word(stream, i);
  std::uint32_t faults = differing != 0 ? bit_of(RowFault::other_bytes) : 0;
  const std::uint16_t* const due = v.routes + slot[0] * v.top_k;
  for (std::uint32_t place = lane; place < v.places; place += lanes) {
    const std::uint16_t expert = expert_in(slot, place);
    if (expert == kNoExpert) continue;
    bool is_due = expert / v.experts_each == v.own;
    std::uint32_t j = 0;
    while (j < v.top_k && due[j] != expert) ++j;
    is_due = is_due && j < v.top_k;
    if (is_due)
      count(v.seen[slot[0] * v.experts_each + expert % v.experts_each]);
    else
      faults |= bit_of(RowFault::other_expert);
  }
  return faults;
}

constexpr std::uint32_t check_experts(const RowView& v, std::uint64_t token, std::uint32_t lane, std::uint32_t lanes) {
  std::uint32_t faults = 0;
  for (std::uint32_t j = lane; j < v.top_k; j += lanes) {
    const std::uint16_t expert = v.routes[token * v.top_k + j];
    if (expert / v.experts_each != v.own) continue;
    const std::uint32_t times = v.seen[token * v.experts_each + expert % v.experts_each];
    if (times != 1) faults |= bit_of(times == 0 ? RowFault::lost : RowFault::doubled);
  }
  return faults;
}

/// The bits in which words differ from those of `map` on token `token`.
constexpr std::uint64_t difference(const RowView& v, std::int64_t token, const ExpertMap& map,
                                   const std::uint64_t* found, std::uint32_t lane, std::uint32_t lanes) {
  const std::uint64_t stream = seed(v, token);
  std::uint64_t differing = 0;
  for (std::uint64_t i = lane; i < v.back; i += lanes)
    differing |= found[i] ^ map.of(cluster_storage::payload_word(stream, source_word(v, i)));
  return differing;
}

constexpr std::uint32_t check_returned(const RowView& v, std::uint64_t row, std::uint32_t lane, std::uint32_t lanes) {
  const std::uint64_t* const slot = returned(v, region_of(v.to, v.ranks, row), row);
  const std::int64_t token = v.token_of(row);
  ExpertMap map;
  for (std::uint32_t place = 0; place < v.places && v.experts[row * v.places + place] != kNoExpert; ++place)
    map.add(v.nonce, v.experts[row * v.places + place]);
  const bool is_its = slot[0] == static_cast<std::uint64_t>(token) && slot[1] == proof_of(v.nonce, v.step, token);
  const bool is_right = is_its && difference(v, token, map, slot + kHeadWords, lane, lanes) == 0;
  return is_right ? 0 : bit_of(RowFault::wrong_result);
}

constexpr std::uint32_t check_sums(const RowView& v, std::uint64_t row, std::uint32_t lane, std::uint32_t lanes) {
  const std::int64_t token = v.firsts[v.own] + static_cast<std::int64_t>(row);
  ExpertMap map;
  for (std::uint32_t j = 0; j < v.top_k; ++j)
    map.add(v.nonce, v.routes[static_cast<std::uint64_t>(token) * v.top_k + j]);
  return difference(v, token, map, v.sums + row * v.back, lane, lanes) == 0 ? 0 : bit_of(RowFault::wrong_sum);
}

/// Whose row it is that `work` found wrong, and of which token.
struct Blame {
  std::uint32_t rank = 0;
  std::uint64_t token = 0;
};
constexpr Blame blame(RowWork work, const RowView& v, std::uint64_t row) {
  const std::uint32_t source = work == RowWork::check_came ? region_of(v.from, v.ranks, row) : 0;
  if (work == RowWork::check_came) return {.rank = source, .token = came(v, source, row)[0]};
  if (work == RowWork::check_experts)
    return {.rank = region_of(v.firsts, v.ranks, static_cast<std::int64_t>(row)), .token = row};
  if (work == RowWork::check_returned)
    return {.rank = region_of(v.to, v.ranks, row), .token = static_cast<std::uint64_t>(v.token_of(row))};
  return {.rank = v.own, .token = static_cast<std::uint64_t>(v.firsts[v.own]) + row};
}

}  // namespace rows

/// One lane's part of `work` on a row; the faults that it found. `count` adds 1 to a number that others add to as well.
template <RowWork work, class Count>
constexpr std::uint32_t run_row(const RowView& v, std::uint64_t row, std::uint32_t lane, std::uint32_t lanes,
                                const Count& count) {
  if constexpr (work == RowWork::make) rows::make(v, row, lane, lanes);
  if constexpr (work == RowWork::pack) rows::pack(v, row, lane, lanes);
  if constexpr (work == RowWork::work) rows::work(v, row, lane, lanes);
  if constexpr (work == RowWork::add_up) rows::add_up(v, row, lane, lanes);
  if constexpr (work == RowWork::check_came) return rows::check_came(v, row, lane, lanes, count);
  if constexpr (work == RowWork::check_experts) return rows::check_experts(v, row, lane, lanes);
  if constexpr (work == RowWork::check_returned) return rows::check_returned(v, row, lane, lanes);
  if constexpr (work == RowWork::check_sums) return rows::check_sums(v, row, lane, lanes);
  return 0;
}

/// Calls `run.operator()<work>()`.
template <class Run>
void with_row_work(RowWork work, const Run& run) {
  switch (work) {
    case RowWork::make:
      return run.template operator()<RowWork::make>();
    case RowWork::pack:
      return run.template operator()<RowWork::pack>();
    case RowWork::work:
      return run.template operator()<RowWork::work>();
    case RowWork::add_up:
      return run.template operator()<RowWork::add_up>();
    case RowWork::check_came:
      return run.template operator()<RowWork::check_came>();
    case RowWork::check_experts:
      return run.template operator()<RowWork::check_experts>();
    case RowWork::check_returned:
      return run.template operator()<RowWork::check_returned>();
    case RowWork::check_sums:
      return run.template operator()<RowWork::check_sums>();
  }
}

/// Notes the faults that all lanes found in a row. `count` adds 1 to, and `raise` raises, a number that others change
/// as well.
template <class Count, class Raise>
constexpr void report_row(RowWork work, const RowView& v, std::uint64_t row, std::uint32_t faults, const Count& count,
                          const Raise& raise) {
  const rows::Blame blame = rows::blame(work, v, row);
  const std::uint64_t ranks = v.ranks;
  for (std::uint32_t fault = 0; fault < kRowFaults; ++fault) {
    if ((faults >> fault & 1U) == 0) continue;
    std::uint64_t* const at = v.found + fault * ranks + blame.rank;
    count(*at);
    raise(at[kRowFaults * ranks], ~blame.token);
  }
}

}  // namespace assay::inference
