// moe_job: one JSON object as one argument.
#include "workloads/inference/moe_job.h"

#include <unistd.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "probes/core/json_io.h"
#include "workloads/train/graph/model_card.h"
#include "workloads/train/graph/plan_parameters.h"

namespace assay::inference {
namespace {

using nlohmann::json;

constexpr const char* kProgram = "moe_dispatch_rank";
constexpr std::int64_t kMostTokens = 1 << 16, kMostRanks = 4096, kMostTopK = 64;
constexpr std::int64_t kMostExperts = 65'535;  // their numbers are 16 bits wide, one of which means none

/// Bytes of one number: 1 as FP8, 2 as BF16, 4 as fp32.
std::int64_t number_bytes(const Parameters& given, const char* name, std::int64_t hidden) {
  const auto bytes = given.count(name);
  if (bytes != 1 && bytes != 2 && bytes != 4)
    throw BadParameter(fmt::format("{}: {} is none of 1, 2 and 4", name, bytes));
  if (hidden * bytes % 8 != 0)
    throw BadParameter(fmt::format("{}: {} numbers of {} B are no multiple of 8 B", name, hidden, bytes));
  return bytes;
}

std::string nearest_divisors(std::int64_t experts, std::int64_t ranks) {
  std::int64_t below = ranks, above = ranks;
  while (experts % below != 0) --below;
  while (above <= experts && experts % above != 0) ++above;
  return above <= experts ? fmt::format("{} and {}", below, above) : fmt::format("{}", below);
}

}  // namespace

ExchangeJob exchange_job(const Parameters& given, std::int64_t ranks) {
  const train::ModelCard card = train::model_card(given.text("model"));
  if (!card.shape.moe)
    throw BadParameter(fmt::format("model: '{}' has no experts; give one that has, such as tiny-moe", card.name));
  if (ranks > kMostRanks) throw BadParameter(fmt::format("ranks_per_node: {} ranks are over {}", ranks, kMostRanks));
  const train::Experts& moe = *card.shape.moe;
  const std::int64_t each = given.count("experts_per_rank", 0, kMostExperts);
  const std::int64_t experts = each > 0 ? each * ranks : moe.experts;
  if (experts % ranks != 0)
    throw BadParameter(
        fmt::format("experts_per_rank: {} ranks do not divide {} experts; the nearest that do: {}; or give the experts "
                    "of each rank",
                    ranks, experts, nearest_divisors(experts, ranks)));
  if (experts > kMostExperts)
    throw BadParameter(fmt::format("experts_per_rank: {} experts are over {}", experts, kMostExperts));
  if (moe.top_k > experts || moe.top_k > kMostTopK)
    throw BadParameter(fmt::format("experts_per_rank: {} experts of each token, of {}; at most {} are run", moe.top_k,
                                   experts, std::min(experts, kMostTopK)));
  ExchangeJob job{.routing = {.tokens = given.count("tokens", 1, kMostTokens) * ranks,
                              .experts = experts,
                              .top_k = moe.top_k,
                              .ranks = ranks,
                              .seed = static_cast<std::uint64_t>(given.count("seed"))},
                  .ranks_per_node = given.count("ranks_per_node"),
                  .hidden = card.shape.hidden,
                  .out_number = number_bytes(given, "dispatch_element", card.shape.hidden),
                  .back_number = number_bytes(given, "combine_element", card.shape.hidden),
                  .puts = given.text("engine") == "nccl-device",
                  .once_per_rank = given.text("copies") == "rank"};
  (void)families_in(given.text("families"), job.routing);  // throws
  return job;
}

std::vector<std::string> moe_arguments(const MoeStart& start) {
  const ExchangeJob& j = start.job;
  const json words = {
      {"routing", {j.routing.tokens, j.routing.experts, j.routing.top_k, j.routing.ranks, j.routing.seed}},
      {"rank", j.rank},
      {"ranks_per_node", j.ranks_per_node},
      {"numbers", {j.hidden, j.out_number, j.back_number}},
      {"puts", j.puts},
      {"once_per_rank", j.once_per_rank},
      {"address", start.address}};
  return {kProgram, std::to_string(getpid()), words.dump()};
}

std::optional<MoeStart> moe_start(const std::vector<std::string>& arguments) {
  constexpr std::size_t kCount = 3;
  if (arguments.size() != kCount) return std::nullopt;
  try {
    const json words = parse_json_or_throw(arguments[2], "job");
    const json &routing = words.at("routing"), &numbers = words.at("numbers");
    return MoeStart{.job = {.routing = {.tokens = routing.at(0),
                                        .experts = routing.at(1),
                                        .top_k = routing.at(2),
                                        .ranks = routing.at(3),
                                        .seed = routing.at(4)},
                            .rank = words.at("rank"),
                            .ranks_per_node = words.at("ranks_per_node"),
                            .hidden = numbers.at(0),
                            .out_number = numbers.at(1),
                            .back_number = numbers.at(2),
                            .puts = words.at("puts"),
                            .once_per_rank = words.at("once_per_rank")},
                    .address = words.at("address")};
  } catch (const std::exception&) {  // not from a leader
    return std::nullopt;
  }
}

}  // namespace assay::inference
