// kv_transfer: the cache of keys and values of a sequence from one node's memory to another's, or from a GPU's to a
// GPU's, as between prefill and decode.
#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <optional>
#include <stdexcept>
#include <type_traits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "probes/core/host_facts.h"
#include "probes/core/join.h"
#include "probes/core/json_io.h"
#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "probes/core/rendezvous.h"
#include "probes/host/tcp_path.h"
#include "probes/host/tcp_streams.h"
#include "probes/verbs/counters.h"
#include "probes/verbs/endpoint_setup.h"
#include "probes/verbs/session.h"
#include "workloads/inference/kv_run.h"
#include "workloads/inference/kv_verbs.h"

namespace assay::inference {
namespace {

using nlohmann::json;

constexpr double kInstrument = 1e-3;     // threads start within some 50 us of transfers of 50 ms or more
constexpr Seconds kOpenPatience = {30};  // a lossy network may lose a connection's first packets three times over
constexpr Seconds kExchange = {300};     // one transfer and its check: 32 GB at 1 Gbit/s

constexpr Parameter kOwnParameters[] = {
    choice("engine", "tcp", "tcp verbs",
           "carrier of the cache: tcp, from host memory; verbs, RDMA writes from host or GPU memory"),
    parameter("model", "", "llama3-8b", "name of a built-in model, or path of an assay.model/1 on both nodes"),
    parameter("layers_run", "1", "0", "layers whose cache is sent; 0: all"),
    parameter("tokens", "1", "2048", "of the sequence; whole pages", "128"),
    parameter("page", "1", "16", "tokens of a page"),
    parameter("element", "1", "2", "B of a number: 1 as FP8, 2 as BF16, 4"),
    parameter("tp", "1", "1",
              "ranks that share the heads; one's part is sent. Latent attention has no part: every rank needs all"),
    choice("layout", "layer", "layer page",
           "what is sent as one block: a page of one layer, layer by layer, or a page of all layers"),
    parameter("streams", "1", "4",
              "TCP connections that share the blocks, with a thread at each end; with engine verbs queue pairs, at "
              "most 16"),
    parameter("transfers", "1", "10", "of each direction that are timed", "3"),
};
constexpr Parameter kGpuPathParameter =
    choice("gpu_path", "direct", "direct staged",
           "with memory gpu: direct, the adapter reaches it (GPUDirect RDMA), or the probe fails; staged, copied "
           "through host memory at both ends, which is a part of the time");

/// `list` without the names of the list before it, of which it has kDropped.
template <std::size_t kDropped, class List, class Before>
constexpr auto without(const List& list, const Before& before) {
  auto result = std::array<std::remove_cvref_t<decltype(*std::begin(list))>, list_size<List> - kDropped>{};
  std::size_t kept = 0;
  for (const auto& one : list) {
    if (std::ranges::none_of(before, [&](const auto& other) { return other.name == one.name; })) result[kept++] = one;
  }
  if (kept != result.size()) throw std::logic_error("another number is dropped");  // when this is compiled
  return result;
}

constexpr auto kTcpParameters = std::array{host::kPathParameter, host::kInterfaceParameter};
constexpr auto kParameters = join(kOwnParameters, kTcpParameters, without<1>(verbs::kStationParameters, kTcpParameters),
                                  verbs::kPlaceParameters, std::array{kGpuPathParameter});
constexpr Metric kMetrics[] = {
    forward(
        higher("forward_bandwidth", "B/s",
               "bytes of the cache from rank 0 to rank 1 over forward_time, where path is fabric and nothing was wrong",
               Recorded::if_asked, kInstrument)),
    forward(lower("forward_time", "s",
                  "from when the receiver asks until every block is there, by its clock, where path is fabric",
                  Recorded::if_asked, kInstrument)),
    forward(lower("forward_first_block", "s",
                  "from when the receiver asks until it has one whole block, where path is fabric",
                  Recorded::if_asked)),
    forward(lower("forward_contiguous", "s",
                  "forward_time of as many bytes without pages, one piece for each stream, where path is fabric",
                  Recorded::if_asked, kInstrument)),
    forward(lower("forward_paging_cost", "1",
                  "forward_time over forward_contiguous of the transfer after it, where path is fabric",
                  Recorded::if_asked)),
    forward(share("forward_link_share",
                  "forward_bandwidth over the rate of the slower of both ports, where that is "
                  "and their drivers report it; with "
                  "engine verbs over payload_limit",
                  Recorded::if_reported)),
    backward(higher("backward_bandwidth", "B/s",
                    "the same from rank 1 to rank 0, where path is fabric and nothing was wrong", Recorded::if_asked,
                    kInstrument)),
    backward(lower("backward_time", "s", "the same from rank 1 to rank 0, where path is fabric", Recorded::if_asked,
                   kInstrument)),
    backward(
        lower("backward_first_block", "s", "the same from rank 1 to rank 0, where path is fabric", Recorded::if_asked)),
    backward(lower("backward_contiguous", "s", "the same from rank 1 to rank 0, where path is fabric",
                   Recorded::if_asked, kInstrument)),
    backward(
        lower("backward_paging_cost", "1", "the same from rank 1 to rank 0, where path is fabric", Recorded::if_asked)),
    backward(share("backward_link_share", "the same from rank 1 to rank 0, where that is and their drivers report it",
                   Recorded::if_reported)),
    higher("loopback_bandwidth", "B/s",
           "bytes of the cache between two processes of one machine over loopback_time, where path is loopback and "
           "nothing was wrong",
           Recorded::if_asked, kInstrument),
    lower("loopback_time", "s", "forward_time between two processes of one machine, where path is loopback",
          Recorded::if_asked, kInstrument),
    lower("loopback_first_block", "s",
          "forward_first_block between two processes of one machine, where path is loopback", Recorded::if_asked),
    lower("loopback_contiguous", "s", "forward_contiguous between two processes of one machine, where path is loopback",
          Recorded::if_asked, kInstrument),
    lower("loopback_paging_cost", "1",
          "forward_paging_cost between two processes of one machine, where path is loopback", Recorded::if_asked),
    lower("retransmitted_share", "1",
          "segments sent again over segments sent, of both ranks, from opening the streams to the end, with engine tcp",
          Recorded::if_asked),
    fault("mismatches",
          "blocks of all transfers that were lost, came twice, came with a head of no block, or differ in a byte; each "
          "is a note. By RDMA writes a block that came twice is not seen",
          Recorded::rank_0),
};
constexpr ConditionSpec kOwnConditions[] = {
    {.name = "engine", .meaning = "Carrier of the cache: tcp or verbs."},
    {.name = "path", .meaning = "What the payload went through: fabric, between two machines, or loopback."},
    if_asked("gpu_path", "Way of the adapter to a GPU's memory, with memory gpu: direct or staged."),
    {.name = "streams", .meaning = "TCP connections, or queue pairs, that shared the blocks."},
    {.name = "bytes_per_token", .meaning = "Keys and values of one token in all layers that are sent, in B."},
    {.name = "transfer_bytes", .meaning = "Of one transfer, in B; heads of blocks are not counted."},
    {.name = "block_bytes", .meaning = "Of one block, in B."},
    {.name = "blocks", .meaning = "Of one transfer."},
};
constexpr auto kTcpConditions = without<1>(asked(host::kPathConditions), kOwnConditions);
constexpr auto kVerbsConditions =
    asked(join(verbs::kPathConditions, verbs::kStationConditions, verbs::kPlaceConditions, verbs::kCounterConditions));
constexpr auto kConditions =
    join(kOwnConditions, kTcpConditions, without<3>(kVerbsConditions, join(kOwnConditions, kTcpConditions)));
constexpr ProbeSpec kSpec{
    .name = "kv_transfer",
    .revision = 2,
    .scope = Scope::pair,
    .measures =
        "The cache of keys and values of one sequence sent from one node's memory, or a GPU's, to another's over TCP "
        "or by RDMA, page by page as a serving engine keeps it: bandwidth, time to the first block and to the last, "
        "every byte right.",
    .method =
        "Layers, heads and widths of the model give the bytes of a token. Pages of 16 tokens lie in memory by a page "
        "table, another one on each side; each block has a head with its number, and the receiver writes it where its "
        "own table says. One thread a stream sends every n-th block. The receiver asks on every stream; time runs by "
        "its clock from then until the end mark of the last stream. After each transfer every byte is made again from "
        "run, transfer and block and compared, and every block must have come once; that is not timed. In turns with "
        "it the same memory goes without pages, one piece a stream. Forward is from rank 0 to rank 1, then backward, "
        "each after one transfer that does not count. With engine verbs a block is an RDMA write to where the "
        "receiver's table says, a contiguous piece one of at most 64 MiB after another, and a word behind the first "
        "and the last block of each queue pair follows; time runs from when it asks until all have come. A GPU's "
        "memory is registered as a dma-buf, or where that is refused through nvidia-peermem, and filled and compared "
        "by copies through the driver, which are not timed; from a GPU's memory it has not run on hardware yet. Two "
        "ranks on one machine are an error unless path=loopback, which has metrics of its own.",
    .source =
        "Kwon et al. 2023, PagedAttention, for pages; Zhong et al. 2024, DistServe, for prefill apart from decode; the "
        "model's card for bytes.",
    .needs =
        "Two nodes that reach each other on the rendezvous port; for engine verbs RDMA adapters and rdma-core's "
        "libibverbs.so.1, for GPU memory NVIDIA's driver",
    .typical = {60},
    .deadline = {1800},
    .parameters = kParameters,
    .metrics = kMetrics,
    .conditions = kConditions,
};

/// Of both ranks; and the rate of the slower port, where both drivers report one.
struct Ends {
  double retransmitted = 0;
  std::optional<BytesPerSecond> link;
};
Ends compare_ends(const host::Streams& streams, Rendezvous& group) {
  const host::TcpCounters counted = host::counters_of(streams);
  json mine = {{"segments", counted.segments}, {"retransmitted", counted.retransmitted}};
  if (const auto speed = host::path_of(streams.front().number()).link_speed) mine["link"] = speed->count;
  double segments = 0;
  Ends ends{.retransmitted = 0, .link = BytesPerSecond{std::numeric_limits<double>::infinity()}};
  for (const auto& words : group.all_gather(mine.dump())) {
    const json rank = parse_json_or_throw(words, "a rank's counters");
    segments += rank.at("segments").get<double>();
    ends.retransmitted += rank.at("retransmitted").get<double>();
    if (ends.link && rank.contains("link"))
      ends.link = BytesPerSecond{std::min(ends.link->count, rank.at("link").get<double>())};
    else
      ends.link.reset();
  }
  if (segments == 0) throw std::runtime_error("the kernel counted no segment although payload moved");
  ends.retransmitted /= segments;
  return ends;
}

void transfer(const Parameters& given, const KvPlan& plan, const Placement& placement, Rendezvous& group,
              Recorder& record) {
  const host::Streams streams = host::open_streams(placement, group, plan.streams, kOpenPatience);
  host::record_path(given, group, streams, record);
  record_plan(plan, record);
  const Subject subject = host::pair_subject(group);
  const bool fabric = given.text("path") == "fabric";
  KvStreams carrier(plan, streams, group);
  const auto outcome = transfer_all(plan, fabric, carrier.carrier(), group);
  const Ends ends = compare_ends(streams, group);
  if (placement.rank != 0) return;
  record_transfers(plan, fabric, outcome, ends.link, subject, record);
  record.measurement("retransmitted_share", ends.retransmitted, subject);
}

void measure(const Parameters& given, const Placement& placement, Recorder& record) {
  const auto plan = kv_plan(given);
  const bool of_gpu = given.text("memory") == "gpu";
  if (!of_gpu || given.text("gpu_path") == "staged") check_kv_room(plan, {total_memory().count / 2}, "half of memory");
  record.condition("engine", given.text("engine"));
  if (given.text("engine") == "verbs") return transfer_over_verbs(given, plan, placement, kExchange, record);
  if (of_gpu) throw BadParameter("memory: engine tcp sends from host memory; hint: --engine verbs");
  host::demand_pair(placement);
  work_together(placement, {.exchange = kExchange},
                [&](Rendezvous& group) { transfer(given, plan, placement, group, record); });
}

}  // namespace
}  // namespace assay::inference

int main(int argc, char** argv) {
  return assay::probe_main(argc, argv, assay::inference::kSpec, assay::inference::measure);
}
