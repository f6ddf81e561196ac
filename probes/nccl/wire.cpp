// wire: channels of each adapter, counted.
#include "probes/nccl/wire.h"

#include <algorithm>
#include <charconv>

namespace assay::nccl {
namespace {

bool is_known(const Choice& choice) {
  return choice.algorithm == "RING" && choice.protocol == "SIMPLE" && choice.channels > 0 &&
         (choice.function == "AllReduce" || choice.function == "AllGather" || choice.function == "ReduceScatter");
}

std::optional<double> ring_rate(const NodeWays& node, std::int64_t channels) {
  std::map<std::int64_t, std::int64_t> used;  // channels by adapter
  for (std::int64_t channel = 0; channel < channels; ++channel) {
    const auto ways = node.adapters.find(channel);
    if (ways == node.adapters.end() || ways->second.size() != 1) return std::nullopt;
    ++used[*ways->second.begin()];
  }
  std::optional<double> least;
  for (const auto& [adapter, count] : used) {
    const auto rate = node.rates.find(adapter);
    if (rate == node.rates.end() || !(rate->second > 0)) return std::nullopt;
    const double full = rate->second * static_cast<double>(channels) / static_cast<double>(count);
    least = std::min(least.value_or(full), full);
  }
  return least;
}

}  // namespace

std::optional<double> wire_rate(const std::vector<NodeWays>& nodes, const std::vector<Choice>& choices) {
  if (nodes.size() < 2 || !std::ranges::all_of(choices, is_known)) return std::nullopt;
  std::optional<double> least;
  for (const auto& choice : choices) {
    for (const auto& node : nodes) {
      const auto rate = ring_rate(node, choice.channels);
      if (!rate) return std::nullopt;
      least = std::min(least.value_or(*rate), *rate);
    }
  }
  return least;
}

std::optional<double> line_rate(std::string_view text) {
  constexpr double kGigabit = 1e9 / 8;
  double rate = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rate);
  const auto rest = text.substr(static_cast<std::size_t>(end - text.data()));
  if (error != std::errc{} || !rest.starts_with(" Gb/sec") || !(rate > 0)) return std::nullopt;
  return rate * kGigabit;
}

}  // namespace assay::nccl
