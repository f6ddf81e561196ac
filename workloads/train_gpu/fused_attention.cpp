// fused_attention: the pointers of every run. The room of a rank is the plans' workspace, then sums of rows, then
// gradients that are added up.
// Causal attention as graphs of cuDNN, which knows their pattern and runs each as fused kernels. The
// pattern is that of NVIDIA's own front end (github.com/NVIDIA/cudnn-frontend 1.23.0, 2026-05-08:
// scaled_dot_product_flash_attention.h, softmax.h, diagonal_band_mask.h).
#include "workloads/train_gpu/fused_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

namespace assay::train_gpu {
namespace {

using cudnn::Element;
using cudnn::Pointwise;
using cudnn::Reduction;
using cudnn::Shape;
using Graph = cudnn::OperationGraph;

/// Shapes of the tensors of one attention: sequences, heads, rows, columns.
class Shapes {
 public:
  explicit Shapes(const train::HeadShape& s)
      : b_(whole(s.sequences)),
        h_(whole(s.heads)),
        kv_(whole(s.kv_heads)),
        s_(whole(s.seq)),
        d_(whole(s.width)),
        row_(whole(train::row_of_all(s))) {}

  [[nodiscard]] Shape queries() const { return rows(h_, row_); }
  [[nodiscard]] Shape keys() const { return rows(kv_, row_); }
  [[nodiscard]] Shape keys_turned() const { return turned(keys()); }
  [[nodiscard]] Shape attended() const { return rows(h_, h_ * d_); }
  [[nodiscard]] Shape scores() const { return dense(s_, s_); }
  [[nodiscard]] Shape scores_turned() const { return turned(scores()); }
  [[nodiscard]] Shape sums() const { return {.sizes = {b_, h_, s_, 1}, .strides = {h_ * s_, s_, 1, 1}}; }
  [[nodiscard]] Shape products() const { return dense(s_, d_); }  // of all heads, also of keys that they share
  [[nodiscard]] bool shares() const { return h_ != kv_; }

 private:
  static std::int64_t whole(std::size_t size) { return static_cast<std::int64_t>(size); }
  static Shape turned(Shape one) {
    std::swap(one.sizes[2], one.sizes[3]);
    std::swap(one.strides[2], one.strides[3]);
    return one;
  }
  [[nodiscard]] Shape rows(std::int64_t heads, std::int64_t row) const {
    return {.sizes = {b_, heads, s_, d_}, .strides = {s_ * row, d_, row, 1}};
  }
  [[nodiscard]] Shape dense(std::int64_t rows, std::int64_t columns) const {
    return {.sizes = {b_, h_, rows, columns}, .strides = {h_ * rows * columns, rows * columns, columns, 1}};
  }
  std::int64_t b_, h_, kv_, s_, d_, row_;
};

/// One graph, with operations whose results are not kept.
class Writer {
 public:
  Writer(const cudnn::Functions& call, const Shapes& shapes) : graph(call), s(shapes) {}
  Graph graph;
  const Shapes& s;

