// step_graph: layers become operations, forward in order and backward in reverse.
//
// Counts of an operation, for t tokens of a micro-batch, elements of e bytes:
//   operation                    FLOP                          bytes of memory, or payload
//   product m x n from k terms   2 m n k (multiply and add)    (m k + k n + m n) e: each matrix once
//   its backward pass            the product twice             gradient of the input, gradient of the weight
//   attention                    t x attention_flop(),         rows of queries and results, keys and values, once
//     (model_card.h, causal)     backward twice that
//   element-wise                 none (kFlopCount)             elements x passes x e: see the constants below
//   collective                   none                          the payload as nccl-tests counts it
//   Adam                         none                          adam_bytes() a parameter
// The sums over all ranks equal the closed forms of the unit test, which are written without this list.
//
// Example: the widening product of SwiGLU, t = 4096, hidden = 4096, ffn = 14336, tp = 1, is one product of
// 4096 x 28672 from 4096 terms, 9.6e11 FLOP forward and 1.92e12 backward; the activation behind it passes 3 times over
// 4096 x 14336 elements.
#include "workloads/train/graph/step_graph.h"

namespace assay::train {
namespace {

constexpr std::int64_t kSingle = 4;  // B of a gradient that is reduced, and of a loss

// Passes over its elements that an element-wise operation makes: each read or write of one array counts once, as in one
// loop that keeps values once read. Gains and per-row scalars are left out.
constexpr std::int64_t kEmbed = 2;         // reads a row of the table, writes it
constexpr std::int64_t kEmbedBack = 3;     // reads the gradient, reads and writes the row's
constexpr std::int64_t kNorm = 2;          // reads x, writes the result
constexpr std::int64_t kNormBack = 3;      // reads x and the gradient above, writes that of x
constexpr std::int64_t kNormBackSum = 4;   // the same, added to the gradient of the residual: reads that too
constexpr std::int64_t kSumAndNorm = 4;    // reads both terms of the residual sum, writes it and its norm
constexpr std::int64_t kActivate = 3;      // reads gate and up, writes the result
constexpr std::int64_t kActivateBack = 5;  // reads gate, up and the gradient above, writes both gradients
constexpr std::int64_t kSum = 3;           // reads two terms, writes their sum
constexpr std::int64_t kLoss = 1;          // reads the logits
constexpr std::int64_t kLossBack = 2;      // reads the logits, writes their gradient

/// The operations of one rank, as they are put together.
class Builder {
 public:
  Builder(const ModelShape& model, const ParallelPlan& plan, std::int64_t rank)
      : m_(with_layers(model, plan.layers)),
        plan_(plan),
        at_(position_of(plan, rank)),
        t_(plan.tokens()),
        e_(plan.element),
        buckets_(buckets_of(model, plan, at_.pp)) {}

  std::vector<Op> build() {
    for (const Turn& turn : pipeline_turns(plan_, at_.pp)) {
      micro_batch_ = turn.micro_batch;
      turn.forward ? forward(turn.piece) : backward(turn.piece);
    }
    update();
    return std::move(ops_);
  }

 private:
  // One operation each.
  void add(Op op) {
    op.layer = layer_;
    op.micro_batch = micro_batch_;
    ops_.push_back(op);
  }
  void product(Role role, Pass pass, std::int64_t m, std::int64_t n, std::int64_t k) {
    add({.kind = OpKind::gemm,
         .role = role,
         .pass = pass,
         .m = m,
         .n = n,
         .k = k,
         .flop = 2 * m * n * k,
         .bytes = (m * k + k * n + m * n) * e_});
  }
  /// `tokens` rows of `in` numbers become rows of `out`.
  void linear(Role role, std::int64_t tokens, std::int64_t in, std::int64_t out) {
    product(role, Pass::forward, tokens, out, in);
  }
  void linear_back(Role role, std::int64_t tokens, std::int64_t in, std::int64_t out) {
    product(role, Pass::input, tokens, in, out);
    product(role, Pass::weight, in, out, tokens);
  }
  void each(Role role, Pass pass, std::int64_t rows, std::int64_t columns, std::int64_t passes) {
    add({.role = role, .pass = pass, .m = rows, .n = columns, .bytes = rows * columns * passes * e_});
  }
  void move(Role role, Pass pass, Group group, Motion motion, std::int64_t elements, std::int64_t element) {
    if (members(group) == 1 || elements == 0) return;
    add({.kind = OpKind::collective,
         .role = role,
         .pass = pass,
         .m = elements,
         .n = 1,
         .bytes = elements * element,
         .group = group,
         .motion = motion});
  }
  [[nodiscard]] std::int64_t members(Group group) const {
    switch (group) {
      case Group::tp:
        return plan_.tp;
      case Group::cp:
        return plan_.cp;
      case Group::ep:
        return plan_.ep;
      case Group::replicas:
        return plan_.replicas();
      case Group::expert_replicas:
        return plan_.replicas() / plan_.ep;
      default:
        return plan_.pp;
    }
  }
  /// Between `layer` and one of the pipeline rank `pp_rank`.
  void message(Motion motion, Pass pass, std::int64_t pp_rank, std::int64_t layer) {
    RankPosition other = at_;
    other.pp = pp_rank;
    layer_ = layer;
    add({.kind = OpKind::collective,
         .role = Role::boundary,
         .pass = pass,
         .m = t_,
         .n = m_.hidden,
         .bytes = motion == Motion::send ? t_ * m_.hidden * e_ : 0,
         .group = Group::pp,
         .motion = motion,
         .peer = rank_at(plan_, other)});
    layer_ = -1;
  }

