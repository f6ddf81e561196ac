// decode_step's kernels for GPUs on the host, block by block: exact for batches, contexts and heads, every fault of
// memory seen; and places, room and refusals of models far above 2^32 bytes, of which nothing is allocated.
#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include "probes/core/probe.h"
#include "tests/unit/inference/cuda_on_host.h"
#include "workloads/inference/decode_reference.h"
#include "workloads/inference/decode_room.h"
#include "workloads/inference/page_table.h"

namespace assay::inference::kernels {

/// What lane 4g + t has of m16n8k16 (PTX ISA): rows g and g + 8 with columns 2t, 2t+1, 2t+8, 2t+9 of the first factor,
/// the same columns of sequence g of the second, and rows g and g + 8 of sequences 2t and 2t+1 of the sums.
inline void multiply_add(float (&sums)[4], unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0,
                         unsigned b1) {
  const unsigned lane = threadIdx.x % cuda_on_host::kWarp;
  const auto& words = cuda_on_host::Block::running().shared({a0, a1, a2, a3, b0, b1});
  const auto half = [](std::uint32_t word, unsigned k) {
    return wide(static_cast<Bf16>(k % 2 == 0 ? word & 0xffff : word >> 16));
  };
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned row = lane / 4 + i / 2 * 8, sequence = 2 * (lane % 4) + i % 2;
    for (unsigned k = 0; k < 16; ++k) {
      const unsigned t = k % 8 / 2;
      const std::uint32_t a = words[row % 8 * 4 + t][row / 8 + k / 8 * 2];
      const std::uint32_t b = words[sequence * 4 + t][4 + k / 8];
      sums[i] += half(a, k) * half(b, k);
    }
  }
}

}  // namespace assay::inference::kernels

#include "workloads/inference/decode_grids.cuh"  // after what its kernels use

namespace assay::inference::decode_device_test {
namespace {

constexpr std::uint64_t kSeed = 5;
const train::ModelShape kModel{
    .layers = 2, .hidden = 64, .ffn = 96, .heads = 4, .kv_heads = 2, .head_dim = 16, .vocab = 83};

DecodeSizes sizes_for(std::int64_t batch, std::int64_t context, DecodeNumbers numbers = DecodeNumbers::ring,
                      const train::ModelShape& model = kModel) {
  return sizes_of({.model = model, .batch = batch, .context = context}, numbers);
}

/// The memory of one GPU, on the host.
class Room {
 public:
  explicit Room(const DecodeSizes& sizes)
      : sizes_(sizes),
        weights_(train::sized(sizes.weights())),
        cache_(train::sized(sizes.cache())),
        work_(lay_out(sizes, nullptr).size + kAlign) {
    auto* const begin = work_.data() + kAlign - reinterpret_cast<std::uintptr_t>(work_.data()) % kAlign;
    at = lay_out(sizes, begin).at;
    at.weights = weights_.data();
    at.cache = cache_.data();
    const auto table = page_table<std::int32_t>(train::sized(sizes.pages()), kSeed);
    std::ranges::copy(table, at.table);
    drawing_grids(sizes, at, kSeed, nullptr, launch_);
  }
  /// The logits of one input.
  std::vector<float> step(std::uint64_t number = 0) {
    begin_with(number);
    step_grids(sizes_, at, launch_, multiply);
    return {at.logits, at.logits + sizes_.batch * sizes_.vocab};
  }
  void begin_with(std::uint64_t number) {
    const DecodeShape shape{.model = {.hidden = sizes_.hidden}, .batch = sizes_.batch};
    input_ = decode_input(shape, sizes_.numbers, kSeed, number);
    std::ranges::copy(input_, at.x);
    std::fill_n(at.logits, sizes_.batch * sizes_.vocab, std::nanf(""));
  }
  unsigned long long wrong_of_whole() {
    unsigned long long wrong = 0;
    whole_grids(sizes_, at, kSeed, input_.data(), &wrong, launch_);
    return wrong;
  }
  unsigned long long wrong_of_drawn() {
    unsigned long long wrong = 0;
    drawing_grids(sizes_, at, kSeed, &wrong, launch_);
    return wrong;
  }
  unsigned long long print() {
    unsigned long long print = 0;
    print_grids(sizes_, at, &print, launch_);
    return print;
  }

  DecodePointers at;
  std::function<bool(const StepProduct&)> multiply = [](const StepProduct&) { return false; };

