// rack_plan: drawing pairs, packing them in rounds, and reasons to start nothing.
#include "probes/cuda/rack_plan.h"

#include <algorithm>
#include <set>
#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "probes/collective/pattern.h"
#include "probes/core/probe.h"
#include "probes/core/statistics.h"

namespace assay::cuda {
namespace {

constexpr std::size_t kMostNamed = 8;

/// "tray03 (GPU-…, GPU-…), tray07 (GPU-…)", and how many more.
std::string named(const std::vector<const RackGpu*>& gpus) {
  std::vector<std::string> trays;
  std::map<std::string, std::vector<std::string>> by_tray;
  for (const RackGpu* gpu : gpus) {
    if (!by_tray.contains(gpu->tray)) trays.push_back(gpu->tray);
    by_tray[gpu->tray].push_back(gpu->uuid);
  }
  std::string text;
  for (std::size_t i = 0; i < std::min(trays.size(), kMostNamed); ++i)
    text += fmt::format("{}{} ({})", i == 0 ? "" : ", ", trays[i], fmt::join(by_tray[trays[i]], ", "));
  if (trays.size() > kMostNamed) text += fmt::format(", and {} more trays", trays.size() - kMostNamed);
  return text;
}

template <class Test>
std::vector<const RackGpu*> those(const std::vector<RackGpu>& gpus, Test test) {
  std::vector<const RackGpu*> found;
  for (const auto& gpu : gpus) {
    if (test(gpu)) found.push_back(&gpu);
  }
  return found;
}

/// Cluster and clique of a GPU that the fabric has taken in; its state in words if it has not.
std::string place_of(const RackGpu& gpu) {
  if (gpu.state != "completed" || !gpu.clique) return fmt::format("in no fabric (state {})", gpu.state);
  return fmt::format("in clique {} of {}", *gpu.clique,
                     gpu.cluster.empty() ? "a cluster without UUID" : "cluster " + gpu.cluster);
}

/// One place for all; with `needs_cluster` one with a UUID.
void demand_one_place(const std::vector<RackGpu>& gpus, bool needs_cluster) {
  std::map<std::string, std::size_t> counts;
  for (const auto& gpu : gpus) ++counts[place_of(gpu)];
  if (counts.size() > 1) {
    const auto most = std::ranges::max_element(counts, {}, [](const auto& one) { return one.second; });
    std::string text;
    for (const auto& [place, count] : counts) {
      if (place != most->first)
        text +=
            fmt::format("; {}: {}", place, named(those(gpus, [&](const auto& gpu) { return place_of(gpu) == place; })));
    }
    throw std::runtime_error(
        fmt::format("the GPUs are not in one NVLink fabric: {} of {} are {}{}; hint: nothing was "
                    "moved; see nvidia-smi -q, Fabric, on these trays",
                    most->second, gpus.size(), most->first, text));
  }
  const RackGpu& any = gpus.front();
  if (needs_cluster && (any.state != "completed" || any.cluster.empty()))
    throw std::runtime_error(
        fmt::format("all {} GPUs are {}, which is no fabric of several trays; hint: nothing was moved; is the fabric "
                    "manager of the rack running, and is NVML there?",
                    gpus.size(), place_of(any)));
}

}  // namespace

Trays trays_of(const std::vector<RackGpu>& gpus) {
  Trays trays;
  for (const auto& gpu : gpus) {
    const auto known = std::ranges::find(trays.names, gpu.tray);
    trays.of_rank.push_back(static_cast<std::size_t>(known - trays.names.begin()));
    if (known == trays.names.end()) trays.names.push_back(gpu.tray);
  }
  return trays;
}

Sharing check_fabric(const std::vector<RackGpu>& gpus) {
  const std::size_t trays = trays_of(gpus).names.size();
  const auto without = those(gpus, [](const RackGpu& gpu) { return !gpu.fabric_handles; });
  if (trays > 1) {
    if (without.size() == gpus.size())
      throw Skip(fmt::format("no GPU of {} trays offers fabric handles, and nothing else leads out of a tray", trays));
    if (!without.empty())
      throw std::runtime_error(
          fmt::format("no fabric handles are offered by {}; the other GPUs offer them", named(without)));
    demand_one_place(gpus, true);
    return {};
  }
  demand_one_place(gpus, false);
  const RackGpu& any = gpus.front();
  if (without.empty() && any.state == "completed" && !any.cluster.empty()) return {};
  const auto deaf = those(gpus, [](const RackGpu& gpu) { return !gpu.posix_handles; });
  if (!deaf.empty())
    throw Skip(fmt::format("neither fabric handles nor POSIX descriptors are offered by {}", named(deaf)));
  return {.kind = HandleKind::posix,
          .reason = without.empty() ? place_of(any) : fmt::format("no fabric handles offered by {}", named(without))};
}

std::vector<DevicePair> sampled_pairs(const Trays& trays, std::size_t peers, std::uint64_t seed) {
  std::vector<DevicePair> pairs;
  const std::size_t ranks = trays.of_rank.size();
  for (std::size_t source = 0; source < ranks; ++source) {
    std::vector<std::size_t> chosen;
    for (std::size_t tray = 0; tray < trays.names.size(); ++tray) {
      std::vector<std::size_t> there;
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        if (rank != source && trays.of_rank[rank] == tray) there.push_back(rank);
      }
      // The first `peers` places of a shuffle (Fisher and Yates), keyed by source and tray.
      const std::size_t count = std::min(peers, there.size());
      for (std::size_t i = 0; i < count; ++i) {
        const std::uint64_t drawn = collective::mixed(collective::mixed(seed, source << 32 | tray), i);
        std::swap(there[i], there[i + drawn % (there.size() - i)]);
      }
      chosen.insert(chosen.end(), there.begin(), there.begin() + static_cast<std::ptrdiff_t>(count));
    }
    std::ranges::sort(chosen);
    for (const std::size_t target : chosen) pairs.push_back({.source = source, .target = target});
  }
  return pairs;
}

