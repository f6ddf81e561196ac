// decode_grids: the kernels of a step with their grids, for a Launch: launch(grid, kernel, arguments...) runs every
// block of a kernel, on a GPU or, in a test, on the host.
#pragma once

#include <cstdint>
#include <stdexcept>

#include "workloads/inference/decode_attention.cuh"
#include "workloads/inference/decode_kernels.cuh"
#include "workloads/inference/decode_whole.cuh"

namespace assay::inference {

/// Blocks of a launch, each of kernels::kThreads threads.
struct Grid {
  unsigned x = 1, y = 1, z = 1;
};
static_assert(kernels::kThreads == whole::kThreads);

/// Blocks that have `each` of `count` things. Throws std::invalid_argument for more than one launch takes.
inline Grid grid_over(std::int64_t count, std::int64_t each = kernels::kThreads) {
  const std::int64_t blocks = (count + each - 1) / each;
  if (blocks < 1 || blocks > INT32_MAX) throw std::invalid_argument("a kernel of a step has no such grid");
  return {.x = static_cast<unsigned>(blocks)};
}
/// Of heads, chunks and sequences, all below the bounds of a launch.
inline Grid grid_of(std::int64_t x, std::int64_t y = 1, std::int64_t z = 1) {
  return {.x = static_cast<unsigned>(x), .y = static_cast<unsigned>(y), .z = static_cast<unsigned>(z)};
}

/// The factors and the result of one product.
inline StepProduct product_of(const DecodeSizes& s, const DecodePointers& at, Matrix matrix, std::int64_t layer) {
  const MatrixPlace place = matrix_place(s, matrix, layer);
  StepProduct p{.w = at.weights + place.begin, .rows = place.rows, .columns = place.columns, .x = at.h};
  p.batch = s.batch;
  p.y = at.x;
  p.add = matrix == Matrix::out || matrix == Matrix::down;
  p.ring = s.ring();
  if (matrix == Matrix::out) p.x = at.attended;
  if (matrix == Matrix::down) p.x = at.inner;
  if (matrix == Matrix::qkv) p.y = at.qkv;
  if (matrix == Matrix::gate_up) p.y = at.gate_up;
  if (matrix == Matrix::head) p.y = at.logits;
  return p;
}

/// The operations of take_step. multiply(product) enqueues a product by other means, a library's, and says whether it
/// did; in ring numbers it need not fold.
template <class Launch, class Multiply>
struct StepGrids {
  const DecodeSizes& s;
  const DecodePointers& at;
  const Launch& launch;
  const Multiply& multiply;

  [[nodiscard]] kernels::Attention attention(std::int64_t layer) const {
    return {.sizes = s,
            .layer = layer,
            .table = at.table,
            .qkv = at.qkv,
            .cache = at.cache,
            .largest = at.largest,
            .sums = at.sums,
            .parts = at.parts};
  }
  void norm() const { launch(grid_of(s.batch), kernels::norm_kernel, s, at.x, at.h); }
  void attend(std::int64_t layer) const {
    launch(grid_of(s.chunks(), s.kv_heads, s.batch), kernels::attend_kernel, attention(layer));
  }
  void join() const { launch(grid_of(s.heads, s.batch), kernels::join_kernel, attention(0), at.attended); }
  void activate() const { launch(grid_over(s.batch * s.ffn), kernels::activate_kernel, s, at.gate_up, at.inner); }
  void product(Matrix matrix, std::int64_t layer) const {
    const StepProduct p = product_of(s, at, matrix, layer);
    if (multiply(p)) {
      if (p.ring) launch(grid_over(p.batch * p.rows), kernels::fold_kernel, p.batch * p.rows, p.y);
      return;
    }
    const std::int64_t tiles = sequence_tiles(s.batch);
    if (tiles == 1) return launch_product<1, 1, 2>(p);
    if (tiles == 2) return launch_product<2, 1, 2>(p);
    if (tiles == 4) return launch_product<4, 2, 2>(p);
    launch_product<8, 2, 1>(p);
  }
  template <int kTiles, int kRowTiles, int kPieces>
  void launch_product(const StepProduct& p) const {
    launch(grid_over(p.rows, kernels::kRowsOfTile * kRowTiles), kernels::product_kernel<kTiles, kRowTiles, kPieces>, p);
  }
};

/// The same in whole numbers.
template <class Launch>
struct WholeGrids {
  const DecodeSizes& s;
  const DecodePointers& at;
  std::uint64_t seed;
  const Launch& launch;

  void norm() const {}
  void join() const {}
  void attend(std::int64_t layer) const {
    launch(grid_of(s.heads, s.batch), whole::attend_kernel, s, collective::mixed(seed, kCacheStream), layer,
           at.whole_to, at.whole_from);
  }
  void activate() const { launch(grid_over(s.batch * s.ffn), whole::activate_kernel, s, at.whole_to, at.whole_from); }
  void product(Matrix matrix, std::int64_t layer) const {
    const MatrixPlace place = matrix_place(s, matrix, layer);
    const bool back = matrix == Matrix::out || matrix == Matrix::down;
    launch(grid_over(s.batch * place.rows), whole::product_kernel, place, seed, s.batch,
           back ? at.whole_from : at.whole_x, back ? at.whole_x : at.whole_to, back);
  }
};

/// The functions of decode_launch.h.
template <class Launch, class Multiply>
void step_grids(const DecodeSizes& s, const DecodePointers& at, const Launch& launch, const Multiply& multiply) {
  StepGrids<Launch, Multiply> grids{.s = s, .at = at, .launch = launch, .multiply = multiply};
  take_step(s, grids);
}

template <class Launch>
void drawing_grids(const DecodeSizes& s, const DecodePointers& at, std::uint64_t seed, unsigned long long* wrong,
                   const Launch& launch) {
  launch(grid_over(s.weights(), kernels::kThreads * kVector), kernels::weights_kernel, s, seed,
         weight_deviation(s.hidden), at.weights, wrong);
  launch(grid_over(s.cache(), kernels::kThreads * kVector), kernels::cache_kernel, s,
         collective::mixed(seed, kCacheStream), at.table, at.cache, wrong);
}

template <class Launch>
void whole_grids(const DecodeSizes& s, const DecodePointers& at, std::uint64_t seed, const float* input,
                 unsigned long long* wrong, const Launch& launch) {
  const std::int64_t inputs = s.batch * s.hidden, logits = s.batch * s.vocab;
  launch(grid_over(inputs), whole::input_kernel, inputs, input, at.whole_x);
  WholeGrids<Launch> grids{.s = s, .at = at, .seed = seed, .launch = launch};
  take_step(s, grids);
  launch(grid_over(logits), whole::compare_kernel, logits, at.logits, at.whole_to, wrong);
}

template <class Launch>
void print_grids(const DecodeSizes& s, const DecodePointers& at, unsigned long long* print, const Launch& launch) {
  launch(grid_over(s.batch * s.vocab), kernels::print_kernel, at.logits, s.batch * s.vocab, print);
}

}  // namespace assay::inference
