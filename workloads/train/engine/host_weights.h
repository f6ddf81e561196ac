// host_weights: where the weights of one rank and their gradients are, bucket by bucket; and those of a host.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "workloads/train/engine/step_values.h"
#include "workloads/train/graph/step_graph.h"

namespace assay::train {

/// Columns of a shard: `count` of them from `local` on are those from `whole` on of the undivided matrix.
struct Columns {
  std::size_t local = 0, count = 0, whole = 0;
};

/// One matrix of one rank, row by row, or a vector of gains.
struct Weight {
  std::uint64_t id = 0;               ///< the same for all shards of one matrix
  std::size_t rows = 0, columns = 0;  ///< of this shard
  std::size_t first_row = 0;          ///< of this shard in the undivided matrix
  std::size_t whole_columns = 0;      ///< of the undivided matrix
  std::vector<Columns> parts = {};    ///< all of its columns
  std::size_t offset = 0;             ///< of its first number in the rank's memory of weights
  bool gain = false;                  ///< of a norm; every tp rank has it whole
  bool expert = false;                ///< of a routed expert, which fewer ranks share
  [[nodiscard]] std::size_t size() const { return rows * columns; }
};

/// Places of all weights of a rank in one memory, and none of their numbers.
class WeightLayout {
 public:
  WeightLayout(const ModelShape& model, const ParallelPlan& plan, std::int64_t rank);

  /// The weight of `role` in `layer` (-1: of an end). `expert` counts the routed experts of this rank; the gate_up of
  /// all of them are contiguous, and so are the down. Throws std::logic_error if this rank has none.
  [[nodiscard]] const Weight& at(Role role, std::int64_t layer, std::size_t expert = 0) const;
  /// This rank's place in its tp group.
  [[nodiscard]] std::size_t tp() const { return tp_; }
  /// Numbers of all weights.
  [[nodiscard]] std::size_t size() const { return begins_.back(); }
  /// First of some numbers, and their count.
  struct Share {
    std::size_t begin = 0, count = 0;
  };
  /// All of a bucket.
  [[nodiscard]] Share bucket(std::int64_t number) const {
    return {begins_[sized(number)], begins_[sized(number) + 1] - begins_[sized(number)]};
  }
  [[nodiscard]] std::int64_t buckets() const { return static_cast<std::int64_t>(shares_.size()); }
  /// The part of a bucket that this rank updates, in the memory of weights, and among all that it updates.
  struct Kept {
    std::size_t begin = 0, count = 0, place = 0;
  };
  [[nodiscard]] Kept kept(std::int64_t bucket) const { return shares_[sized(bucket)]; }
  /// Numbers of all that this rank updates.
  [[nodiscard]] std::size_t kept_size() const { return shares_.back().place + shares_.back().count; }
  /// All weights as blocks, each of whose numbers follows from its place.
  [[nodiscard]] std::vector<WeightBlock> blocks() const;

 private:
  void lay_out(const ModelShape& model, const ParallelPlan& plan, std::int64_t pp_rank);
  void add(Role role, std::int64_t layer, Weight weight, std::size_t expert = 0);
  void lay_out_layer(const ModelShape& model, std::int64_t layer);
  void lay_out_experts(const ModelShape& model, std::int64_t layer);
  [[nodiscard]] Columns divided(std::size_t local, std::size_t before, std::size_t whole) const;

  std::size_t tp_ = 0, tp_all_ = 1, ep_ = 0, ep_all_ = 1;
  std::map<std::tuple<Role, std::int64_t, std::size_t>, Weight> known_;
  std::vector<std::size_t> begins_;  ///< of the buckets, and the end
  std::vector<Kept> shares_;
};

/// Weights and gradients in memory of a host or of a device.
template <class Number>
class RankWeights : public WeightLayout {
 public:
  using WeightLayout::WeightLayout;
  /// Both are as long as size().
  void keep_in(std::span<Number> weights, std::span<float> gradients) {
    numbers_ = weights;
    sums_ = gradients;
  }
  Number* weights(const Weight& one) const { return numbers_.data() + one.offset; }
  float* gradients(const Weight& one) const { return sums_.data() + one.offset; }
  [[nodiscard]] std::span<Number> bucket_weights(std::int64_t number) const { return part(numbers_, number); }
  [[nodiscard]] std::span<float> bucket_gradients(std::int64_t number) const { return part(sums_, number); }

 private:
  template <class Kind>
  [[nodiscard]] std::span<Kind> part(std::span<Kind> of, std::int64_t number) const {
    return of.subspan(bucket(number).begin, bucket(number).count);
  }
  std::span<Number> numbers_;
  std::span<float> sums_;
};

/// Those of a host.
class HostWeights : public RankWeights<float> {
 public:
  /// Takes and touches the memory, and fills the weights from `seed` by their places in the undivided matrices, so
  /// that every division starts from the same model. Exact weights are whole numbers from -3 to 3.
  HostWeights(const ModelShape& model, const ParallelPlan& plan, std::int64_t rank, std::uint64_t seed, bool exact);
  HostWeights(const HostWeights&) = delete;
  HostWeights& operator=(const HostWeights&) = delete;

  /// Updates the part of `bucket` that this rank keeps; `aside`: numbers of no use of the same size instead, for steps
  /// whose gradients were not reduced.
  void update(std::int64_t bucket, bool aside);
  /// Takes the memory for updates aside.
  void prepare_aside();
  /// Sets the gradients of gains to 0: they are summed row by row. Matrices begin with their first product.
  void clear_gains();

  /// Weights and moments.
  std::vector<std::span<float>> states() { return {weights_, first_, second_}; }

  /// A sum over all numbers that does not depend on how the matrices are divided: the sums of all tp and pp ranks of
  /// one replica add up to that of a single rank. Gains count on the first tp rank. `experts`: only of routed experts,
  /// or of everything else.
  [[nodiscard]] std::uint64_t print(bool gradients, bool experts) const;

 private:
  bool exact_ = false;
  std::vector<WeightBlock> blocks_;
  std::vector<float> weights_, gradients_, first_, second_;
  std::vector<float> aside_weights_, aside_first_, aside_second_;
};

}  // namespace assay::train
