// host_collective: time and bandwidth of one collective of Gloo over the processors of several nodes, checked exactly.
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "probes/collective/conductor.h"
#include "probes/collective/fleet.h"
#include "probes/collective/limits.h"
#include "probes/collective/local_ranks.h"
#include "probes/collective/operation.h"
#include "probes/core/host_facts.h"
#include "probes/core/join.h"
#include "probes/core/library.h"
#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "probes/core/sizes.h"
#include "probes/gloo/outcome.h"
#include "probes/gloo/rank_program.h"
#include "probes/gloo/rank_start.h"
#include "probes/host/tcp_path.h"

namespace assay::gloo {
namespace {

using nlohmann::json;

constexpr std::int64_t kMostRanksPerNode = 64;
constexpr std::size_t kLongestMessage = 8 << 20;  // the addresses of all ranks for all others: 800 ranks

constexpr Parameter kParameters[] = {
    host::kPathParameter,
    parameter("interface", "", host::kRendezvousPort,
              "network port to use on every node, such as eth1; rendezvous: the one on which the ranks meet"),
    parameter("ranks_per_node", "1", "1", "processes on each node"),
    choice("operation", "all_reduce", collective::kOperations, "collective to measure"),
    parameter("sizes", "", "8..256MiB",
              "message sizes, separated by commas; first..last doubles; those that do not fit are left out and named",
              "8,64KiB,1MiB"),
    choice("type", "fp32", "fp32 fp64", "type of the elements; reductions add them"),
};
constexpr Metric kMetrics[] = {
    lower("time", "s", "time of one collective, the longest of all ranks, where path is fabric", Recorded::if_asked),
    higher("algbw", "B/s", "size over time, the size counted as nccl-tests does, where path is fabric",
           Recorded::if_asked),
    higher("busbw", "B/s", "algbw times the operation's factor for this number of ranks, where path is fabric",
           Recorded::if_asked),
    share("wire_share",
          "busbw over the rate of the slowest network port that carried it, where path is fabric, ranks_per_node "
          "is 1 and the drivers of all ports report their rate",
          Recorded::if_asked),
    lower("loopback_time", "s", "time between processes of one machine, where path is loopback", Recorded::if_asked),
    higher("loopback_algbw", "B/s", "algbw between processes of one machine, where path is loopback",
           Recorded::if_asked),
    higher("loopback_busbw", "B/s", "busbw between processes of one machine, where path is loopback",
           Recorded::if_asked),
    lower("retransmitted_share", "1",
          "TCP segments sent again over segments sent, of all ranks, from connecting to the end", Recorded::rank_0),
    fault(
        "mismatches",
        "elements, of all ranks and of a check before and one after the timing, that are not exactly what they must be",
        Recorded::rank_0),
};
constexpr ConditionSpec kOwnConditions[] = {
    {.name = "path", .meaning = "what the payload went through: fabric, between machines, or loopback"},
    {.name = "ranks", .meaning = "processes that took part"},
    {.name = "nodes", .meaning = "nodes that took part"},
    {.name = "ranks_per_node",
     .meaning = "processes that took part on each node; those of one node reach each other by its loopback"},
    {.name = "node_names", .meaning = "names of the nodes by rank, separated by commas"},
    rank_0("sizes_left_out", "sizes in B that were asked for and do not fit, or none, where this is rank 0"),
};
constexpr auto kConditions = join(kOwnConditions, kFactConditions);
constexpr ProbeSpec kSpec{
    .name = "host_collective",
    .revision = 2,
    .scope = Scope::group,
    .sampled = true,
    .measures =
        "Time, algorithm bandwidth and bus bandwidth of a collective of Gloo over TCP between the processors of "
        "several nodes.",
    .method =
        "One process on each node (ranks_per_node for more), connected with every other by one TCP connection, on the "
        "address of the rendezvous or of `interface`. Gloo's own functions do all_reduce and all_gather (ring), "
        "all_to_all (direct), broadcast (binomial tree) and scatter (from the root to each); what this version of it "
        "lacks, reduce_scatter (ring) and send_recv (to the next rank, from the one before), is made of its messages. "
        "Buffers are used out of place, and their place moves on with each iteration. Each iteration begins with a "
        "barrier, which is not in its time; its time is that of the rank that takes longest, by its own wall clock. "
        "algbw is size over time, size being the whole buffer as nccl-tests counts it; busbw is algbw times 2(n-1)/n "
        "for all_reduce, (n-1)/n for all_gather, reduce_scatter, all_to_all and scatter, 1 for broadcast and "
        "send_recv. With one rank on a node every port carries busbw each way in these algorithms; but the root of "
        "broadcast sends more than once, and that of scatter alone sends. Before and after the timing of each size one "
        "collective runs on whole numbers whose sums are exact in the type, or on random bits if none are added, "
        "and every received element is compared. "
        "Addresses, ports and retransmissions are those of the connections themselves, as the kernel reports them. "
        "Ranks of two nodes that are one machine are an error unless path=loopback, which has metrics of its own.",
    .source =
        "NVIDIA nccl-tests, doc/PERFORMANCE.md, for the quantities; Gloo, docs/algorithms.md, for the algorithms.",
    .needs =
        "Two or more nodes that reach each other on the rendezvous port and on ephemeral ports, libgloo.so.0 "
        "(libgloo0)",
    .typical = {60},
    .deadline = {3600},
    .parameters = kParameters,
    .metrics = kMetrics,
    .conditions = kConditions,
};

std::vector<collective::RankProgram> rank_programs(const Parameters& given, const Placement& placement,
                                                   const RankFile& file, const Library& library) {
  const auto here = static_cast<int>(given.count("ranks_per_node"));
  const std::string address = own_address(given.text("interface"), placement);
  std::vector<collective::RankProgram> programs;
  for (int local = 0; local < here; ++local) {
    const RankPlace place{.rank = placement.rank * here + local,
                          .ranks = placement.world * here,
                          .operation = given.text("operation"),
                          .type = given.text("type"),
                          .address = address};
    programs.push_back({.path = file.path(),
                        .arguments = rank_arguments(place),
                        .environment = rank_environment(library),
                        .title = fmt::format("rank {} ({})", place.rank, address)});
  }
  return programs;
}

void conduct_all(collective::Fleet& fleet, const Parameters& given, const std::vector<Bytes>& sizes, Recorder& record) {
  const std::int64_t here = given.count("ranks_per_node");
  Subject subject;
  if (fleet.nodes().size() > 1) subject = {.kind = "group", .id = fmt::format("{}", fmt::join(fleet.nodes(), ","))};
  std::optional<double> wire;  // B/s
  const auto entered = [&](const std::vector<json>& ranks) {
    demand_path(given.text("path"), ranks, here);
    if (given.text("path") == "fabric" && here == 1) wire = slowest_port(ranks);
  };
  const auto measured = [&](const Sampling& busbw, const Subject& ranks, const Values& at) {
    if (wire) record.measurement("wire_share", share_of(busbw, *wire), ranks, at);
  };
  const auto finished = [&](const std::vector<json>& facts) {
    record.measurement("retransmitted_share", retransmitted_share(facts), subject);
    record_facts(record, {facts.begin(), facts.begin() + here});
  };
  collective::conduct(fleet, given, sizes,
                      {.prefix = given.text("path") == "loopback" ? "loopback_" : "",
                       .admit = [&](const auto& hellos) { return admitted(hellos, here); },
                       .entered = entered,
                       .measured = measured,
                       .finished = finished},
                      record);
  fleet.release();
}

/// The part of this node.
void take_part(const Parameters& given, const Placement& placement, Recorder& record, Rendezvous* group) {
  const auto sizes = parse_sizes(given.text("sizes"));
  const Library library = Library::open("libgloo.so.0", "Gloo");
  const RankFile file("host_collective_rank");
  const auto programs = rank_programs(given, placement, file, library);
  collective::LocalRanks ranks(programs);
  collective::Fleet fleet(
      [&](std::string_view request, Seconds limit) {
        return ranks.ask(request, limit, [&] {  // a library may never report to its rank that a peer is gone
          if (group != nullptr) group->check();
        });
      },
      std::vector<std::string>(programs.size(), programs.front().arguments.back()),
      std::get<std::string>(host_facts().at("name")), group);
  record.condition("path", given.text("path"));
  record.condition("ranks", static_cast<std::int64_t>(fleet.ranks()));
  record.condition("nodes", static_cast<std::int64_t>(fleet.nodes().size()));
  record.condition("ranks_per_node", static_cast<std::int64_t>(fleet.ranks_per_node()));
  record.condition("node_names", fmt::format("{}", fmt::join(fleet.nodes(), ",")));
  if (placement.rank == 0) {
    conduct_all(fleet, given, sizes, record);
  } else {
    const auto answers = fleet.follow();
    if (const auto facts = answers.find("facts"); facts != answers.end()) record_facts(record, facts->second);
  }
  ranks.finish(collective::kLeaveLimit);
}

void check(const Parameters& given, const Placement& placement) {
  const auto here = given.count("ranks_per_node", 1, kMostRanksPerNode);
  if (placement.world > 1) return;
  if (here == 1)
    throw Skip(
        "one rank alone: a collective needs two; use it with scope group, or with path=loopback and ranks_per_node=2");
  if (given.text("path") != "loopback")
    throw Skip("one node alone: that is no network; use it with scope group, or with path=loopback");
}

void measure(const Parameters& given, const Placement& placement, Recorder& record) {
  check(given, placement);
  if (placement.world == 1) return take_part(given, placement, record, nullptr);
  work_together(placement, {.exchange = collective::kExchangeLimit, .message = kLongestMessage},
                [&](Rendezvous& group) { take_part(given, placement, record, &group); });
}

}  // namespace
}  // namespace assay::gloo

int main(int argc, char** argv) { return assay::probe_main(argc, argv, assay::gloo::kSpec, assay::gloo::measure); }
