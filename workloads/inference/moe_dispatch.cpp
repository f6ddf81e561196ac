// moe_dispatch: tokens of a mixture of experts to the ranks of their experts and back, over the network of several
// nodes.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "probes/collective/fleet.h"
#include "probes/collective/limits.h"
#include "probes/collective/local_ranks.h"
#include "probes/core/host_facts.h"
#include "probes/core/join.h"
#include "probes/core/library.h"
#include "probes/core/probe.h"
#include "probes/core/rank_names.h"
#include "probes/core/recorder.h"
#include "probes/core/rendezvous.h"
#include "probes/gloo/outcome.h"
#include "probes/gloo/rank_program.h"
#include "probes/gloo/rank_start.h"
#include "workloads/inference/moe_job.h"
#include "workloads/inference/moe_run.h"
#include "workloads/train/graph/plan_parameters.h"

namespace assay::inference {
namespace {

using nlohmann::json;

constexpr std::size_t kLongestMessage = 8 << 20;  // the addresses of all ranks for all others: 800 ranks
constexpr std::int64_t kMostRounds = 1000;

constexpr Parameter kOwnParameters[] = {
    {.name = "model",
     .fallback = "tiny-moe",
     .meaning = "name of a built-in model with experts, or path of an assay.model/1 on every node: width of a token, "
                "experts, and experts of each token"},
    {.name = "experts_per_rank",
     .unit = "1",
     .fallback = "0",
     .meaning = "experts of each rank; 0: the model's, which the ranks divide"},
    {.name = "tokens",
     .unit = "1",
     .fallback = "128",
     .quick = "32",
     .meaning = "tokens of a rank in one step, the mean"},
    {.name = "dispatch_element",
     .unit = "1",
     .fallback = "2",
     .meaning = "B of a number on the way to the experts: 1 as FP8, 2 as BF16, 4"},
    {.name = "combine_element", .unit = "1", .fallback = "2", .meaning = "B of a number on the way back: 1, 2 or 4"},
    {.name = "copies",
     .fallback = "rank",
     .meaning =
         "rank: a token goes to a rank once for all its experts there, and their sum comes back; expert: once for each",
     .choices = "rank expert"},
    {.name = "families",
     .fallback = "balanced,spread,uniform,zipf,hot_expert,hot_rank,ragged_source,empty_rank,moving_hotspot,burst",
     .meaning = "how tokens are routed, separated by commas; docs/FORMATS.md describes each; spread is always run"},
    {.name = "rounds", .unit = "1", .fallback = "10", .quick = "2", .meaning = "rounds of eight steps of each family"},
    {.name = "seed", .unit = "1", .fallback = "1", .meaning = "of the routes, which are the same on any ranks"},
    {.name = "ranks_per_node", .unit = "1", .fallback = "1", .quick = "2", .meaning = "processes on each node"},
};
constexpr auto kParameters = join(kOwnParameters, train::kPlaceParameters);
constexpr Metric kMetrics[] = {
    lower("dispatch_time", "s",
          "from the common start until all slots for a rank are there and its own are away, packing included, the "
          "longest of all ranks",
          Recorded::rank_0),
    lower("combine_time", "s",
          "from when all experts are done until the sums of a rank's tokens are there, the longest of all ranks",
          Recorded::rank_0),
    lower("step_time", "s", "dispatch_time + combine_time of one step", Recorded::rank_0),
    higher("tokens_rate", "1/s",
           "tokens of all ranks over step_time, recorded where the family is not forced and nothing was wrong",
           Recorded::if_asked),
    higher("network_rate", "B/s",
           "bytes of slots that left a node and came back, the mean of the nodes, over step_time; recorded as "
           "tokens_rate is, where path is fabric",
           Recorded::if_asked),
    higher("loopback_rate", "B/s",
           "bytes of slots that left a rank and came back, the mean of the ranks, over step_time; recorded as "
           "tokens_rate is, where path is loopback",
           Recorded::if_asked),
    neither("imbalance", "1",
            "of a step: most copies that experts of one rank work on, over the mean of the ranks; the router's own, "
            "not measured",
            Recorded::rank_0),
    lower("skew_penalty", "1",
          "of a round: mean step_time over that of spread and over the mean imbalance: 1 where a rank takes as much "
          "longer as it has more to take; recorded where the family is not spread",
          Recorded::if_asked),
    neither("algorithm_bytes", "B",
            "of a token, out and back: all copies of its numbers, own ones too, as DeepEP counts", Recorded::rank_0),
    neither("sent_bytes", "B", "of a token, out and back: slots with their heads that left its rank", Recorded::rank_0),
    neither("network_bytes", "B",
            "of a token, out and back: slots with their heads that left its node, recorded where path is fabric",
            Recorded::if_asked),
    neither("own_share", "1", "share of the copies whose expert is on the token's own rank: no message",
            Recorded::rank_0),
    neither("node_share", "1",
            "share of the copies whose expert is on another rank of the same node: no network; recorded where a node "
            "has several ranks",
            Recorded::if_asked),
    lower("idle_time", "s", "step_time of the first step of spread after 1 s without any", Recorded::rank_0),
    lower("self_time", "s", "of a step of spread, what one rank spends on packing, experts and sums, in no wait",
          Recorded::rank_0),
    lower("self_share", "1", "of a round, median self_time of one rank over the median of the others",
          Recorded::rank_0),
    lower("lateness", "s", "of a step of spread, how much less time one rank waits than the one that waits longest",
          Recorded::rank_0),
    lower("last_share", "1", "share of a round's steps of spread in which one rank waits least: the others wait for it",
          Recorded::rank_0),
    lower("edge_time", "s",
          "one slot from one rank to another and back while neither has other messages, the median of 9, a sample each "
          "round",
          Recorded::rank_0),
    lower("edge_share", "1",
          "median edge_time over that of the fastest quarter of the edges like it, within nodes or between them; "
          "recorded where there are three",
          Recorded::if_asked),
    lower("retransmitted_share", "1",
          "TCP segments sent again over segments sent, of all ranks, from connecting to the end", Recorded::rank_0),
    fault("mismatches",
          "tokens that an expert had not or not once, slots with other bytes or for another expert than they must "
          "have, and sums that are wrong, of all steps; each is a note",
          Recorded::rank_0),
};
constexpr ConditionSpec kOwnConditions[] = {
    {.name = "path", .meaning = "what the payload went through: fabric, between machines, or loopback"},
    {.name = "ranks", .meaning = "processes that took part"},
    {.name = "nodes", .meaning = "nodes that took part"},
    {.name = "ranks_per_node", .meaning = "processes that took part on each node"},
    {.name = "node_names", .meaning = "names of the nodes by rank, separated by commas"},
    {.name = "experts", .meaning = "of all ranks, top_k of which work on a token"},
    {.name = "top_k", .meaning = "experts of each token"},
    {.name = "hidden", .meaning = "numbers of a token"},
    {.name = "slot_bytes", .meaning = "of one slot on the way out, head included"},
    rank_0("nonce", "what the payload of this run is keyed by, recorded where this is rank 0"),
};
constexpr auto kConditions = join(kOwnConditions, gloo::kFactConditions);
constexpr ProbeSpec kSpec{
    .name = "moe_dispatch",
    .scope = Scope::group,
    .measures =
        "Tokens of a mixture of experts sent to the ranks of their experts and back, over TCP between the processors "
        "of several nodes: time by family of routing, what skew costs, bytes that really leave, and every token right.",
    .method =
        "One process for each rank, connected with every other by Gloo. In a step each rank has tokens, whose experts "
        "the family chooses from seed, step and token alone. dispatch: slots of a head, the experts' numbers and the "
        "token are packed by target, their counts exchanged, then the slots, by Gloo's messages. Experts multiply and "
        "add modulo 2^64; the sum of a rank's experts goes back, and the token's rank adds up what it gets (combine). "
        "Both begin at a barrier, which is not in their time. What stays on a rank is packed and no message; what "
        "stays on a node is counted apart. After each dispatch every byte is made again from run, step and token and "
        "compared, and every token must have been at each of its experts once; after each combine every sum must be "
        "the one that its experts give. Neither is timed. balanced and spread force every expert to the same load, "
        "which no router does: they yield no rate. A round is eight steps of spread and of each family, in turns; it "
        "ends with the edges. A rank's waits are waits for others, so the rank that delays has the least of them; only "
        "spread, where all have the same to do, tells who that is.",
    .source =
        "DeepEP's and NCCL EP's documentation, for the shapes and how copies are counted; Megatron-LM's benchmark of "
        "skewed routing, for the families.",
    .needs = "libgloo.so.0 (libgloo0); several nodes reach each other on the rendezvous port and on ephemeral ports",
    .typical = {60},
    .deadline = {3600},
    .parameters = kParameters,
    .metrics = kMetrics,
    .conditions = kConditions,
};

std::vector<collective::RankProgram> rank_programs(const ExchangeJob& job, const Placement& placement,
                                                   const std::string& address, const gloo::RankFile& file,
                                                   const Library& library) {
  std::vector<collective::RankProgram> programs;
  for (std::int64_t local = 0; local < job.ranks_per_node; ++local) {
    ExchangeJob mine = job;
    mine.rank = placement.rank * job.ranks_per_node + local;
    programs.push_back({.path = file.path(),
                        .arguments = moe_arguments({.job = mine, .address = address}),
                        .environment = gloo::rank_environment(library),
                        .title = fmt::format("rank {} ({})", mine.rank, address)});
  }
  return programs;
}

void record_job(const Parameters& given, const ExchangeJob& job, const std::vector<std::string>& nodes,
                Recorder& record) {
  record.condition("path", nodes.size() > 1 ? given.text("path") : std::string("loopback"));
  record.condition("ranks", job.routing.ranks);
  record.condition("nodes", static_cast<std::int64_t>(nodes.size()));
  record.condition("ranks_per_node", job.ranks_per_node);
  record.condition("node_names", fmt::format("{}", fmt::join(nodes, ",")));
  record.condition("experts", job.routing.experts);
  record.condition("top_k", job.routing.top_k);
  record.condition("hidden", job.hidden);
  record.condition("slot_bytes", static_cast<std::int64_t>(job.out_slot()));
}

/// Rank 0: asks all ranks and records.
void conduct(collective::Fleet& fleet, const Parameters& given, const ExchangeJob& job,
             const std::vector<std::string>& names, Recorder& record) {
  const bool several = fleet.nodes().size() > 1;
  auto outcome = conduct_exchange(fleet, given, job, [&](const std::vector<json>& all) {
    if (several) gloo::demand_path(given.text("path"), all, job.ranks_per_node);
  });
  outcome.nodes = names;
  outcome.fabric = several && given.text("path") == "fabric";
  record_outcome(outcome, record);
  record.condition("nonce", fmt::format("{:016x}", outcome.job.nonce));
  const auto facts = fleet.ask({{"do", "facts"}}, collective::kHelloLimit);
  Subject all;
  if (several) all = {.kind = "group", .id = fmt::format("{}", fmt::join(names, ","))};
  record.measurement("retransmitted_share", gloo::retransmitted_share(facts), all);
  gloo::record_facts(record, {facts.begin(), facts.begin() + job.ranks_per_node});
  fleet.release();
}

/// The part of this node.
void take_part(const Parameters& given, const Placement& placement, Recorder& record, Rendezvous* group) {
  const auto job = exchange_job(given, given.count("ranks_per_node") * placement.world);
  const Library library = Library::open("libgloo.so.0", "Gloo");
  const gloo::RankFile file("moe_dispatch_rank");
  const std::string address = gloo::own_address(given.text("interface"), placement);
  const auto programs = rank_programs(job, placement, address, file, library);
  collective::LocalRanks ranks(programs);
  collective::Fleet fleet(
      [&](std::string_view request, Seconds limit) {
        return ranks.ask(request, limit, [&] {  // a library may never report to its rank that a peer is gone
          if (group != nullptr) group->check();
        });
      },
      std::vector<std::string>(programs.size(), "on " + address), std::get<std::string>(host_facts().at("name")),
      group);
  const auto names = group != nullptr ? rank_names(*group) : fleet.nodes();
  record_job(given, job, fleet.nodes(), record);
  if (placement.rank == 0) {
    conduct(fleet, given, job, names, record);
  } else {
    const auto answers = fleet.follow();
    if (const auto facts = answers.find("facts"); facts != answers.end()) gloo::record_facts(record, facts->second);
  }
  ranks.finish(collective::kLeaveLimit);
}

void measure(const Parameters& given, const Placement& placement, Recorder& record) {
  const std::int64_t here = train::ranks_per_node(given);
  (void)train::count_in_range(given, "rounds", 1, kMostRounds);
  if (placement.world == 1) {
    if (here == 1) throw Skip("one rank alone: nothing is sent; use it with scope cluster, or with ranks_per_node=2");
    return take_part(given, placement, record, nullptr);
  }
  work_together(placement, {.exchange = collective::kExchangeLimit, .message = kLongestMessage},
                [&](Rendezvous& group) { take_part(given, placement, record, &group); });
}

}  // namespace
}  // namespace assay::inference

int main(int argc, char** argv) {
  return assay::probe_main(argc, argv, assay::inference::kSpec, assay::inference::measure);
}
