// decode_room: one walk over the arrays gives both places and size.
#include "workloads/inference/decode_room.h"

#include <fmt/format.h>

namespace assay::inference {
namespace {

constexpr std::uint64_t kGranule = std::uint64_t{2} << 20;    // of an allocation of the driver
constexpr std::uint64_t kAligned = 256;                       // B; cudaMalloc's own alignment
constexpr std::uint64_t kReserve = std::uint64_t{512} << 20;  // of contexts, kernels, and graphs of some thousand nodes

constexpr std::uint64_t up(std::uint64_t size, std::uint64_t granule) {
  return (size + granule - 1) / granule * granule;
}

}  // namespace

DecodeWork lay_out(const DecodeSizes& s, std::byte* begin) {
  DecodeWork work;
  const auto take = [&]<class Number>(Number*& to, std::int64_t numbers) {
    to = reinterpret_cast<Number*>(begin + work.size);
    work.size = up(work.size + static_cast<std::uint64_t>(numbers) * sizeof(Number), kAligned);
  };
  const std::int64_t rows = sequence_tiles(s.batch) * kVector;  // products read whole tiles of sequences
  DecodePointers& at = work.at;
  take(at.table, s.pages());
  take(at.inputs, kDecodeInputs * s.batch * s.hidden);
  take(at.x, s.batch * s.hidden);
  take(at.whole_x, s.batch * s.hidden);
  take(at.whole_from, s.batch * std::max(s.q(), s.ffn));
  take(at.whole_to, s.batch * std::max({s.qkv(), 2 * s.ffn, s.vocab}));
  work.results = work.size;
  take(at.h, rows * s.hidden);
  take(at.attended, rows * s.q());
  take(at.inner, rows * s.ffn);
  take(at.qkv, s.batch * s.qkv());
  take(at.gate_up, s.batch * 2 * s.ffn);
  take(at.logits, s.batch * s.vocab);
  take(at.largest, s.parts());
  take(at.sums, s.parts());
  take(at.parts, s.parts() * s.head_dim);
  return work;
}

DecodeSizes sizes_of(const DecodeShape& shape, DecodeNumbers numbers) {
  const train::ModelShape& m = shape.model;
  return {.layers = m.layers,
          .hidden = m.hidden,
          .ffn = m.ffn,
          .heads = m.heads,
          .kv_heads = m.kv_heads,
          .head_dim = m.head_dim,
          .vocab = m.vocab,
          .batch = shape.batch,
          .context = shape.context,
          .numbers = numbers};
}

std::uint64_t decode_room(const DecodePlan& plan) {
  const DecodeShape most = plan.most();
  return plan.sets * (up(most.weight_bytes(), kGranule) + up(most.cache_bytes(), kGranule)) +
         up(lay_out(sizes_of(most, plan.numbers), nullptr).size, kGranule);
}

void check_kernels_take(const DecodePlan& plan) {
  const train::ModelShape& m = plan.model;
  const std::pair<const char*, std::int64_t> widths[] = {
      {"hidden", m.hidden}, {"ffn", m.ffn}, {"heads x head_dim", m.q()}};
  for (const auto& [name, width] : widths) {
    if (width % kWarpColumns != 0)
      throw BadParameter(
          fmt::format("model: {} {} is no multiple of {}, which engine cuda needs", name, width, kWarpColumns));
  }
  if (m.head_dim < 2 * kVector || m.head_dim > kMostHeadDim || (m.head_dim & (m.head_dim - 1)) != 0)
    throw BadParameter(
        fmt::format("model: engine cuda runs heads of 16, 32, 64, 128 and 256 numbers, not of {}", m.head_dim));
  if (plan.batches.back() > kMostDeviceBatch)
    throw BadParameter(
        fmt::format("batches: {} is over {}, the most of engine cuda", plan.batches.back(), kMostDeviceBatch));
  for (const std::int64_t context : plan.contexts) {
    const std::int64_t rest = context % kPageTokens, before = context - rest;
    if (rest != 0)
      throw BadParameter(fmt::format(
          "contexts: {} is no multiple of the page of {} tokens of engine cuda; the nearest: {}", context, kPageTokens,
          before > 0 ? fmt::format("{} and {}", before, before + kPageTokens) : fmt::format("{}", kPageTokens)));
  }
}

void check_room(const DecodePlan& plan, Bytes free, const std::string& title) {
  const auto fits = [&](const DecodePlan& one) { return decode_room(one) + kReserve <= free.count; };
  if (fits(plan)) return;
  const DecodeShape most = plan.most();
  const std::string needed = fmt::format(
      "layers_run: {} layers, {} sequences of {} tokens, {} copies to pass the cache, take {} B and a reserve of {} B "
      "on {}, of which {} B are free; ",
      most.model.layers, most.batch, most.context, plan.sets, decode_room(plan), kReserve, title, free.count);
  for (std::int64_t layers = plan.model.layers - 1; layers > 0; --layers) {
    if (fits(plan.with_layers(layers)))
      throw BadParameter(needed + fmt::format("the nearest that fits: layers_run {}", layers));
  }
  throw BadParameter(needed + "one layer does not fit either; give a shorter context or fewer sequences");
}

}  // namespace assay::inference
