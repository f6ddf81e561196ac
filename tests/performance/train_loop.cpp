// train_loop: a training step written by hand, layer by layer, beside the engine that walks a graph of the same calls:
// one rank, one micro-batch, steps by turns. Prints the medians in s and the engine's over the loop's, which should be
// at most 1.02.
//   train_loop [PAIRS]
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <vector>

#include "workloads/train/engine/host_engine.h"
#include "workloads/train/engine/host_memory.h"
#include "workloads/train/engine/step_math.h"

namespace {

using namespace assay::train;

constexpr ModelShape kModel = kTinyDense;
constexpr ParallelPlan kPlan{.layers = 2, .seq = 128, .micro_batch = 2};
constexpr std::size_t kTokens = 256, kHidden = 256, kFfn = 704, kQkv = 512, kVocab = 1024;
constexpr HeadShape kHeads{.sequences = 2, .seq = 128, .heads = 4, .kv_heads = 2, .width = 64};
constexpr NormShape kNorm{.rows = kTokens, .columns = kHidden};

int number(std::size_t size) { return static_cast<int>(size); }

/// y = x w, rows of memory as wide as the matrices.
void forward(const float* x, const float* w, float* y, std::size_t in, std::size_t out) {
  multiply({.a = x,
            .b = w,
            .c = y,
            .m = number(kTokens),
            .n = number(out),
            .k = number(in),
            .lda = number(in),
            .ldb = number(out),
            .ldc = number(out)});
}
/// The gradients of x and w from that of y.
void backward(const float* x, const float* w, const float* dy, float* dx, float* dw, std::size_t in, std::size_t out) {
  multiply({.a = dy,
            .b = w,
            .c = dx,
            .m = number(kTokens),
            .n = number(in),
            .k = number(out),
            .lda = number(out),
            .ldb = number(out),
            .ldc = number(in),
            .b_turned = true});
  multiply({.a = x,
            .b = dy,
            .c = dw,
            .m = number(in),
            .n = number(out),
            .k = number(kTokens),
            .lda = number(in),
            .ldb = number(out),
            .ldc = number(out),
            .a_turned = true});
}

/// The step, by hand.
class Loop {
 public:
  double step() {
    const auto begin = std::chrono::steady_clock::now();
    weights_.clear_gains();
    embed();
    for (std::int64_t layer = 0; layer < 2; ++layer) forward_layer(layer);
    head();
    for (std::int64_t layer = 1; layer >= 0; --layer) backward_layer(layer);
    embed_back();
    for (std::int64_t bucket = 0; bucket < 4; ++bucket) weights_.update(bucket, false);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

 private:
  const float* w(Role role, std::int64_t layer) { return weights_.weights(weights_.at(role, layer)); }
  float* g(Role role, std::int64_t layer) { return weights_.gradients(weights_.at(role, layer)); }

  static std::size_t token(std::size_t i) { return static_cast<std::size_t>(mixed(7, i) % kVocab); }
  void embed() {
    float* x = memory_.slots[0][0].x.data();
    for (std::size_t i = 0; i < kTokens; ++i)
      std::copy_n(w(Role::embed, -1) + token(i) * kHidden, kHidden, x + i * kHidden);
  }
  void embed_back() {
    float* to = g(Role::embed, -1);
    std::fill_n(to, kVocab * kHidden, 0.0F);
    for (std::size_t i = 0; i < kTokens; ++i) {
      float* row = to + token(i) * kHidden;
      add(kHidden, row, memory_.gradient.data() + i * kHidden, row, false);
    }
  }
  void forward_layer(std::int64_t layer) {
    LayerMemory& m = memory_.layer(layer, 0);
    norm(kNorm, m.x.data(), w(Role::attention_norm, layer), m.normed.data(), m.inverse.data());
    forward(m.normed.data(), w(Role::qkv, layer), m.qkv.data(), kHidden, kQkv);
    attend(kHeads, m, {});
    forward(m.attended.data(), w(Role::attention_out, layer), memory_.sum.data(), kHidden, kHidden);
    add(m.x.size(), m.x.data(), memory_.sum.data(), m.middle.data(), false);
    norm(kNorm, m.middle.data(), w(Role::mlp_norm, layer), m.mlp_normed.data(), m.mlp_inverse.data());
    forward(m.mlp_normed.data(), w(Role::gate_up, layer), m.both.data(), kHidden, 2 * kFfn);
    activate(kTokens, kFfn, m.both.data(), m.active.data(), false);
    forward(m.active.data(), w(Role::down, layer), memory_.sum.data(), kFfn, kHidden);
    add(m.x.size(), m.middle.data(), memory_.sum.data(), memory_.after(layer, 0).data(), false);
  }
  void head() {
    const float* x = memory_.slots[0].back().x.data();
    norm(kNorm, x, w(Role::final_norm, -1), memory_.final_normed.data(), memory_.final_inverse.data());
    forward(memory_.final_normed.data(), w(Role::head, -1), memory_.logits.data(), kHidden, kVocab);
    row_sums(kTokens, kVocab, memory_.logits.data(), memory_.row_sums.data(), false);
    const float share = 1.0F / kTokens;
    float* row = memory_.logits.data();
    for (std::size_t i = 0; i < kTokens; ++i, row += kVocab) {
      for (std::size_t column = 0; column < kVocab; ++column)
        row[column] = std::exp(row[column]) * (share / memory_.row_sums[i]);
      row[token(i + 1)] -= share;
    }
    backward(memory_.final_normed.data(), w(Role::head, -1), memory_.logits.data(), memory_.normed_gradient.data(),
             g(Role::head, -1), kHidden, kVocab);
    std::ranges::fill(memory_.gradient, 0.0F);
    norm_back(kNorm, x, w(Role::final_norm, -1), memory_.final_inverse.data(), memory_.normed_gradient.data(),
              memory_.gradient.data(), g(Role::final_norm, -1));
  }
  void backward_layer(std::int64_t layer) {
    LayerMemory& m = memory_.layer(layer, 0);
    float *dx = memory_.gradient.data(), *dn = memory_.normed_gradient.data();
    backward(m.active.data(), w(Role::down, layer), dx, memory_.active_gradient.data(), g(Role::down, layer), kFfn,
             kHidden);
    activate_back(kTokens, kFfn, m.both.data(), memory_.active_gradient.data(), memory_.both_gradient.data(), false);
    backward(m.mlp_normed.data(), w(Role::gate_up, layer), memory_.both_gradient.data(), dn, g(Role::gate_up, layer),
             kHidden, 2 * kFfn);
    norm_back(kNorm, m.middle.data(), w(Role::mlp_norm, layer), m.mlp_inverse.data(), dn, dx, g(Role::mlp_norm, layer));
    backward(m.attended.data(), w(Role::attention_out, layer), dx, memory_.attended_gradient.data(),
             g(Role::attention_out, layer), kHidden, kHidden);
    attend_back(kHeads, m, {},
                {.above = memory_.attended_gradient,
                 .qkv = memory_.qkv_gradient,
                 .keys = {},
                 .scores = memory_.scores_gradient});
    backward(m.normed.data(), w(Role::qkv, layer), memory_.qkv_gradient.data(), dn, g(Role::qkv, layer), kHidden, kQkv);
    norm_back(kNorm, m.x.data(), w(Role::attention_norm, layer), m.inverse.data(), dn, dx,
              g(Role::attention_norm, layer));
  }

  HostWeights weights_{kModel, kPlan, 0, 20240417, false};
  HostBuffers room_;
  StepMemory memory_{kModel, kPlan, {}, {}, room_.taker()};
};

double middle(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  constexpr std::uint64_t kWarmup = 10;
  const std::uint64_t pairs = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 200;
  HostEngine engine({.model = kModel, .plan = kPlan});
  Loop loop;
  std::vector<double> walked, by_hand, ratios;
  for (std::uint64_t pair = 0; pair < kWarmup + pairs; ++pair) {
    const double one = engine.step(Variant::full, pair).wall_s, other = loop.step();
    if (pair < kWarmup) continue;
    walked.push_back(one);
    by_hand.push_back(other);
    ratios.push_back(one / other);
  }
  std::cout << "engine " << middle(walked) << " s, by hand " << middle(by_hand) << " s, ratio "
            << middle(walked) / middle(by_hand) << ", of pairs " << middle(ratios) << ", of the fastest "
            << std::ranges::min(walked) / std::ranges::min(by_hand) << '\n';
}
