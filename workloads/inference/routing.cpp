// routing: only whole numbers, so that every rank and processor routes alike.
#include "workloads/inference/routing.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "probes/collective/pattern.h"
#include "probes/core/parameters.h"

namespace assay::inference {
namespace {

/// Draws of an expert that is chosen already, after which the next free one is taken: with it a token of a steep
/// distribution ends, too.
constexpr std::uint64_t kMostDraws = 64;
constexpr std::uint64_t kWhole = std::uint64_t{1} << 32;  // weight of the most wanted expert

std::uint64_t unsigned_of(std::int64_t number) { return static_cast<std::uint64_t>(number); }
std::int64_t signed_of(std::uint64_t number) { return static_cast<std::int64_t>(number); }

}  // namespace

std::vector<Family> families_in(const std::string& list, const RoutingShape& shape) {
  std::vector<Family> families;
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t end = std::min(list.find(',', at), list.size());
    const std::string word = list.substr(at, end - at);
    at = end + 1;
    const auto family = from_word<Family>(word);
    if (!family) throw BadParameter(fmt::format("families: '{}' is none of {}", word, words_listed<Family>()));
    if (std::ranges::find(families, *family) != families.end())
      throw BadParameter(fmt::format("families: '{}' is there twice", word));
    families.push_back(*family);
    const std::int64_t others = shape.experts - shape.experts_per_rank();
    if (*family == Family::empty_rank && shape.top_k > others)
      throw BadParameter(
          fmt::format("families: without the last rank {} experts are left for {} of each token; leave empty_rank out, "
                      "or give more ranks",
                      others, shape.top_k));
  }
  return families;
}

Router::Router(const RoutingShape& shape, Family family)
    : shape_(shape), family_(family), order_(static_cast<std::size_t>(shape.experts)) {
  std::iota(order_.begin(), order_.end(), 0);
  for (std::size_t left = order_.size(); left > 1; --left)  // Fisher & Yates
    std::swap(order_[left - 1], order_[collective::mixed(shape.seed, left) % left]);
  std::uint64_t sum = 0;
  for (std::uint64_t place = 1; place <= order_.size(); ++place)
    below_.push_back(sum += family == Family::zipf ? kWhole / place : kWhole);
}

void Router::choose(std::uint64_t step, std::int64_t token, std::span<std::int64_t> experts) const {
  const std::int64_t ranks = shape_.ranks, each = shape_.experts_per_rank();
  const std::uint64_t turn = unsigned_of(token) + step;
  switch (family_) {
    case Family::balanced:
      for (std::size_t j = 0; j < experts.size(); ++j)
        experts[j] = signed_of((unsigned_of(token * shape_.top_k) + j + step) % unsigned_of(shape_.experts));
      return;
    case Family::uniform:
    case Family::zipf:
      return draw(step, token, experts);
    case Family::hot_expert:
      return with_hot_expert(signed_of(shape_.seed % unsigned_of(shape_.experts)), token, experts);
    case Family::moving_hotspot: {
      const std::int64_t at = signed_of(step);
      return with_hot_expert(at % ranks * each + at / ranks % each, token, experts);
    }
    case Family::hot_rank:
      return token % 2 == 0 ? with_hot_rank(token / 2, experts) : spread_over(shape_.experts, turn / 2, experts);
    case Family::burst:
      if (step % kBurstPeriod == kBurstPeriod - 1) return with_hot_rank(token, experts);
      break;
    case Family::empty_rank:
      return spread_over(shape_.experts - each, turn, experts);
    case Family::spread:
    case Family::ragged_source:
      break;
  }
  spread_over(shape_.experts, turn, experts);
}

void Router::draw(std::uint64_t step, std::int64_t token, std::span<std::int64_t> experts) const {
  const std::uint64_t seed = collective::mixed(collective::mixed(shape_.seed, step), unsigned_of(token));
  std::uint64_t number = 0;
  for (std::size_t j = 0; j < experts.size(); ++j) {
    const auto chosen = experts.first(j);
    std::size_t place = 0;
    for (std::uint64_t draws = 0; draws < kMostDraws; ++draws) {
      const std::uint64_t at = collective::mixed(seed, number++) % below_.back();
      place = static_cast<std::size_t>(std::ranges::upper_bound(below_, at) - below_.begin());
      if (std::ranges::find(chosen, order_[place]) == chosen.end()) break;
    }
    while (std::ranges::find(chosen, order_[place]) != chosen.end()) place = (place + 1) % order_.size();
    experts[j] = order_[place];
  }
}

void Router::spread_over(std::int64_t count, std::uint64_t turn, std::span<std::int64_t> experts) const {
  for (std::size_t j = 0; j < experts.size(); ++j) {
    const std::uint64_t apart = j * unsigned_of(count) / experts.size();
    experts[j] = signed_of((turn + apart) % unsigned_of(count));
  }
}

void Router::with_hot_expert(std::int64_t hot, std::int64_t token, std::span<std::int64_t> experts) const {
  experts[0] = hot;
  for (std::size_t j = 1; j < experts.size(); ++j) {
    const std::int64_t other = (token * (shape_.top_k - 1) + signed_of(j) - 1) % (shape_.experts - 1);
    experts[j] = other < hot ? other : other + 1;
  }
}

void Router::with_hot_rank(std::int64_t token, std::span<std::int64_t> experts) const {
  const std::int64_t each = shape_.experts_per_rank(),
                     first = signed_of(shape_.seed % unsigned_of(shape_.ranks)) * each;
  const std::int64_t there = std::min(shape_.top_k, each), others = shape_.top_k - there;
  for (std::int64_t j = 0; j < there; ++j) experts[unsigned_of(j)] = first + (token * there + j) % each;
  for (std::int64_t j = 0; j < others; ++j) {
    const std::int64_t other = (token * others + j) % (shape_.experts - each);
    experts[unsigned_of(there + j)] = other < first ? other : other + each;
  }
}

std::int64_t Router::first_token(std::int64_t rank) const {
  if (family_ == Family::ragged_source)
    return shape_.tokens * (rank * (rank + 1)) / (shape_.ranks * (shape_.ranks + 1));
  return shape_.tokens * rank / shape_.ranks;
}

std::vector<std::int64_t> Router::load(std::uint64_t step) const {
  std::vector<std::int64_t> load(unsigned_of(shape_.ranks)), experts(unsigned_of(shape_.top_k));
  for (std::int64_t token = 0; token < shape_.tokens; ++token) {
    choose(step, token, experts);
    for (const std::int64_t expert : experts) ++load[unsigned_of(shape_.rank_of(expert))];
  }
  return load;
}

double Router::imbalance(std::uint64_t step) const {
  const auto all = load(step);
  const double mean = static_cast<double>(shape_.tokens * shape_.top_k) / static_cast<double>(shape_.ranks);
  return static_cast<double>(std::ranges::max(all)) / mean;
}

}  // namespace assay::inference
