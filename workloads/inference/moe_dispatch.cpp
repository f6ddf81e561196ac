// moe_dispatch: tokens of a mixture of experts to the ranks of their experts and back, over the network of several
// nodes.

#include <fmt/format.h>

#include "probes/collective/limits.h"
#include "probes/core/join.h"
#include "probes/core/library.h"
#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "probes/core/rendezvous.h"
#include "probes/cuda/choice.h"
#include "probes/cuda/device_record.h"
#include "probes/gloo/outcome.h"
#include "probes/gloo/rank_program.h"
#include "probes/gloo/rank_start.h"
#include "probes/nccl/outcome.h"
#include "probes/nvml/gpu_errors.h"
#include "workloads/inference/moe_gpus.h"
#include "workloads/inference/moe_job.h"
#include "workloads/inference/moe_part.h"
#include "workloads/train/graph/plan_parameters.h"

namespace assay::inference {
namespace {

using Answers = EngineRules::Answers;

constexpr std::size_t kLongestMessage = 8 << 20;  // the addresses of all ranks for all others: 800 ranks
constexpr std::int64_t kMostRounds = 1000;

constexpr Parameter kDevice = [] {
  Parameter device = cuda::kDeviceParameter;
  device.meaning =
      "of engines nccl and nccl-device, GPUs to use, one rank each: all, a UUID, a PCI bus id, or an index in the "
      "order of PCI bus ids";
  return device;
}();
constexpr Parameter kOwnParameters[] = {
    choice("engine", "gloo", "gloo nccl nccl-device",
           "carrier of the slots: gloo, TCP between processors; nccl, grouped sends and receives of NCCL between "
           "GPUs; nccl-device, stores of the GPUs themselves into windows of NCCL 2.28, over NVLink"),
    kDevice,
    parameter("model", "", "tiny-moe",
              "name of a built-in model with experts, or path of an assay.model/1 on every node: width of a token, "
              "experts, and experts of each token"),
    parameter("experts_per_rank", "1", "0", "experts of each rank; 0: the model's, which the ranks divide"),
    parameter("tokens", "1", "128", "tokens of a rank in one step, the mean", "32"),
    parameter("dispatch_element", "1", "2",
              "B of a number on the way to the experts: 1 as FP8, with a scale of 4 B for every 128; 2 as BF16; 4"),
    parameter("combine_element", "1", "2", "B of a number on the way back, likewise"),
    choice(
        "copies", "rank", "rank expert",
        "rank: a token goes to a rank once for all its experts there, and their sum comes back; expert: once for each"),
    parameter("families", "",
              "balanced,spread,uniform,zipf,hot_expert,hot_rank,ragged_source,empty_rank,moving_hotspot,burst",
              "how tokens are routed, separated by commas; docs/FORMATS.md describes each; spread is always run"),
    parameter("rounds", "1", "10", "rounds of eight steps of each family", "2"),
    parameter("seed", "1", "1", "of the routes, which are the same on any ranks"),
    parameter("ranks_per_node", "1", "1", "of engine gloo, processes on each node", "2"),
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
    higher("dispatch_rate", "B/s",
           "numbers and scales of tokens that a rank gets for its experts, its own too, the mean of the ranks, over "
           "dispatch_time; recorded as tokens_rate is",
           Recorded::if_asked),
    higher("combine_rate", "B/s", "the same of the results on their way back, over combine_time", Recorded::if_asked),
    lower("pair_time", "s",
          "of engine nccl: dispatch, work and combine in a row of eight steps of which none waits for a common start, "
          "over eight, the longest of all ranks, a sample each round",
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
          "round; recorded of two ranks or more",
          Recorded::if_asked),
    lower("edge_share", "1",
          "median edge_time over that of the fastest quarter of the edges like it, within nodes or between them; "
          "recorded where there are three",
          Recorded::if_asked),
    lower("retransmitted_share", "1",
          "of engine gloo: TCP segments sent again over segments sent, of all ranks, from connecting to the end",
          Recorded::if_asked),
    fault("mismatches",
          "tokens that an expert had not or not once, slots with other bytes or for another expert than they must "
          "have, and sums that are wrong, of all steps; each is a note",
          Recorded::rank_0),
};
constexpr ConditionSpec kOwnConditions[] = {
    {.name = "engine", .meaning = "carrier of the slots: gloo or nccl"},
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
    if_asked("transport",
             "of engine gloo: tcp; of engine nccl: ways between ranks that NCCL reports of all ranks, such as "
             "NET/IB/GDRDMA, NET/Socket, P2P/CUMEM, SHM, sorted, if it reports any"),
    if_asked("algorithm", "of engine gloo: own_point_to_point, made of Gloo's messages by this probe"),
};
/// The `n` conditions of one engine that kOwnConditions has not; none is recorded with the other engine.
template <std::size_t n>
constexpr auto of_engine(std::span<const ConditionSpec> list) {
  std::array<ConditionSpec, n> own;
  auto* to = own.data();
  for (ConditionSpec one : list) {
    if (one.name == "transport" || one.name == "algorithm") continue;
    if (is_owed(one.recorded)) one.recorded = Recorded::if_asked;
    *to++ = one;
  }
  return own;
}
constexpr ConditionSpec kErrorConditions[] = {nvml::kGpuErrorsCondition};
constexpr auto kConditions =
    join(kOwnConditions, of_engine<std::size(gloo::kFactConditions) - 2>(gloo::kFactConditions),
         of_engine<std::size(nccl::kFactConditions) - 2>(nccl::kFactConditions),
         of_engine<std::size(cuda::kDeviceConditions)>(cuda::kDeviceConditions), kErrorConditions);
constexpr ProbeSpec kSpec{
    .name = "moe_dispatch",
    .revision = 2,
    .scope = Scope::group,
    .measures =
        "Tokens of a mixture of experts sent to the ranks of their experts and back, over TCP between the processors "
        "or by NCCL between the GPUs of several nodes: time by family of routing, what skew costs, bytes that really "
        "leave, and every token right.",
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
        "spread, where all have the same to do, tells who that is. Engine nccl has a process and a GPU for each rank, "
        "and slots in memory from ncclMemAlloc; each token is random bits of the size of its numbers and scales. Ranks "
        "compare their counts before, as with a layout that is kept; after 32 pairs that do not count, the eight steps "
        "are enqueued behind a gate, begin together and are timed by events, one group of sends and receives each way. "
        "Bytes are those of the messages. Between the timed parts ranks meet in an all_reduce of one number, and "
        "kernels compare every slot that came, every result and every sum, over memory that was overwritten before. "
        "Waits are the groups and meetings, self_time is the kernels of packing, experts and sums. Then the steps "
        "follow each other without meetings (pair_time), and their sums are compared at the end. The GPU of a single "
        "rank sends its slots to itself. Engine nccl-device does the same, but kernels store slots into windows of the "
        "other GPUs' memory and raise counts there, for which kernels of those wait: no library's kernel or proxy "
        "takes part between the meetings. No GPU has run it.",
    .source =
        "DeepEP's and NCCL EP's documentation, for the shapes and how copies are counted; Megatron-LM's benchmark of "
        "skewed routing, for the families.",
    .needs =
        "libgloo.so.0 (libgloo0), or NVIDIA GPUs with their driver and libnccl.so.2 from 2.18 on; several nodes "
        "reach each other on the rendezvous port and on ephemeral ports",
    .typical = {60},
    .deadline = {3600},
    .parameters = kParameters,
    .metrics = kMetrics,
    .conditions = kConditions,
};

/// The engine gloo; see take_part().
class GlooSide {
 public:
  GlooSide(const Parameters& given, const Placement& placement)
      : given_(given),
        job_(exchange_job(given, given.count("ranks_per_node") * placement.world)),
        library_(Library::open("libgloo.so.0", "Gloo")),
        file_("moe_dispatch_rank"),
        address_(gloo::own_address(given.text("interface"), placement)) {
    job_.rank = placement.rank * job_.ranks_per_node;
  }