  // Pieces of the pipeline. Piece c of rank r is number c x pp + r of the model.
  [[nodiscard]] std::int64_t number(std::int64_t piece) const { return piece * plan_.pp + at_.pp; }
  [[nodiscard]] bool is_first(std::int64_t piece) const { return number(piece) == 0; }
  [[nodiscard]] bool is_last(std::int64_t piece) const { return number(piece) == plan_.pp * plan_.virtual_stages - 1; }
  [[nodiscard]] std::int64_t before() const { return (at_.pp + plan_.pp - 1) % plan_.pp; }
  [[nodiscard]] std::int64_t next() const { return (at_.pp + 1) % plan_.pp; }

  void forward(std::int64_t piece) {
    const std::int64_t begin = number(piece) * plan_.layers_per_piece(), end = begin + plan_.layers_per_piece();
    layer_ = -1;
    if (is_first(piece)) {
      each(Role::embed, Pass::forward, t_, m_.hidden, kEmbed);
      move(Role::embed, Pass::forward, Group::tp, Motion::all_reduce, t_ * m_.hidden, e_);
    } else {
      message(Motion::receive, Pass::forward, before(), begin);
    }
    for (layer_ = begin; layer_ < end; ++layer_) forward_layer();
    layer_ = -1;
    if (!is_last(piece)) return message(Motion::send, Pass::forward, next(), end - 1);
    each(Role::final_norm, Pass::forward, t_, m_.hidden, kNorm);
    linear(Role::head, t_, m_.hidden, m_.vocab / plan_.tp);
    each(Role::loss, Pass::forward, t_, m_.vocab / plan_.tp, kLoss);
    move(Role::loss, Pass::forward, Group::tp, Motion::all_reduce, t_, kSingle);
    each(Role::loss, Pass::input, t_, m_.vocab / plan_.tp, kLossBack);
  }

  void backward(std::int64_t piece) {
    const bool last_time = micro_batch_ == plan_.micro_batches - 1;
    const std::int64_t begin = number(piece) * plan_.layers_per_piece(), end = begin + plan_.layers_per_piece();
    layer_ = -1;
    if (is_last(piece)) {
      linear_back(Role::head, t_, m_.hidden, m_.vocab / plan_.tp);
      move(Role::head, Pass::input, Group::tp, Motion::all_reduce, t_ * m_.hidden, e_);
      each(Role::final_norm, Pass::input, t_, m_.hidden, kNormBack);
      if (last_time) reduce(-1, Role::head);
    } else {
      message(Motion::receive, Pass::input, next(), end - 1);
    }
    for (layer_ = end - 1; layer_ >= begin; --layer_) {
      backward_layer();
      if (last_time) reduce(layer_, Role::residual);
    }
    layer_ = -1;
    if (!is_first(piece)) return message(Motion::send, Pass::input, before(), begin);
    each(Role::embed, Pass::weight, t_, m_.hidden, kEmbedBack);
    if (last_time) reduce(-1, Role::embed);
  }

  void forward_layer() {
    gather_weights(Pass::forward);
    each(Role::attention_norm, Pass::forward, t_, m_.hidden, kNorm);
    m_.mla ? forward_latent() : linear(Role::qkv, t_, m_.hidden, (m_.q() + 2 * m_.kv()) / plan_.tp);
    move(Role::attend, Pass::forward, Group::cp, Motion::exchange, exchanged(), e_);
    attend(Pass::forward, 1);
    linear(Role::attention_out, t_, heads_width() / plan_.tp, m_.hidden);
    move(Role::attention_out, Pass::forward, Group::tp, Motion::all_reduce, t_ * m_.hidden, e_);
    each(Role::mlp_norm, Pass::forward, t_, m_.hidden, kSumAndNorm);
    if (m_.is_mixture(layer_)) {
      forward_experts();
    } else {
      const std::int64_t f = m_.ffn / plan_.tp;
      linear(Role::gate_up, t_, m_.hidden, 2 * f);
      each(Role::activate, Pass::forward, t_, f, kActivate);
      linear(Role::down, t_, f, m_.hidden);
    }
    move(Role::down, Pass::forward, Group::tp, Motion::all_reduce, t_ * m_.hidden, e_);
    each(Role::residual, Pass::forward, t_, m_.hidden, kSum);
  }

