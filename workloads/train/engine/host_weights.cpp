// host_weights: the value of a weight is computed from its place in the undivided matrix, so that it does not depend on
// the plan.
#include "workloads/train/engine/host_weights.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>
#include <stdexcept>

#include "workloads/train/engine/step_math.h"

namespace assay::train {
namespace {

constexpr float kSpread = 0.02F;  // standard deviation of the first weights, as in GPT-2

/// A standard normal number (Box & Muller 1958) of 64 random bits.
float normal(std::uint64_t bits) {
  const double radius = (static_cast<double>(bits >> 32) + 0.5) * 0x1p-32;
  const double angle = static_cast<double>(bits & 0xffffffff) * 0x1p-32;
  return static_cast<float>(std::sqrt(-2 * std::log(radius)) * std::cos(2 * std::numbers::pi * angle));
}

}  // namespace

HostWeights::HostWeights(const ModelShape& model, const ParallelPlan& plan, std::int64_t rank, std::uint64_t seed,
                         bool exact)
    : exact_(exact) {
  const RankPosition at = position_of(plan, rank);
  tp_ = sized(at.tp);
  tp_all_ = sized(plan.tp);
  const std::int64_t replica = at.cp + plan.cp * at.dp;
  ep_ = sized(replica % plan.ep);
  ep_all_ = sized(plan.ep);
  begins_.push_back(0);
  lay_out(with_layers(model, plan.layers), plan, at.pp);
  weights_.assign(begins_.back(), 0);
  gradients_.assign(begins_.back(), 0);
  std::size_t kept = 0;
  const auto buckets = buckets_of(model, plan, at.pp);
  for (std::size_t i = 0; i + 1 < begins_.size(); ++i) {
    const std::size_t all = begins_[i + 1] - begins_[i], of = buckets[i].experts ? ep_all_ : 1;
    const std::size_t shards = plan.zero == 0 ? 1 : sized(plan.replicas()) / of;
    const std::size_t place = plan.zero == 0 ? 0 : sized(replica) / of, begin = place * all / shards;
    shares_.push_back({.begin = begin, .count = (place + 1) * all / shards - begin});
    kept += shares_.back().count;
  }
  first_.assign(exact ? 0 : kept, 0);
  second_.assign(exact ? 0 : kept, 0);
  fill(seed);
}

void HostWeights::add(Role role, std::int64_t layer, Weight weight, std::size_t expert) {
  weight.id = mixed(static_cast<std::uint64_t>(role), static_cast<std::uint64_t>(layer + 1));
  weight.offset = begins_.back();
  if (weight.parts.empty()) weight.parts = {{.local = 0, .count = weight.columns, .whole = 0}};
  if (weight.whole_columns == 0) weight.whole_columns = weight.columns;
  begins_.back() += weight.size();
  known_[{role, layer, expert}] = std::move(weight);
}

/// Columns `whole` after `before` others, of which each tp rank has its share, from `local` on.
Columns HostWeights::divided(std::size_t local, std::size_t before, std::size_t whole) const {
  return {.local = local, .count = whole / tp_all_, .whole = before + tp_ * (whole / tp_all_)};
}

void HostWeights::lay_out_layer(const ModelShape& m, std::int64_t layer) {
  const std::size_t h = sized(m.hidden), tp = tp_all_, q = sized(m.q()), kv = sized(m.kv());
  const auto gain = [&](Role role) { add(role, layer, {.rows = 1, .columns = h, .gain = true}); };
  const auto mlp = [&](Role widening, Role narrowing, std::size_t f) {
    add(widening, layer,
        {.rows = h, .columns = 2 * f / tp, .whole_columns = 2 * f, .parts = {divided(0, 0, f), divided(f / tp, f, f)}});
    add(narrowing, layer, {.rows = f / tp, .columns = h, .first_row = tp_ * (f / tp)});
  };
  gain(Role::attention_norm);
  add(Role::qkv, layer,
      {.rows = h,
       .columns = (q + 2 * kv) / tp,
       .whole_columns = q + 2 * kv,
       .parts = {divided(0, 0, q), divided(q / tp, q, kv), divided((q + kv) / tp, q + kv, kv)}});
  add(Role::attention_out, layer, {.rows = q / tp, .columns = h, .first_row = tp_ * (q / tp)});
  gain(Role::mlp_norm);
  if (!m.is_mixture(layer)) return mlp(Role::gate_up, Role::down, sized(m.ffn));
  const std::size_t experts = sized(m.moe->experts);
  add(Role::router, layer,
      {.rows = h, .columns = experts / tp, .whole_columns = experts, .parts = {divided(0, 0, experts)}});
  if (m.moe->shared > 0) mlp(Role::shared_gate_up, Role::shared_down, sized(m.moe->shared * m.moe->ffn));
}

void HostWeights::lay_out_experts(const ModelShape& m, std::int64_t layer) {
  const std::size_t h = sized(m.hidden), f = sized(m.moe->ffn), mine = f / tp_all_;
  const std::size_t here = sized(m.moe->experts) / ep_all_, first = ep_ * here;
  for (std::size_t i = 0; i < here; ++i)
    add(Role::gate_up, layer,
        {.rows = h,
         .columns = 2 * mine,
         .first_row = (first + i) * h,
         .whole_columns = 2 * f,
         .parts = {divided(0, 0, f), divided(mine, f, f)},
         .expert = true},
        i);
  for (std::size_t i = 0; i < here; ++i)
    add(Role::down, layer, {.rows = mine, .columns = h, .first_row = (first + i) * f + tp_ * mine, .expert = true}, i);
}

void HostWeights::lay_out(const ModelShape& m, const ParallelPlan& plan, std::int64_t pp_rank) {
  const std::size_t h = sized(m.hidden), tp = tp_all_, vocab = sized(m.vocab);
  for (const Bucket& bucket : buckets_of(m, plan, pp_rank)) {
    const std::size_t begin = begins_.back();
    begins_.push_back(begin);
    if (bucket.layer >= 0) {
      bucket.experts ? lay_out_experts(m, bucket.layer) : lay_out_layer(m, bucket.layer);
    } else if (bucket.end == Role::head) {
      add(Role::head, -1, {.rows = h, .columns = vocab / tp, .whole_columns = vocab, .parts = {divided(0, 0, vocab)}});
      add(Role::final_norm, -1, {.rows = 1, .columns = h, .gain = true});
    } else {
      add(Role::embed, -1, {.rows = vocab / tp, .columns = h, .first_row = tp_ * (vocab / tp)});
    }
    if (begins_.back() - begin != sized(bucket.elements))
      throw std::logic_error("a bucket of the plan and its weights differ in size");
  }
}

void HostWeights::fill(std::uint64_t seed) {
  for (const auto& [key, one] : known_) {
    float* to = weights(one);
    for (std::size_t row = 0; row < one.rows; ++row, to += one.columns) {
      for (const Columns& part : one.parts) {
        for (std::size_t i = 0; i < part.count; ++i) {
          const std::uint64_t place = (one.first_row + row) * one.whole_columns + part.whole + i;
          const std::uint64_t bits = mixed(seed ^ one.id, place);
          if (exact_)
            to[part.local + i] = static_cast<float>(bits % kModulus) - 3;
          else
            to[part.local + i] = one.gain ? 1 : kSpread * normal(bits);
        }
      }
    }
  }
}

const Weight& HostWeights::at(Role role, std::int64_t layer, std::size_t expert) const {
  const auto found = known_.find({role, layer, expert});
  if (found == known_.end()) throw std::logic_error("this rank has no such weight");
  return found->second;
}

std::span<float> HostWeights::part(std::vector<float>& of, std::int64_t bucket) {
  const std::size_t begin = begins_[sized(bucket)], end = begins_[sized(bucket) + 1];
  return {of.data() + begin, end - begin};
}

void HostWeights::prepare_aside() {
  aside_weights_ = weights_;
  aside_first_ = first_;
  aside_second_ = second_;
}

void HostWeights::update(std::int64_t bucket, bool aside) {
  const Share mine = share(bucket);
  const std::size_t begin = begins_[sized(bucket)] + mine.begin;
  std::size_t kept = 0;
  for (std::int64_t before = 0; before < bucket; ++before) kept += share(before).count;
  adam(mine.count,
       {.weights = (aside ? aside_weights_ : weights_).data() + begin,
        .gradients = gradients_.data() + begin,
        .first = exact_ ? nullptr : (aside ? aside_first_ : first_).data() + kept,
        .second = exact_ ? nullptr : (aside ? aside_second_ : second_).data() + kept},
       exact_);
}

void HostWeights::clear_gains() {
  for (const auto& [key, one] : known_) {
    if (one.gain) std::fill_n(gradients(one), one.size(), 0.0F);
  }
}

std::uint64_t HostWeights::print(bool of_gradients, bool experts) const {
  const std::vector<float>& from = of_gradients ? gradients_ : weights_;
  std::uint64_t sum = 0;
  for (const auto& [key, one] : known_) {
    if (one.expert != experts || (one.gain && tp_ != 0)) continue;
    const float* values = from.data() + one.offset;
    for (std::size_t row = 0; row < one.rows; ++row, values += one.columns) {
      for (const Columns& part : one.parts) {
        for (std::size_t i = 0; i < part.count; ++i) {
          const std::uint64_t place = (one.first_row + row) * one.whole_columns + part.whole + i;
          // + 0: of the two zeros, which are equal, one.
          sum += mixed(one.id + place, std::bit_cast<std::uint32_t>(values[part.local + i] + 0.0F));
        }
      }
    }
  }
  return sum;
}

}  // namespace assay::train