std::vector<std::vector<DevicePair>> rounds_of(const std::vector<DevicePair>& pairs) {
  std::vector<std::vector<DevicePair>> rounds;
  std::vector<std::set<std::size_t>> busy;
  // Pairs of one distance first: they have few ranks in common, so that rounds become full.
  std::vector<DevicePair> ordered = pairs;
  std::ranges::stable_sort(ordered, {}, [](const DevicePair& pair) {
    const std::size_t distance = pair.target - pair.source, back = pair.source - pair.target;
    return std::pair(std::min(distance, back), pair.source);
  });
  for (const DevicePair pair : ordered) {
    std::size_t round = 0;
    while (round < rounds.size() && (busy[round].contains(pair.source) || busy[round].contains(pair.target))) ++round;
    if (round == rounds.size()) {
      rounds.emplace_back();
      busy.emplace_back();
    }
    rounds[round].push_back(pair);
    busy[round].insert({pair.source, pair.target});
  }
  return rounds;
}

std::vector<DevicePair> bisection_pairs(std::size_t ranks) {
  std::vector<DevicePair> pairs;
  for (std::size_t rank = 0; rank < ranks; ++rank)
    pairs.push_back({.source = rank, .target = (rank + ranks / 2) % ranks});
  return pairs;
}

std::vector<DevicePair> pairs_to(std::size_t target, std::size_t ranks) {
  std::vector<DevicePair> pairs;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    if (rank != target) pairs.push_back({.source = rank, .target = target});
  }
  return pairs;
}

std::size_t share_of_landing(std::size_t size, std::size_t senders) {
  constexpr std::size_t kPiece = 4096;
  const std::size_t share = size / senders / kPiece * kPiece;
  if (share == 0)
    throw std::runtime_error(
        fmt::format("size: {} B is less than 4 KiB for each of {} senders to one GPU; give {} B or more", size, senders,
                    senders * kPiece));
  return share;
}

LinkFaults link_faults(const std::vector<std::vector<LinkSeen>>& seen) {
  constexpr std::size_t kFewest = 3;  // two GPUs with one link each may be chance
  std::map<unsigned, std::size_t> having;
  LinkFaults faults;
  for (const auto& links : seen) {
    for (const LinkSeen& link : links) {
      ++having[link.number];
      faults.planes[link.number] += link.at_fault ? 1 : 0;
    }
  }
  for (auto& [number, count] : faults.planes) {
    if (count < kFewest || 2 * count <= having[number]) count = 0;
  }
  for (const auto& links : seen) {
    auto& own = faults.links_of_rank.emplace_back();
    for (const LinkSeen& link : links) {
      if (link.at_fault && faults.planes[link.number] == 0) own.push_back(link.number);
    }
  }
  return faults;
}

RackFigures rack_figures(const Trays& trays, const std::vector<DevicePair>& pairs, std::span<const double> rates) {
  const std::size_t ranks = trays.of_rank.size();
  std::vector<std::vector<double>> sent(ranks), received(ranks), of_tray(trays.names.size());
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    sent[pairs[i].source].push_back(rates[i]);
    received[pairs[i].target].push_back(rates[i]);
    const std::size_t from = trays.of_rank[pairs[i].source], to = trays.of_rank[pairs[i].target];
    of_tray[from].push_back(rates[i]);
    if (to != from) of_tray[to].push_back(rates[i]);
  }
  const auto medians = [](const std::vector<std::vector<double>>& lists) {
    std::vector<std::optional<double>> all;
    for (const auto& list : lists) all.push_back(list.empty() ? std::nullopt : std::optional(median(list)));
    return all;
  };
  return {.sent = medians(sent),
          .received = medians(received),
          .of_tray = medians(of_tray),
          .middle = median(rates),
          .least = *std::ranges::min_element(rates)};
}

}  // namespace assay::cuda