 private:
  static constexpr std::size_t kAlign = 256;
  DecodeSizes sizes_;
  std::vector<Bf16> weights_, cache_;
  std::vector<std::byte> work_;
  std::vector<float> input_;
  cuda_on_host::Launcher launch_{.threads = kernels::kThreads};
};

/// The host's weights and cache of the same seed.
class HostSet {
 public:
  explicit HostSet(const DecodeSizes& s, const train::ModelShape& model = kModel)
      : shape({.model = model, .batch = s.batch, .context = s.context}),
        sets_(shape, shape.cache_bytes(), 1, host::Pages::base),
        set(sets_.set(shape, 0)) {
    fill_sets(shape, s.numbers, kSeed, set, {}, 0, 1);
  }
  DecodeShape shape;

 private:
  DecodeSets sets_;

 public:
  DecodeSet set;
};

TEST(DecodeOnGpu, in_whole_numbers_is_what_the_host_s_plain_sums_give) {
  for (const auto& [batch, context] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{{1, 16}, {3, 48}, {9, 16}, {20, 16}, {33, 16}, {2, 528}}) {
    const DecodeSizes s = sizes_for(batch, context);
    Room room(s);
    const HostSet host(s);
    const auto expected = ring_logits(host.shape, host.set, decode_input(host.shape, s.numbers, kSeed, 0));
    EXPECT_EQ(room.step(), expected) << batch << " " << context;
    EXPECT_EQ(room.wrong_of_whole(), 0U) << batch << " " << context;
  }
}

/// What a library is asked for: one sum after another.
bool multiply_plainly(const StepProduct& p) {
  for (std::int64_t i = 0; i < p.batch * p.rows; ++i) {
    float sum = p.add ? p.y[i] : 0;
    for (std::int64_t c = 0; c < p.columns; ++c)
      sum += wide(p.x[i / p.rows * p.columns + c]) * wide(p.w[i % p.rows * p.columns + c]);
    p.y[i] = sum;
  }
  return true;
}

TEST(DecodeOnGpu, with_products_of_a_library_has_the_same_whole_numbers) {
  const DecodeSizes s = sizes_for(20, 32);
  Room own(s), library(s);
  library.multiply = multiply_plainly;
  EXPECT_EQ(library.step(), own.step());
  EXPECT_EQ(library.wrong_of_whole(), 0U);
  library.multiply = [](const StepProduct& p) { return !p.add || multiply_plainly(p); };  // some are left out
  (void)library.step();
  EXPECT_NE(library.wrong_of_whole(), 0U);
}

TEST(DecodeOnGpu, runs_heads_of_every_width_and_groups_beyond_one_pass) {
  for (const std::int64_t head_dim : {16, 32, 64, 128, 256}) {
    train::ModelShape model = kModel;
    model.layers = 1;
    model.heads = head_dim == 16 ? 20 : 2;  // ten heads of a group: two passes
    model.head_dim = head_dim;
    const DecodeSizes s = sizes_for(1, 32, DecodeNumbers::ring, model);
    Room room(s);
    const HostSet host(s, model);
    EXPECT_EQ(room.step(), ring_logits(host.shape, host.set, decode_input(host.shape, s.numbers, kSeed, 0)))
        << head_dim;
    EXPECT_EQ(room.wrong_of_whole(), 0U) << head_dim;
  }
}

TEST(DecodeOnGpu, joins_more_chunks_than_a_block_has_threads) {
  train::ModelShape model = kModel;
  model.layers = 1;
  model.heads = model.kv_heads = 1;
  model.head_dim = 32;
  const DecodeSizes s = sizes_for(1, 257 * kChunkTokens + kPageTokens, DecodeNumbers::ring, model);
  Room room(s);
  const HostSet host(s, model);
  EXPECT_EQ(room.step(), ring_logits(host.shape, host.set, decode_input(host.shape, s.numbers, kSeed, 0)));
}

TEST(DecodeOnGpu, draws_the_host_s_weights_and_keys_into_the_pages_of_the_table) {
  for (const DecodeNumbers numbers : {DecodeNumbers::gaussian, DecodeNumbers::ring}) {
    const DecodeSizes s = sizes_for(2, 32, numbers);
    const Room room(s);
    const HostSet host(s);
    EXPECT_TRUE(std::ranges::equal(host.set.weights, std::span(room.at.weights, host.set.weights.size())));
    const auto key = cache_of(host.shape, host.set, 1, 1, 0, true);
    const CachePlace at{.layer = 1, .sequence = 1, .kv_head = 0, .values = true, .token = 20};
    const auto page = room.at.table[table_entry(s, at)];
    EXPECT_TRUE(std::ranges::equal(key.subspan(std::size_t{20} * 16, 16),
                                   std::span(room.at.cache + paged_place(s, at, page), 16)));
  }
}

TEST(DecodeOnGpu, in_normal_numbers_is_near_the_host_s_step_and_repeats_its_bits) {
  const DecodeSizes s = sizes_for(2, 272, DecodeNumbers::gaussian);
  Room room(s);
  const HostSet host(s);
  DecodeWalk walk(host.shape, s.numbers, decode_code(), 1);
  walk.begin(host.set, decode_input(host.shape, s.numbers, kSeed, 0));
  walk.step(0);
  const auto found = room.step();
  const auto print = room.print();
  float largest = 0;
  for (const float value : walk.logits()) largest = std::max(largest, std::abs(value));
  for (std::size_t i = 0; i < found.size(); ++i)
    EXPECT_NEAR(found[i], walk.logits()[i], largest * 0.02F) << i;  // inputs of products are BF16 there, 2^-9 each
  (void)room.step(1);
  EXPECT_NE(room.print(), print);
  (void)room.step(0);
  EXPECT_EQ(room.print(), print);
}

TEST(DecodeOnGpu, a_step_that_was_left_out_and_one_turned_bit_do_not_pass) {
  const DecodeSizes s = sizes_for(1, 32);
  Room room(s);
  room.begin_with(0);
  EXPECT_EQ(room.wrong_of_whole(), 83U);  // every logit
  (void)room.step();
  EXPECT_EQ(room.wrong_of_whole(), 0U);
  EXPECT_EQ(room.wrong_of_drawn(), 0U);
  room.at.weights[s.weights() - 1] ^= 0x80;
  (void)room.step();
  EXPECT_EQ(room.wrong_of_whole(), 1U);  // the last row of the head
  EXPECT_EQ(room.wrong_of_drawn(), 1U);
  room.at.cache[0] ^= 0x8000;
  EXPECT_EQ(room.wrong_of_drawn(), 2U);
}

TEST(DecodePlaces, are_those_of_the_host_s_model_above_four_gibibytes_and_within_it) {
  const DecodeShape shape{.model = train::kLlama3_405b, .batch = 64, .context = 8192};
  const DecodeSizes s = sizes_of(shape, DecodeNumbers::ring);
  EXPECT_EQ(static_cast<std::uint64_t>(s.weights()) * sizeof(Bf16), shape.weight_bytes());
  EXPECT_EQ(static_cast<std::uint64_t>(s.cache()) * sizeof(Bf16), shape.cache_bytes());
  const MatrixPlace last = matrix_place(s, Matrix::head, 0), down = matrix_place(s, Matrix::down, 125);
  EXPECT_EQ(last.begin, down.begin + down.rows * down.columns);
  EXPECT_EQ(last.begin + last.rows * last.columns, s.weights());
  EXPECT_GT(last.begin, std::int64_t{1} << 32);
  const CachePlace end{.layer = 125, .sequence = 63, .kv_head = 7, .values = true, .token = 8191};
  EXPECT_EQ(drawn_place(s, end) + s.head_dim, s.cache());
  EXPECT_EQ(paged_place(s, end, s.pages() - 1) + s.head_dim, s.cache());
  EXPECT_EQ(table_entry(s, end), s.pages() - 1);
  EXPECT_EQ(part_place(s, 63, 7, s.chunks() - 1) + s.group(), s.parts());
  const CachePlace back = place_drawn(s, drawn_place(s, end) + 5);
  EXPECT_EQ(std::tie(back.layer, back.sequence, back.kv_head, back.values, back.token),
            std::tie(end.layer, end.sequence, end.kv_head, end.values, end.token));
  EXPECT_EQ(grid_over(s.weights(), kernels::kThreads * kVector).x, 197'142'528U);
  EXPECT_THROW((void)grid_over(std::int64_t{1} << 40), std::invalid_argument);
}

TEST(DecodePlaces, of_pages_are_each_number_of_the_cache_once_and_whole_loads) {
  const DecodeSizes s = sizes_for(3, 48);
  const auto table = page_table<std::int32_t>(train::sized(s.pages()), kSeed);
  std::set<std::int64_t> places;
  for (std::int64_t i = 0; i < s.cache(); i += s.head_dim) {
    const CachePlace at = place_drawn(s, i);
    EXPECT_EQ(drawn_place(s, at), i);
    places.insert(paged_place(s, at, table[train::sized(table_entry(s, at))]));
  }
  EXPECT_EQ(places.size(), train::sized(s.cache() / s.head_dim));
  EXPECT_EQ(*places.rbegin() + s.head_dim, s.cache());
  for (const Matrix matrix : {Matrix::qkv, Matrix::out, Matrix::gate_up, Matrix::down, Matrix::head})
    EXPECT_EQ(matrix_place(s, matrix, 0).begin % kVector, 0);
}

DecodePlan plan_of(const train::ModelShape& model, std::vector<std::int64_t> batches,
                   std::vector<std::int64_t> contexts) {
  return {.model = model, .batches = std::move(batches), .contexts = std::move(contexts)};
}

std::string refusal(const std::function<void()>& work) {
  try {
    work();
  } catch (const BadParameter& refused) {
    return refused.what();
  }
  return "";
}

TEST(DecodeRoom, is_counted_to_the_byte_before_anything_is_taken) {
  const DecodePlan plan = plan_of(train::kLlama3_8b, {1, 8}, {4096}).with_cache({50 << 20});
  EXPECT_EQ(plan.sets, 1U);
  const DecodeSizes s = sizes_of(plan.most(), plan.numbers);
  // table; five inputs; whole numbers of x, q and vocab; h, attended, inner; qkv, gate_up, logits; tasks of attention.
  const std::uint64_t work = 4 * 8 * 256 + 5 * 4 * 8 * 4096 + 4 * 8 * (4096 + 14336 + 128256) +
                             2 * 8 * (4096 + 4096 + 14336) + 4 * 8 * (6144 + 28672 + 128256) +
                             4 * 8 * 32 * 32 * (1 + 1 + 128);
  EXPECT_EQ(lay_out(s, nullptr).size, work);
  const auto granules = [](std::uint64_t size) { return (size + (2 << 20) - 1) / (2 << 20) * (2 << 20); };
  EXPECT_EQ(decode_room(plan), granules(2 * 7'504'658'432U) + std::uint64_t{8} * 4096 * 131'072 + granules(work));
}

TEST(DecodeRoom, a_model_that_does_not_fit_is_refused_with_the_layers_that_do) {
  const Bytes h100 = {std::uint64_t{79} << 30};
  const auto plan = plan_of(train::kLlama3_70b, {1}, {4096}).with_cache({50 << 20});
  const std::string words = refusal([&] { check_room(plan, h100, "GPU-1"); });
  EXPECT_NE(words.find("layers_run: 80 layers, 1 sequences of 4096 tokens"), std::string::npos) << words;
  EXPECT_NE(words.find("the nearest that fits: layers_run 47"), std::string::npos) << words;
  EXPECT_EQ(refusal([&] { check_room(plan.with_layers(47), h100, "GPU-1"); }), "");
  EXPECT_NE(refusal([&] { check_room(plan.with_layers(48), h100, "GPU-1"); }), "");
  EXPECT_EQ(
      refusal([&] { check_room(plan_of(train::kLlama3_8b, {64}, {4096}).with_cache({50 << 20}), h100, "GPU-1"); }), "");
  const auto none = plan_of(train::kLlama3_8b, {64}, {1 << 20}).with_cache({50 << 20});
  EXPECT_NE(refusal([&] { check_room(none, h100, "GPU-1"); }).find("one layer does not fit either"), std::string::npos);
}

TEST(DecodeRoom, what_kernels_do_not_take_is_refused_with_the_nearest) {
  const auto words = [](const DecodePlan& plan) { return refusal([&] { check_kernels_take(plan); }); };
  EXPECT_EQ(words(plan_of(train::kLlama3_405b, {1, 64}, {16, 4096})), "");
  EXPECT_NE(words(plan_of(kModel, {1}, {100}))
                .find("contexts: 100 is no multiple of the page of 16 tokens of engine cuda; the nearest: 96 and 112"),
            std::string::npos);
  EXPECT_NE(words(plan_of(kModel, {1}, {7})).find("the nearest: 16"), std::string::npos);
  EXPECT_NE(words(plan_of(kModel, {65}, {16})).find("batches: 65 is over 64"), std::string::npos);
  train::ModelShape odd = kModel;
  odd.ffn = 80;
  EXPECT_NE(words(plan_of(odd, {1}, {16})).find("ffn 80 is no multiple of 32"), std::string::npos);
  odd = kModel;
  odd.head_dim = 48;
  EXPECT_NE(words(plan_of(odd, {1}, {16})).find("not of 48"), std::string::npos);
}

}  // namespace
}  // namespace assay::inference::decode_device_test
