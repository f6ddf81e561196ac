// ingest_plan: the figures of the models; sizes and orders are drawn with splitmix64.
#include "workloads/storage/ingest/ingest_plan.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace assay::cluster_storage {
namespace {

// Sleeps and batches of the b200 configurations; that of unet3d is H100's halved, an assumption by its own comment.
constexpr std::array<IngestModel, 2> kModels = {
    {{.name = "unet3d", .record = 146'600'628, .deviation = 68'341'808, .batch = 7, .compute_s = 0.162},
     {.name = "retinanet", .record = 322'957, .deviation = 0, .batch = 24, .compute_s = 0.04755}}};
constexpr std::uint64_t kWordBytes = 8;
constexpr double kSmallest = 4096;

std::uint64_t mixed(std::uint64_t state) {
  state += 0x9e3779b97f4a7c15;
  state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9;
  state = (state ^ (state >> 27)) * 0x94d049bb133111eb;
  return state ^ (state >> 31);
}

/// From 0 up to 1.
double fraction(std::uint64_t hash) { return static_cast<double>(hash >> 11) * 0x1p-53; }

}  // namespace

const IngestModel& ingest_model(std::string_view name) {
  const auto found = std::ranges::find(kModels, name, &IngestModel::name);
  if (found == kModels.end()) throw std::logic_error("no model " + std::string(name));
  return *found;
}

std::uint64_t sample_size(double record, double deviation, std::uint64_t seed, std::uint64_t sample) {
  const double evenly = 2 * fraction(mixed(mixed(seed) + sample)) - 1;
  const double bytes = std::max(kSmallest, record + deviation * std::sqrt(3.0) * evenly);
  return static_cast<std::uint64_t>(std::ceil(bytes / static_cast<double>(kWordBytes))) * kWordBytes;
}

std::vector<std::uint64_t> shuffled(std::uint64_t count, std::uint64_t seed) {
  std::vector<std::uint64_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  for (std::uint64_t left = count; left > 1; --left)
    std::swap(order[left - 1], order[mixed(mixed(seed) ^ left) % left]);
  return order;
}

}  // namespace assay::cluster_storage
