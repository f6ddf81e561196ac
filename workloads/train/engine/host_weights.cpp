// host_weights: the layout of a rank's weights, and the values and prints of a host's.
#include "workloads/train/engine/host_weights.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <stdexcept>

#include "workloads/train/engine/step_math.h"

namespace assay::train {
namespace {

float normal(std::uint64_t bits) {
  const auto parts = normal_parts<double>(bits);
  return static_cast<float>(std::sqrt(-2 * std::log(parts.radius)) * std::cos(2 * std::numbers::pi * parts.turn));
}

}  // namespace

WeightLayout::WeightLayout(const ModelShape& model, const ParallelPlan& plan, std::int64_t rank) {
  const RankPosition at = position_of(plan, rank);
  tp_ = sized(at.tp);
  tp_all_ = sized(plan.tp);
  const std::int64_t replica = at.cp + plan.cp * at.dp;
  ep_ = sized(replica % plan.ep);
  ep_all_ = sized(plan.ep);
  begins_.push_back(0);
  lay_out(with_layers(model, plan.layers), plan, at.pp);
  std::size_t kept = 0;
  const auto buckets = buckets_of(model, plan, at.pp);
  for (std::size_t i = 0; i + 1 < begins_.size(); ++i) {
    const std::size_t all = begins_[i + 1] - begins_[i], of = buckets[i].experts ? ep_all_ : 1;
    const std::size_t shards = plan.zero == 0 ? 1 : sized(plan.replicas()) / of;
    const std::size_t place = plan.zero == 0 ? 0 : sized(replica) / of, begin = place * all / shards;
    shares_.push_back({.begin = begins_[i] + begin, .count = (place + 1) * all / shards - begin, .place = kept});
    kept += shares_.back().count;
  }
}

void WeightLayout::add(Role role, std::int64_t layer, Weight weight, std::size_t expert) {
  weight.id = mixed(static_cast<std::uint64_t>(role), static_cast<std::uint64_t>(layer + 1));
  weight.offset = begins_.back();
  if (weight.parts.empty()) weight.parts = {{.local = 0, .count = weight.columns, .whole = 0}};
  if (weight.whole_columns == 0) weight.whole_columns = weight.columns;
  begins_.back() += weight.size();
  known_[{role, layer, expert}] = std::move(weight);
}

/// Columns `whole` after `before` others, of which each tp rank has its share, from `local` on.
Columns WeightLayout::divided(std::size_t local, std::size_t before, std::size_t whole) const {
  return {.local = local, .count = whole / tp_all_, .whole = before + tp_ * (whole / tp_all_)};
}

void WeightLayout::lay_out_layer(const ModelShape& m, std::int64_t layer) {
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

void WeightLayout::lay_out_experts(const ModelShape& m, std::int64_t layer) {
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

void WeightLayout::lay_out(const ModelShape& m, const ParallelPlan& plan, std::int64_t pp_rank) {
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

const Weight& WeightLayout::at(Role role, std::int64_t layer, std::size_t expert) const {
  const auto found = known_.find({role, layer, expert});
  if (found == known_.end()) throw std::logic_error("this rank has no such weight");
  return found->second;
}

std::vector<WeightBlock> WeightLayout::blocks() const {
  std::vector<WeightBlock> all;
  for (const auto& [key, one] : known_) {
    for (const Columns& part : one.parts)
      all.push_back({.id = one.id,
                     .place = one.first_row * one.whole_columns + part.whole,
                     .whole_columns = one.whole_columns,
                     .offset = one.offset + part.local,
                     .rows = one.rows,
                     .count = part.count,
                     .stride = one.columns,
                     .gain = one.gain,
                     .expert = one.expert,
                     .printed = !one.gain || tp_ == 0});
  }
  return all;
}

HostWeights::HostWeights(const ModelShape& model, const ParallelPlan& plan, std::int64_t rank, std::uint64_t seed,
                         bool exact)
    : RankWeights(model, plan, rank), exact_(exact), blocks_(blocks()) {
  weights_.assign(size(), 0);
  gradients_.assign(size(), 0);
  first_.assign(exact ? 0 : kept_size(), 0);
  second_.assign(exact ? 0 : kept_size(), 0);
  keep_in(weights_, gradients_);
  for (const WeightBlock& block : blocks_) {
    for (std::size_t row = 0; row < block.rows; ++row) {
      float* const to = weights_.data() + block.at(row, 0);
      for (std::size_t i = 0; i < block.count; ++i) {
        const std::uint64_t bits = block.bits(seed, row, i);
        to[i] = exact ? whole_weight(bits) : block.gain ? 1 : kWeightSpread * normal(bits);
      }
    }
  }
}

void HostWeights::prepare_aside() {
  aside_weights_ = weights_;
  aside_first_ = first_;
  aside_second_ = second_;
}

void HostWeights::update(std::int64_t bucket, bool aside) {
  const Kept mine = kept(bucket);
  adam(mine.count,
       {.weights = (aside ? aside_weights_ : weights_).data() + mine.begin,
        .gradients = gradients_.data() + mine.begin,
        .first = exact_ ? nullptr : (aside ? aside_first_ : first_).data() + mine.place,
        .second = exact_ ? nullptr : (aside ? aside_second_ : second_).data() + mine.place},
       exact_);
}

void HostWeights::clear_gains() {
  for (const WeightBlock& block : blocks_) {
    if (block.gain) std::fill_n(gradients_.data() + block.offset, block.size(), 0.0F);
  }
}

std::uint64_t HostWeights::print(bool of_gradients, bool experts) const {
  const std::vector<float>& from = of_gradients ? gradients_ : weights_;
  std::uint64_t sum = 0;
  for (const WeightBlock& block : blocks_) {
    if (block.expert != experts || !block.printed) continue;
    for (std::size_t row = 0; row < block.rows; ++row) {
      const float* const values = from.data() + block.at(row, 0);
      for (std::size_t i = 0; i < block.count; ++i) sum += block.print(row, i, values[i]);
    }
  }
  return sum;
}

}  // namespace assay::train
