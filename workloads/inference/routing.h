// routing: which experts work on which token, by family of skew; the same for every rank that asks.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "probes/core/words.h"

namespace assay::inference {

/// How tokens are spread over experts. balanced: in turn, top_k in a row; spread: in turn, as far apart as possible;
/// uniform: drawn, all alike; zipf: drawn, the i-th most wanted expert with a weight of 1/i; hot_expert: one expert
/// works on every token; hot_rank: every second token goes to one rank as far as that has experts; ragged_source:
/// spread, and rank r begins with a share of tokens in proportion to r + 1; empty_rank: spread over all but the last
/// rank; moving_hotspot: a hot expert on another rank in each step; burst: spread, and in every eighth step all tokens
/// as those of hot_rank.
enum class Family {
  balanced,
  spread,
  uniform,
  zipf,
  hot_expert,
  hot_rank,
  ragged_source,
  empty_rank,
  moving_hotspot,
  burst
};

constexpr auto words_of(Family) { return names_as_words<Family>(); }

/// Whether all experts get the same by force, which no router of a model does: such steps flatter, and yield no rate.
constexpr bool is_forced(Family family) { return family == Family::balanced || family == Family::spread; }

/// Steps of burst from one hot step to the next.
inline constexpr std::uint64_t kBurstPeriod = 8;

/// Parameters of routing. `ranks` divides `experts`, which are on the ranks in order; `top_k` is at most `experts`.
struct RoutingShape {
  std::int64_t tokens = 0;  ///< of all ranks together
  std::int64_t experts = 0, top_k = 0, ranks = 1;
  std::uint64_t seed = 0;
  [[nodiscard]] constexpr std::int64_t experts_per_rank() const { return experts / ranks; }
  [[nodiscard]] constexpr std::int64_t rank_of(std::int64_t expert) const { return expert / experts_per_rank(); }
};

/// The families of a list of words, separated by commas; each once. Throws BadParameter for another word, and for
/// empty_rank where the other ranks have fewer than top_k experts.
std::vector<Family> families_in(const std::string& list, const RoutingShape& shape);

/// The routes of one family.
class Router {
 public:
  Router(const RoutingShape& shape, Family family);

  /// Writes the experts of token `token`, counted over all ranks, in step `step` to `experts`, which has room for
  /// top_k; each is another one.
  void choose(std::uint64_t step, std::int64_t token, std::span<std::int64_t> experts) const;
  /// The first token that `rank` begins with; its last is before that of the next. Of `ranks`: all tokens.
  [[nodiscard]] std::int64_t first_token(std::int64_t rank) const;
  /// How many times an expert of each rank works on a token in `step`.
  [[nodiscard]] std::vector<std::int64_t> load(std::uint64_t step) const;
  /// The largest load over the mean: 1 is balanced.
  [[nodiscard]] double imbalance(std::uint64_t step) const;
  [[nodiscard]] const RoutingShape& shape() const { return shape_; }
  [[nodiscard]] Family family() const { return family_; }

 private:
  void draw(std::uint64_t step, std::int64_t token, std::span<std::int64_t> experts) const;
  void spread_over(std::int64_t count, std::uint64_t turn, std::span<std::int64_t> experts) const;
  void with_hot_expert(std::int64_t hot, std::int64_t token, std::span<std::int64_t> experts) const;
  void with_hot_rank(std::int64_t token, std::span<std::int64_t> experts) const;

  RoutingShape shape_;
  Family family_;
  std::vector<std::int64_t> order_;   ///< experts, the most wanted first
  std::vector<std::uint64_t> below_;  ///< of each place in that order: the weights up to and with it
};

}  // namespace assay::inference