  void backward_layer() {
    if (plan_.zero == 3) gather_weights(Pass::input);
    if (m_.is_mixture(layer_)) {
      backward_experts();
    } else {
      const std::int64_t f = m_.ffn / plan_.tp;
      linear_back(Role::down, t_, f, m_.hidden);
      each(Role::activate, Pass::input, t_, f, kActivateBack);
      linear_back(Role::gate_up, t_, m_.hidden, 2 * f);
    }
    move(Role::gate_up, Pass::input, Group::tp, Motion::all_reduce, t_ * m_.hidden, e_);
    each(Role::mlp_norm, Pass::input, t_, m_.hidden, kNormBackSum);
    linear_back(Role::attention_out, t_, heads_width() / plan_.tp, m_.hidden);
    move(Role::attend, Pass::input, Group::cp, Motion::exchange, exchanged(), e_);
    attend(Pass::input, 2);
    move(Role::attend, Pass::input, Group::cp, Motion::exchange_sums, exchanged(), e_);
    m_.mla ? backward_latent() : linear_back(Role::qkv, t_, m_.hidden, (m_.q() + 2 * m_.kv()) / plan_.tp);
    move(Role::qkv, Pass::input, Group::tp, Motion::all_reduce, t_ * m_.hidden, e_);
    each(Role::attention_norm, Pass::input, t_, m_.hidden, kNormBackSum);
  }

  // Latent attention. tp divides the narrow products by columns, so that their FLOPs are not done by every rank.
  [[nodiscard]] std::int64_t narrow() const { return m_.mla->q_lora + m_.mla->kv_lora + m_.mla->rope; }
  [[nodiscard]] std::int64_t heads_width() const { return m_.mla ? m_.heads * m_.mla->v : m_.q(); }
  void forward_latent() {
    const Latent& a = *m_.mla;
    linear(Role::latent, t_, m_.hidden, narrow() / plan_.tp);
    move(Role::latent, Pass::forward, Group::tp, Motion::all_gather, t_ * narrow(), e_);
    linear(Role::latent_up, t_, a.q_lora, m_.heads / plan_.tp * (a.nope + a.rope));
    linear(Role::latent_up, t_, a.kv_lora, m_.heads / plan_.tp * (a.nope + a.v));
  }
  void backward_latent() {
    const Latent& a = *m_.mla;
    linear_back(Role::latent_up, t_, a.kv_lora, m_.heads / plan_.tp * (a.nope + a.v));
    linear_back(Role::latent_up, t_, a.q_lora, m_.heads / plan_.tp * (a.nope + a.rope));
    move(Role::latent, Pass::input, Group::tp, Motion::reduce_scatter, t_ * narrow(), e_);
    linear_back(Role::latent, t_, m_.hidden, narrow() / plan_.tp);
  }
  /// Elements of keys and values that a rank gets from the others of its cp ring.
  [[nodiscard]] std::int64_t exchanged() const {
    const std::int64_t width = m_.mla ? m_.mla->kv_lora + m_.mla->rope : 2 * m_.kv() / plan_.tp;
    return (plan_.cp - 1) * t_ * width;
  }
  void attend(Pass pass, std::int64_t times) {
    add({.kind = OpKind::attention,
         .role = Role::attend,
         .pass = pass,
         .m = t_,
         .n = m_.heads / plan_.tp,
         .k = plan_.seq,
         .flop = times * t_ * (attention_flop(m_, plan_.seq) / plan_.tp),
         .bytes = times * t_ * (heads_width() * 2 + (m_.mla ? narrow() : 2 * m_.kv())) / plan_.tp * e_});
  }

