// device_rehearsal: a step on a device that is not there: the memory that it takes, and its products.
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>

#include "probes/core/units.h"
#include "workloads/train_gpu/device_core.h"
#include "workloads/train_gpu/device_memory.h"

namespace assay::train_gpu {

/// Queries of attention done together: a batch of products of this many rows fills a GPU.
inline constexpr std::size_t kQueriesTogether = 1024;

/// Memory and products of the steps of one rank.
struct DeviceNeed {
  std::uint64_t memory = 0;                  ///< B, of one Arena
  std::uint64_t packed_a = 0, packed_b = 0;  ///< B, of the largest factors that are rounded to BF16 first
  std::uint64_t messages = 0;                ///< B, of copies of messages on their way
  std::set<ProductShape> shapes;             ///< as they are multiplied: packed where factors are
  /// B of all of them.
  [[nodiscard]] std::uint64_t bytes() const { return memory + packed_a + packed_b + messages; }
};

/// Walks the job's products without one number. `block`: queries that are done together.
DeviceNeed rehearsed(const train::RankJob& job, std::size_t block = kQueriesTogether);
/// The job's exact steps, its own and, if it fuses(), AttentionTrial, of which the largest memory counts: one is
/// freed before the next is taken.
DeviceNeed rehearsed_both(const train::RankJob& job);

/// Throws BadParameter when `job` needs more than `available`, naming both, the layers that fit, and the nearest tp
/// that does, if one does.
void check_device_memory(const train::RankJob& job, Bytes available);

/// A device of addresses behind which is nothing. It does nothing, counts memory and keeps the shapes of products.
template <class Kept>
class RehearsalDevice {
 public:
  using Number = Kept;
  explicit RehearsalDevice(train::FactorType factors) : packs_(factors != train::FactorType::tf32) {}
  [[nodiscard]] DeviceNeed need() const {
    DeviceNeed all = need_;
    all.memory = arena_.used();
    return all;
  }

  template <class Kind>
  std::span<Kind> take(std::size_t count) {
    return arena_.take<Kind>(count);
  }
  template <class Result>
  void product(ProductShape shape, const Number* /*a*/, const Number* /*b*/, Result* /*c*/) {
    shape.narrow = sizeof(Result) == sizeof(train::Bf16);
    if (sizeof(Number) == sizeof(float) && packs_) {
      const auto room = [](const FactorShape& one) {
        return static_cast<std::uint64_t>(packed(one).extent()) * sizeof(train::Bf16);
      };
      need_.packed_a = std::max(need_.packed_a, room(a_of(shape)));
      need_.packed_b = std::max(need_.packed_b, room(b_of(shape)));
      shape = packed(shape);
    }
    need_.shapes.insert(shape);
  }

  template <class Result>
  void product(ProductShape shape, const Fp8Factor& /*a*/, const Fp8Factor& /*b*/, Result* /*c*/) {
    shape.narrow = sizeof(Result) == sizeof(train::Bf16);
    need_.shapes.insert(shape);
  }

  // Nothing of these is done.
  void cast(const CastShape& /*shape*/, auto... /*any*/) {}
  void copy_in(auto... /*any*/) {}
  void draw(const auto&... /*any*/) {}
  WeightPrint print(const auto&... /*any*/) { return {}; }
  void tokens(const auto&... /*any*/) {}
  void clear(auto... /*any*/) {}
  void fold(auto... /*any*/) {}
  void add(auto... /*any*/) {}
  void norm(auto... /*any*/) {}
  void norm_back(auto... /*any*/) {}
  void activate(auto... /*any*/) {}
  void activate_back(auto... /*any*/) {}
  void softmax(const ScoreBatch& /*batch*/, auto... /*any*/) {}
  void softmax_back(const ScoreBatch& /*batch*/, auto... /*any*/) {}
  void attend(const train::HeadShape& /*shape*/, const AttentionPlaces<Number>& /*at*/) {}
  void attend_back(const train::HeadShape& /*shape*/, const AttentionPlaces<Number>& /*at*/) {}
  AttentionDifference differences(const HeadRows& /*rows*/, auto... /*any*/) { return {}; }
  void row_sums(auto... /*any*/) {}
  void loss_back(const LossShape& /*shape*/, auto... /*any*/) {}
  void embed(auto... /*any*/) {}
  void embed_back(auto... /*any*/) {}
  void adam(std::size_t /*count*/, const train::AdamState& /*state*/, auto... /*any*/) {}
  void copy_rows(auto... /*any*/) {}
  void gather_rows(const RowChoice& /*choice*/, auto... /*any*/) {}
  void sum_rows(const RowChoice& /*choice*/, auto... /*any*/) {}
  void gates(auto... /*any*/) {}
  void gates_back(const RowChoice& /*choice*/, const std::int32_t* /*places*/, const std::int32_t* /*numbers*/,
                  const GatePlaces<Number>& /*at*/, bool /*exact*/) {}
  void begin(std::size_t /*calls*/) {}
  void mark(std::size_t /*call*/) {}
  void end() {}
  [[nodiscard]] double seconds(std::size_t /*call*/) const { return 0; }

 private:
  // No address below a page is ever mapped, and no machine has so much memory.
  static std::span<std::byte> nowhere() {
    constexpr std::uintptr_t kFirst = 4096;
    return {reinterpret_cast<std::byte*>(kFirst), std::size_t{1} << 56U};
  }
  Arena arena_{nowhere()};
  bool packs_;
  DeviceNeed need_;
};

}  // namespace assay::train_gpu
