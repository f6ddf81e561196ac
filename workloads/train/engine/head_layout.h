// head_layout: offsets of queries, keys and values of a rank's heads, in a whole sequence and in a divided one.
#pragma once

#include <array>
#include <cstddef>

namespace assay::train {

/// One set of heads of one rank, and its part of each sequence: see place_in_sequence().
struct HeadShape {
  std::size_t sequences = 0, seq = 0, heads = 0, kv_heads = 0, width = 0;  ///< seq: tokens of a whole sequence
  std::size_t cp = 1, cp_rank = 0;
  bool exact = false;
  /// Tokens of a sequence that this rank has.
  [[nodiscard]] constexpr std::size_t own() const { return seq / cp; }
};

/// Numbers of all queries, keys and values of one token.
inline std::size_t row_of_all(const HeadShape& shape) { return (shape.heads + 2 * shape.kv_heads) * shape.width; }

/// Some of this rank's queries, which stand next to each other in their sequence.
struct Piece {
  std::size_t row, place, count;  ///< first of this rank's rows, its place in the sequence, and their number
};
/// One, or one from the front and one from the back.
struct Pieces {
  std::array<Piece, 2> all;
  std::size_t count;
};
/// Those of one sequence.
inline Pieces pieces_of(const HeadShape& shape) {
  if (shape.cp == 1) return {.all = {{{0, 0, shape.seq}, {}}}, .count = 1};
  const std::size_t half = shape.own() / 2, back = 2 * shape.cp - 1 - shape.cp_rank;
  return {.all = {{{0, shape.cp_rank * half, half}, {half, back * half, half}}}, .count = 2};
}

/// Keys and values of one head and some tokens that stand next to each other.
template <class Number>
struct Chunk {
  Number *k, *v;
  std::size_t stride, place, count;  ///< of a row; of the tokens in their sequence
};
/// Number `index` of them, from the memory of one rank or of all: the whole sequence if it is not divided.
template <class Number>
Chunk<Number> chunk_of(const HeadShape& shape, Number* qkv, Number* keys, std::size_t sequence, std::size_t head,
                       std::size_t index) {
  const std::size_t d = shape.width, shared = head / (shape.heads / shape.kv_heads);
  if (shape.cp == 1) {
    const std::size_t stride = row_of_all(shape);
    Number* const begin = qkv + sequence * shape.seq * stride + (shape.heads + shared) * d;
    return {.k = begin, .v = begin + shape.kv_heads * d, .stride = stride, .place = 0, .count = shape.seq};
  }
  const std::size_t half = shape.own() / 2, stride = 2 * shape.kv_heads * d;
  const bool front = index < shape.cp;
  const std::size_t owner = front ? index : 2 * shape.cp - 1 - index, row = front ? 0 : half;
  Number* const begin = keys + ((owner * shape.sequences + sequence) * shape.own() + row) * stride + shared * d;
  return {.k = begin, .v = begin + shape.kv_heads * d, .stride = stride, .place = index * half, .count = half};
}
/// How many there are.
inline std::size_t chunks_of(const HeadShape& shape) { return shape.cp == 1 ? 1 : 2 * shape.cp; }

}  // namespace assay::train