  Graph::Tensor product(Graph::Tensor a, Graph::Tensor b, const Shape& shape, Element element = Element::fp32) {
    const Graph::Tensor to = graph.between(element, shape);
    graph.product(a, b, to);
    return to;
  }
  Graph::Tensor each(Pointwise mode, Graph::Tensor x, Graph::Tensor b, const Shape& shape,
                     Element element = Element::fp32) {
    const Graph::Tensor to = graph.between(element, shape);
    graph.each(mode, x, b, to);
    return to;
  }
  Graph::Tensor reduced(Reduction mode, Graph::Tensor x) {
    const Graph::Tensor to = graph.between(Element::fp32, s.sums());
    graph.reduce(mode, x, to);
    return to;
  }
  Graph::Tensor viewed(Graph::Tensor x, const Shape& shape, Element element) {
    const Graph::Tensor to = graph.between(element, shape);
    graph.view(x, to);
    return to;
  }
  /// `scores`, and kMasked for each key that a query does not see.
  Graph::Tensor masked(Graph::Tensor scores) {
    const auto index = [&](std::int64_t axis) {
      const Graph::Tensor to = graph.between(Element::int32, s.scores());
      graph.each(Pointwise::index, scores, to, Graph::Inputs{.axis = axis});
      return to;
    };
    const Graph::Tensor row = index(2), column = index(3), seen = graph.between(Element::boolean, s.scores()),
                        to = graph.between(Element::fp32, s.scores());
    graph.each(Pointwise::at_least, row, seen, Graph::Inputs{.b = column, .precision = Element::boolean});
    graph.each(Pointwise::select, scores, to, Graph::Inputs{.b = graph.number(kMasked), .t = seen});
    return to;
  }
};

cudnn::Plan forward_plan(const cudnn::Functions& call, const cudnn::Target& target, const Shapes& s) {
  Writer w(call, s);
  Graph& g = w.graph;
  const auto queries = g.kept(kQueries, Element::bf16, s.queries()),
             keys = g.kept(kKeys, Element::bf16, s.keys_turned()), values = g.kept(kValues, Element::bf16, s.keys());
  const auto raw = w.product(queries, keys, s.scores());
  const auto scores = w.masked(w.each(Pointwise::multiply, raw, g.number(kScale), s.scores()));
  const auto most = w.reduced(Reduction::max, scores);
  const auto power = w.each(Pointwise::exp, w.each(Pointwise::subtract, scores, most, s.scores()), nullptr, s.scores());
  const auto sum = w.reduced(Reduction::add, power);
  const auto log = w.each(Pointwise::log, sum, nullptr, s.sums());
  g.each(Pointwise::add, most, log, g.kept(kStatistics, Element::fp32, s.sums()));
  const auto shares = w.each(Pointwise::divide, power, sum, s.scores(), Element::bf16);
  g.product(shares, values, g.kept(kAttended, Element::bf16, s.attended()));
  return g.plan(target);
}

/// A product of all heads; where heads share keys, theirs are added up.
void product_of_keys(Writer& w, Graph::Tensor a, Graph::Tensor b, Graph::Tensor to) {
  if (!w.s.shares()) return w.graph.product(a, b, to);
  w.graph.reduce(Reduction::add, w.product(a, b, w.s.products(), Element::bf16), to);
}

cudnn::Plan backward_plan(const cudnn::Functions& call, const cudnn::Target& target, const Shapes& s, bool adds) {
  Writer w(call, s);
  Graph& g = w.graph;
  const auto queries = g.kept(kQueries, Element::bf16, s.queries()),
             keys = g.kept(kKeys, Element::bf16, s.keys_turned()),
             values = g.kept(kValues, Element::bf16, s.keys_turned()),
             attended = g.kept(kAttended, Element::bf16, s.attended()),
             above = g.kept(kAbove, Element::bf16, s.attended()),
             statistics = g.kept(kStatistics, Element::fp32, s.sums()), room = g.kept(kRoom, Element::fp32, s.sums()),
             scale = g.number(kScale);
  const auto along = w.reduced(Reduction::add, w.each(Pointwise::multiply, above, attended, s.products()));
  g.each(Pointwise::multiply, along, g.number(kOne), room);

  const auto raw = w.product(queries, keys, s.scores());
  const auto scaled = w.each(Pointwise::multiply, raw, scale, s.scores());
  const auto seen = w.masked(w.each(Pointwise::subtract, scaled, statistics, s.scores()));
  const auto shares = w.each(Pointwise::exp, seen, nullptr, s.scores());
  product_of_keys(w, w.viewed(shares, s.scores_turned(), Element::bf16), above,
                  g.kept(kValuesGradient, Element::bf16, s.keys()));

  const auto over = w.each(Pointwise::subtract, w.product(above, values, s.scores()), room, s.scores());
  const auto gradient =
      w.each(Pointwise::multiply, w.each(Pointwise::multiply, over, shares, s.scores()), scale, s.scores());
  product_of_keys(w, w.viewed(gradient, s.scores_turned(), Element::bf16), queries,
                  g.kept(kKeysGradient, Element::bf16, s.keys()));

  const auto turned = w.viewed(keys, s.keys(), Element::bf16),
             to = g.kept(kQueriesGradient, Element::bf16, s.queries());
  if (!adds) {
    g.product(gradient, turned, to);
    return g.plan(target);
  }
  const auto sums = g.kept(kAdded, Element::fp32, s.products());
  g.product(gradient, turned, sums);
  g.each(Pointwise::identity, sums, to);
  return g.plan(target);
}

constexpr float kOnce = 1;
constexpr float kUnseen = -std::numeric_limits<float>::infinity();  // as the front end from 9.10 on

std::unique_ptr<void, int (*)(void*)> created(const cudnn::Functions& call) {
  void* handle = nullptr;
  call.demand(call.create_handle(&handle), "cudnnCreate");
  return {handle, call.destroy_handle};
}

std::uint64_t whole_pieces(std::uint64_t size) {
  constexpr std::uint64_t kPiece = 256;  // as those of an Arena
  return (size + kPiece - 1) / kPiece * kPiece;
}

std::uint64_t workspace_of(const AttentionPlans& plans) {
  return whole_pieces(static_cast<std::uint64_t>(std::max(plans.forward.workspace, plans.backward.workspace)));
}

/// B of an fp32 number for each query of each head.
std::uint64_t sums_of(const train::HeadShape& s) { return whole_pieces(sizeof(float) * s.sequences * s.heads * s.seq); }

}  // namespace

AttentionPlans attention_plans(const cudnn::Functions& call, const cudnn::Target& target, const train::HeadShape& shape,
                               SumOrder order) {
  const Shapes s(shape);
  constexpr std::size_t kRowsOfLast = 128, kLast = 91500;
  if (call.version_code() <= kLast && shape.seq % kRowsOfLast != 0)  // the front end masks the rest of a block
    throw cudnn::Unsupported(
        fmt::format("cuDNN {}: the backward pass of 9.15.0 and before takes sequences of a multiple "
                    "of {} tokens, these have {}",
                    call.version(), kRowsOfLast, shape.seq));
  cudnn::Plan forward = forward_plan(call, target, s);
  if (order != SumOrder::any) {
    try {
      return {.forward = std::move(forward), .backward = backward_plan(call, target, s, false), .adds = false};
    } catch (const cudnn::Unsupported&) {
      if (order == SumOrder::one) throw;
    }
  }
  return {.forward = std::move(forward), .backward = backward_plan(call, target, s, true), .adds = true};
}

FusedAttention::FusedAttention(const train::HeadShape& shape, SumOrder order)
    : call_(cudnn::Functions::open()),
      handle_(created(call_)),
      shape_(shape),
      plans_(attention_plans(call_, {.handle = handle_.get()}, shape, order)),
      scale_(1 / std::sqrt(static_cast<float>(shape.width))) {}

std::uint64_t FusedAttention::room() const {
  return workspace_of(plans_) + sums_of(shape_) + (plans_.adds ? sums_of(shape_) * shape_.width : 0);
}

std::string FusedAttention::words() const {
  return fmt::format("cuDNN {}, engines {} and {}, sums of the backward pass in {}", call_.version(),
                     plans_.forward.engine, plans_.backward.engine, ordered() ? "one order" : "any order");
}

void FusedAttention::run(CUstream_st* stream, const cudnn::Plan& plan, std::vector<cudnn::Pointer> pointers,
                         std::byte* room) {
  call_.demand(call_.set_stream(handle_.get(), stream), "cudnnSetStream");
  pointers.push_back({kScale, &scale_});
  pointers.push_back({kMasked, &kUnseen});
  cudnn::run(call_, handle_.get(), plan, pointers, room);
}

void FusedAttention::forward(CUstream_st* stream, const AttentionPlaces<train::Bf16>& at) {
  const train::Bf16* const keys = at.qkv + shape_.heads * shape_.width;
  run(stream, plans_.forward,
      {{kQueries, at.qkv},
       {kKeys, keys},
       {kValues, keys + shape_.kv_heads * shape_.width},
       {kAttended, at.attended},
       {kStatistics, at.statistics}},
      at.room);
}

void FusedAttention::backward(CUstream_st* stream, const AttentionPlaces<train::Bf16>& at) {
  const std::size_t keys = shape_.heads * shape_.width, values = keys + shape_.kv_heads * shape_.width;
  std::byte* const sums = at.room + workspace_of(plans_);
  std::vector<cudnn::Pointer> pointers = {{kQueries, at.qkv},
                                          {kKeys, at.qkv + keys},
                                          {kValues, at.qkv + values},
                                          {kAttended, at.attended},
                                          {kStatistics, at.statistics},
                                          {kAbove, at.above},
                                          {kQueriesGradient, at.qkv_gradient},
                                          {kKeysGradient, at.qkv_gradient + keys},
                                          {kValuesGradient, at.qkv_gradient + values},
                                          {kRoom, sums},
                                          {kOne, &kOnce}};
  if (plans_.adds) pointers.push_back({kAdded, sums + sums_of(shape_)});
  run(stream, plans_.backward, std::move(pointers), at.room);
}

}  // namespace assay::train_gpu