  [[nodiscard]] const ExchangeJob& job() const { return job_; }
  [[nodiscard]] std::vector<std::string> titles() const {
    return {train::sized(job_.ranks_per_node), "on " + address_};
  }
  [[nodiscard]] std::vector<collective::RankProgram> programs() const {
    std::vector<collective::RankProgram> programs;
    ExchangeJob mine = job_;
    for (std::int64_t local = 0; local < job_.ranks_per_node; ++local, ++mine.rank) {
      programs.push_back({.path = file_.path(),
                          .arguments = moe_arguments({.job = mine, .address = address_}),
                          .environment = gloo::rank_environment(library_),
                          .title = fmt::format("rank {} ({})", mine.rank, address_)});
    }
    return programs;
  }
  [[nodiscard]] EngineRules rules(bool several) const {
    return {.admit = [this](const Answers& hellos) { return gloo::admitted(hellos, job_.ranks_per_node); },
            .needs = [](const ExchangeJob& job) { return job.memory(); },
            .entered =
                [this, several](const Answers& all) {
                  if (several) gloo::demand_path(given_.text("path"), all, job_.ranks_per_node);
                }};
  }

  void begin(Recorder& /*record*/) const {}
  void conclude(Recorder& record, const Answers& facts, const Subject& all) const {
    record.measurement("retransmitted_share", gloo::retransmitted_share(facts), all);
    gloo::record_facts(record, {facts.begin(), facts.begin() + job_.ranks_per_node});
  }
  void follow(Recorder& record, const Answers& facts) const { gloo::record_facts(record, facts); }
  void end(Recorder& /*record*/) const {}

 private:
  const Parameters& given_;
  ExchangeJob job_;
  Library library_;
  gloo::RankFile file_;
  std::string address_;
};

void measure(const Parameters& given, const Placement& placement, Recorder& record) {
  const std::string& engine = given.text("engine");
  const std::int64_t here = train::ranks_per_node(given);
  (void)given.count("rounds", 1, kMostRounds);
  if (engine != "gloo" && given.text("interface") != host::kRendezvousPort)
    throw BadParameter("interface: engine nccl takes its ports from NCCL_IB_HCA and NCCL_SOCKET_IFNAME on each node");
  const auto part = [&](Rendezvous* group) {
    if (engine != "gloo") return take_part_with_gpus(given, placement, record, group);
    take_part<GlooSide>(given, placement, record, group);
  };
  if (placement.world == 1) {
    if (engine == "gloo" && here == 1)
      throw Skip("one rank alone: nothing is sent; use it with scope cluster, or with ranks_per_node=2");
    return part(nullptr);
  }
  work_together(placement, {.exchange = collective::kExchangeLimit, .message = kLongestMessage},
                [&](Rendezvous& group) { part(&group); });
}

}  // namespace
}  // namespace assay::inference

int main(int argc, char** argv) {
  if (const auto code = assay::inference::gpu_rank_main(argc, argv)) return *code;
  return assay::probe_main(argc, argv, assay::inference::kSpec, assay::inference::measure);
}
