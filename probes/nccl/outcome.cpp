// outcome: combines the reports of the ranks.
#include "probes/nccl/outcome.h"

#include <algorithm>
#include <cstdint>
#include <stdexcept>

#include <unistd.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "probes/core/recorder.h"
#include "probes/nccl/rank_process.h"
#include "probes/nccl/wire.h"

namespace assay::nccl {
namespace {

using nlohmann::json;

/// Appends `word` if it is not there yet.
void add_once(std::vector<std::string>& words, const std::string& word) {
  if (std::ranges::find(words, word) == words.end()) words.push_back(word);
}

bool crosses_network(const std::string& way) { return way.starts_with("NET/") || way.starts_with("COLLNET/"); }

void record_choices(Recorder& record, const json& reported, const Product& product) {
  auto choices = reported.get<std::vector<json>>();
  std::ranges::stable_sort(choices, {}, [](const json& choice) { return choice.at("bytes").get<std::int64_t>(); });
  if (choices.empty()) return;
  std::vector<std::string> algorithms, protocols;
  for (const auto& choice : choices) {
    add_once(algorithms, choice.at("algorithm"));
    add_once(protocols, choice.at("protocol"));
    record.note(fmt::format("{}: {} of {} B by {} with {} on {} channels", product.title,
                            choice.at("function").get<std::string>(), choice.at("bytes").get<std::int64_t>(),
                            choice.at("algorithm").get<std::string>(), choice.at("protocol").get<std::string>(),
                            choice.at("channels").get<std::int64_t>()));
  }
  record.condition("algorithm", fmt::format("{}", fmt::join(algorithms, " ")));
  record.condition("protocol", fmt::format("{}", fmt::join(protocols, " ")));
  record.condition("channels", choices.back().at("channels").get<std::int64_t>());
}

/// Ways of the ranks of each node; ranks count node by node.
std::vector<NodeWays> ways_of(const std::vector<json>& facts, std::size_t ranks_per_node) {
  std::vector<NodeWays> nodes(facts.size() / ranks_per_node);
  for (std::size_t rank = 0; rank < nodes.size() * ranks_per_node; ++rank) {
    NodeWays& node = nodes[rank / ranks_per_node];
    const auto sends = facts[rank].value("sends", std::vector<std::array<std::int64_t, 2>>());
    for (const auto& [channel, adapter] : sends) node.adapters[channel].insert(adapter);
    for (const auto& one : facts[rank].value("rates", json::array()))
      node.rates.emplace(one.at(0).get<std::int64_t>(), one.at(1));
  }
  return nodes;
}

std::vector<Choice> choices_in(const json& reported) {
  std::vector<Choice> choices;
  for (const auto& one : reported) {
    choices.push_back({.function = one.at("function"),
                       .bytes = one.at("bytes"),
                       .algorithm = one.at("algorithm"),
                       .protocol = one.at("protocol"),
                       .channels = one.at("channels")});
  }
  return choices;
}

void record_wire(Recorder& record, const std::vector<json>& facts, const MeasuredSizes& measured) {
  const auto nodes = ways_of(facts, measured.ranks_per_node);
  const auto choices = choices_in(facts.front().at("choices"));
  std::optional<double> least;
  bool all = true;
  for (const auto& size : measured.sizes) {
    const auto shape =
        collective::shape_of(measured.operation, static_cast<std::size_t>(std::get<std::int64_t>(size.at.at("size"))),
                             collective::size_of(measured.element), static_cast<int>(facts.size()));
    const auto bytes = static_cast<std::int64_t>(shape.chunk * collective::size_of(measured.element));
    std::vector<Choice> own;
    std::ranges::copy_if(choices, std::back_inserter(own), [&](const Choice& one) { return one.bytes == bytes; });
    const auto rate = wire_rate(nodes, own);
    all = all && rate.has_value();
    if (!rate) continue;
    record.measurement("wire_share", share_of(size.busbw, *rate), size.subject, size.at);
    least = std::min(least.value_or(*rate), *rate);
  }
  if (all && least) {
    record.measurement("wire_rate", {.samples = {*least}, .warmup = {}, .stopped = "fixed"},
                       measured.sizes.front().subject);
  }
}

}  // namespace

std::optional<bool> gpudirect_of(const std::set<std::string>& transports) {
  std::optional<bool> direct;
  for (const auto& way : transports) {
    if (crosses_network(way)) direct = direct.value_or(true) && way.ends_with("/GDRDMA");
  }
  return direct || !transports.contains("P2P/MNNVL") ? direct : std::optional(true);
}

void record_facts(Recorder& record, const std::vector<json>& facts, const Product& product) {
  const json& first = facts.front();
  record.condition(product.version_condition, first.at("version").get<std::string>());
  record.condition(product.library_condition, first.at("library").get<std::string>());
  record.condition("environment", first.at("environment").get<std::string>());
  std::set<std::string> transports, warnings;
  bool told = true, available = true;
  for (const auto& one : facts) {
    transports.merge(one.at("transports").get<std::set<std::string>>());
    warnings.merge(one.at("warnings").get<std::set<std::string>>());
    told = told && one.contains("multicast");
    available = available && one.value("multicast", false);
  }
  if (!transports.empty()) record.condition("transport", fmt::format("{}", fmt::join(transports, " ")));
  if (const auto direct = gpudirect_of(transports)) record.condition("gpudirect", *direct);
  std::erase_if(transports, [](const std::string& way) { return !crosses_network(way); });
  if (!transports.empty()) record.condition("fabric", fmt::format("{}", fmt::join(transports, " ")));
  if (first.contains("network")) record.condition("network", first.at("network").get<std::string>());
  if (told) record.condition("nvls", available);
  record.condition("buffers", first.at("buffers").get<std::string>());
  record.condition("launch_excluded",
                   std::ranges::all_of(facts, [](const json& one) { return one.at("launch_excluded").get<bool>(); }));
  record_choices(record, first.at("choices"), product);
  for (const auto& warning : warnings) record.note(fmt::format("{} warns: {}", product.title, warning));
}

Bytes admitted(const std::vector<json>& hellos) {
  Bytes least{UINT64_MAX};
  for (const auto& hello : hellos) {
    least = std::min(least, Bytes{hello.at("free").get<std::uint64_t>()});
    if (hello.at("version") != hellos.front().at("version")) {
      throw std::runtime_error(fmt::format("NCCL {} and {} on different nodes; install the same version on all",
                                           hellos.front().at("version").get<std::string>(),
                                           hello.at("version").get<std::string>()));
    }
  }
  return memory_for_buffers(least);
}

collective::LibraryRules nccl_rules(Recorder& record, MeasuredSizes& measured, const Product& product) {
  const auto keep = [&measured](const Sampling& busbw, const Subject& subject, const Values& at) {
    measured.sizes.push_back({.busbw = busbw, .subject = subject, .at = at});
  };
  const auto finished = [&record, &measured, &product](const std::vector<json>& facts) {
    record_wire(record, facts, measured);
    record_facts(record, facts, product);
  };
  return {.prefix = "", .admit = admitted, .entered = nullptr, .measured = keep, .finished = finished};
}

Bytes memory_for_buffers(Bytes free) {
  // Inferred, generous: 32 channels with 16 MiB for each of 7 peers are 3.5 GiB; a small GPU gives half of its memory.
  constexpr std::uint64_t kReserve = std::uint64_t{4} << 30;
  return {free.count > 2 * kReserve ? free.count - kReserve : free.count / 2};
}

std::vector<std::string> rank_arguments(const std::string& program, const RankPlace& place) {
  return {program,
          "--local-rank",
          std::to_string(getpid()),
          std::to_string(place.rank),
          std::to_string(place.ranks),
          place.gpu,
          place.operation,
          place.type};
}

}  // namespace assay::nccl