  // Experts, each rank having experts / ep of them; every expert is taken to get as many tokens as any other.
  void forward_experts() {
    const Experts& x = *m_.moe;
    const std::int64_t copies = t_ * x.top_k, f = x.ffn / plan_.tp, shared = x.shared * f;
    linear(Role::router, t_, m_.hidden, x.experts / plan_.tp);
    move(Role::router, Pass::forward, Group::tp, Motion::all_gather, t_ * x.experts, e_);
    move(Role::dispatch, Pass::forward, Group::ep, Motion::all_to_all, copies * m_.hidden, e_);
    linear(Role::gate_up, copies, m_.hidden, 2 * f);
    each(Role::activate, Pass::forward, copies, f, kActivate);
    linear(Role::down, copies, f, m_.hidden);
    if (shared > 0) {
      linear(Role::shared_gate_up, t_, m_.hidden, 2 * shared);
      each(Role::shared_activate, Pass::forward, t_, shared, kActivate);
      linear(Role::shared_down, t_, shared, m_.hidden);
    }
    move(Role::combine, Pass::forward, Group::ep, Motion::all_to_all, copies * m_.hidden, e_);
  }
  void backward_experts() {
    const Experts& x = *m_.moe;
    const std::int64_t copies = t_ * x.top_k, f = x.ffn / plan_.tp, shared = x.shared * f;
    move(Role::combine, Pass::input, Group::ep, Motion::all_to_all, copies * m_.hidden, e_);
    if (shared > 0) {
      linear_back(Role::shared_down, t_, shared, m_.hidden);
      each(Role::shared_activate, Pass::input, t_, shared, kActivateBack);
      linear_back(Role::shared_gate_up, t_, m_.hidden, 2 * shared);
    }
    linear_back(Role::down, copies, f, m_.hidden);
    each(Role::activate, Pass::input, copies, f, kActivateBack);
    linear_back(Role::gate_up, copies, m_.hidden, 2 * f);
    move(Role::dispatch, Pass::input, Group::ep, Motion::all_to_all, copies * m_.hidden, e_);
    move(Role::router, Pass::input, Group::tp, Motion::reduce_scatter, t_ * x.experts, e_);
    linear_back(Role::router, t_, m_.hidden, x.experts / plan_.tp);
  }

  // Weights and gradients.
  [[nodiscard]] Group sharers(const Bucket& bucket) const {
    return bucket.experts ? Group::expert_replicas : Group::replicas;
  }
  /// Whole weights of layer_, before they are used, where each rank keeps a shard of them.
  void gather_weights(Pass pass) {
    if (plan_.zero < 3) return;
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
      if (buckets_[i].layer != layer_ || layer_ < 0) continue;
      move(Role::weights, pass, sharers(buckets_[i]), Motion::all_gather, buckets_[i].elements, e_);
      mark(static_cast<std::int64_t>(i), Role::weights);
    }
  }
  void mark(std::int64_t bucket, Role role) {
    if (!ops_.empty() && ops_.back().role == role && ops_.back().bucket < 0) ops_.back().bucket = bucket;
  }
  void reduce(std::int64_t layer, Role end) {
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
      if (buckets_[i].layer != layer || (layer < 0 && buckets_[i].end != end)) continue;
      move(Role::gradients, Pass::weight, sharers(buckets_[i]),
           plan_.zero == 0 ? Motion::all_reduce : Motion::reduce_scatter, buckets_[i].elements, kSingle);
      mark(static_cast<std::int64_t>(i), Role::gradients);
      if (ops_.back().role == Role::gradients) ops_.back().beside = true;
    }
  }
  void update() {
    micro_batch_ = -1;
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
      const Bucket& bucket = buckets_[i];
      layer_ = bucket.layer;
      const Group group = sharers(bucket);
      const std::int64_t shards = plan_.zero == 0 ? 1 : members(group);
      const std::int64_t place = (at_.cp + plan_.cp * at_.dp) / (bucket.experts ? plan_.ep : 1);
      const std::int64_t mine = shards == 1 ? bucket.elements : shard_of(bucket.elements, shards, place);
      add({.kind = OpKind::optimizer,
           .role = Role::adam,
           .pass = Pass::update,
           .m = mine,
           .n = 1,
           .bytes = mine * adam_bytes(e_),
           .bucket = static_cast<std::int64_t>(i)});
      if (plan_.zero == 0 || plan_.zero == 3) continue;
      move(Role::weights, Pass::update, group, Motion::all_gather, bucket.elements, e_);
      mark(static_cast<std::int64_t>(i), Role::weights);
    }
  }
  static std::int64_t shard_of(std::int64_t elements, std::int64_t shards, std::int64_t place) {
    return (place + 1) * elements / shards - place * elements / shards;
  }

  ModelShape m_;
  const ParallelPlan& plan_;
  RankPosition at_;
  std::int64_t t_, e_;
  std::vector<Bucket> buckets_;
  std::vector<Op> ops_;
  std::int64_t layer_ = -1, micro_batch_ = -1;
};

}  // namespace

std::vector<Op> step_graph(const ModelShape& model, const ParallelPlan& plan, std::int64_t rank) {
  return Builder(model, plan, rank).build();
}

}  // namespace assay::train
