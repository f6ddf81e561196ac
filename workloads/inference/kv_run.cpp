// kv_run: each transfer has bytes of its own; the receiver's findings and times go to both ranks.
#include "workloads/inference/kv_run.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "probes/core/json_io.h"
#include "workloads/storage/shared/payload.h"

namespace assay::inference {
namespace {

using nlohmann::json;

constexpr std::int64_t kMostTokens = 1 << 22, kMostPage = 4096, kMostStreams = 256, kMostTransfers = 10'000;
constexpr std::size_t kWarmup = 1;  // transfers before those that count, each way: page faults, windows that open

class Transfers {
 public:
  Transfers(const KvPlan& plan, const KvCarrier& carrier, Rendezvous& group)
      : plan_(plan),
        carrier_(carrier),
        group_(group),
        paged_(kv_blocks(plan.shape, plan.layout, plan.streams, kTables)),
        whole_(kv_blocks(plan.shape, KvLayout::contiguous, plan.streams, kTables)) {
    key_.nonce =
        std::stoull(group.broadcast(fmt::format("{:016x}", cluster_storage::fresh_payload_nonce())), nullptr, 16);
  }

  KvTimes all_from(int sender) {
    KvTimes times;
    for (std::size_t i = 0; i < kWarmup + static_cast<std::size_t>(plan_.transfers); ++i) {
      const auto paged = one(sender, plan_.layout, paged_);
      const auto whole = one(sender, KvLayout::contiguous, whole_);
      if (i < kWarmup) continue;
      times.first.push_back(paged.first_s);
      times.all.push_back(paged.all_s);
      times.contiguous.push_back(whole.all_s);
    }
    return times;
  }
  Findings& findings() { return findings_; }

 private:
  static constexpr std::uint64_t kTables = 1;
  struct Times {
    double first_s = 0, all_s = 0;
  };

  Times one(int sender, KvLayout layout, const std::vector<KvBlock>& blocks) {
    ++key_.transfer;
    const bool sends = group_.rank() == sender;
    if (sends) carrier_.fill([&](std::span<std::byte> memory) { fill_blocks(blocks, key_, memory); });
    group_.barrier();
    json mine = json::object();
    if (sends) {
      carrier_.send(blocks, key_);
    } else {
      const KvTaken taken = carrier_.receive(blocks, key_);
      const std::string title =
          fmt::format("transfer {} from rank {} to rank {}", key_.transfer, sender, group_.rank());
      Findings wrong;
      carrier_.read([&](std::span<const std::byte> memory) {
        wrong = check_blocks(plan_.shape, layout, blocks, key_, taken, memory, title);
      });
      mine = {{"first", std::min(taken.first_s, taken.all_s)},
              {"all", taken.all_s},
              {"wrong", wrong.count},
              {"words", wrong.words}};
    }
    const auto said = group_.all_gather(mine.dump());
    const json told = parse_json_or_throw(said.at(sender == 0 ? 1 : 0), "the receiver");
    findings_.take({.count = told.at("wrong"), .words = told.at("words")});
    return {.first_s = told.at("first"), .all_s = told.at("all")};
  }

  const KvPlan& plan_;
  const KvCarrier& carrier_;
  Rendezvous& group_;
  std::vector<KvBlock> paged_, whole_;
  KvKey key_;
  Findings findings_;
};

Sampling fixed(std::vector<double> samples) {
  return {.samples = std::move(samples), .warmup = {}, .stopped = "fixed"};
}

}  // namespace

KvPlan kv_plan(const Parameters& given) {
  KvPlan plan{.shape = {.model = train::model_card(given.text("model")).shape,
                        .tokens = given.count("tokens", 1, kMostTokens),
                        .page = given.count("page", 1, kMostPage),
                        .element = given.count("element"),
                        .tp = given.count("tp", 1, kMostTokens)},
              .layout = given.text("layout") == "page" ? KvLayout::page : KvLayout::layer,
              .streams = static_cast<std::size_t>(given.count("streams", 1, kMostStreams)),
              .transfers = given.count("transfers", 1, kMostTransfers)};
  const KvShape& shape = plan.shape;
  const std::int64_t layers = given.count("layers_run", 0, shape.model.layers);
  if (layers > 0) plan.shape.model.layers = layers;
  if (shape.element != 1 && shape.element != 2 && shape.element != 4)
    throw BadParameter(fmt::format("element: {} is none of 1, 2 and 4", shape.element));
  if (const std::int64_t rest = shape.tokens % shape.page; rest != 0)
    throw BadParameter(fmt::format("tokens: {} is no multiple of a page of {}; the nearest that are: {} and {}",
                                   shape.tokens, shape.page, shape.tokens - rest, shape.tokens - rest + shape.page));
  if (!shape.model.mla && shape.model.kv_heads % shape.tp != 0) {
    std::int64_t nearest = shape.tp;
    while (shape.model.kv_heads % nearest != 0) --nearest;
    throw BadParameter(fmt::format("tp: {} does not divide {} kv heads; the nearest that does: {}", shape.tp,
                                   shape.model.kv_heads, nearest));
  }
  if (shape.page * kv_numbers(shape.model, shape.tp) * shape.element % 8 != 0)
    throw BadParameter(fmt::format("page: {} tokens of a layer are no multiple of 8 B", shape.page));
  return plan;
}

void check_kv_room(const KvPlan& plan, Bytes room, std::string_view what) {
  const KvShape& shape = plan.shape;
  if (shape.bytes() <= room.count) return;
  const std::uint64_t page = shape.bytes() / static_cast<std::uint64_t>(shape.tokens / shape.page);
  const std::uint64_t most = room.count / page * static_cast<std::uint64_t>(shape.page);
  throw BadParameter(fmt::format("tokens: their keys and values are {} B, {} is {} B; {}", shape.bytes(), what,
                                 room.count,
                                 most == 0 ? "not a page fits: give layers_run"
                                           : fmt::format("the nearest that fits: {}, or give layers_run", most)));
}

KvStreams::KvStreams(const KvPlan& plan, const host::Streams& streams, Rendezvous& group)
    : streams_(streams), group_(group), memory_(Bytes{plan.shape.bytes()}, host::Pages::huge) {}

KvCarrier KvStreams::carrier() {
  const auto watch = [this] { group_.check(); };
  return {.send =
              [this, watch](const std::vector<KvBlock>& blocks, const KvKey& key) {
                std::vector<std::size_t> numbers(blocks.size());
                std::iota(numbers.begin(), numbers.end(), 0);
                send_blocks(streams_, blocks, numbers, key, memory_.as<std::byte>(), watch);
              },
          .receive =
              [this, watch](const std::vector<KvBlock>& blocks, const KvKey& key) {
                return receive_blocks(streams_, blocks, key, memory_.as<std::byte>(), watch);
              },
          .fill = [this](const auto& make) { make(memory_.as<std::byte>()); },
          .read = [this](const auto& look) { look(memory_.as<std::byte>()); }};
}

void record_plan(const KvPlan& plan, Recorder& record) {
  const auto blocks = kv_blocks(plan.shape, plan.layout, plan.streams, 1);
  record.condition("streams", static_cast<std::int64_t>(plan.streams));
  record.condition("bytes_per_token", static_cast<std::int64_t>(plan.shape.bytes()) / plan.shape.tokens);
  record.condition("transfer_bytes", static_cast<std::int64_t>(plan.shape.bytes()));
  record.condition("block_bytes", static_cast<std::int64_t>(blocks.front().size));
  record.condition("blocks", static_cast<std::int64_t>(blocks.size()));
}

KvOutcome transfer_all(const KvPlan& plan, bool both_ways, const KvCarrier& carrier, Rendezvous& group) {
  Transfers transfers(plan, carrier, group);
  KvOutcome outcome;
  outcome.forward = transfers.all_from(0);
  if (both_ways) outcome.backward = transfers.all_from(1);
  outcome.findings = std::move(transfers.findings());
  return outcome;
}

void record_transfers(const KvPlan& plan, bool fabric, const KvOutcome& outcome,
                      const std::optional<BytesPerSecond>& link, const Subject& subject, Recorder& record) {
  const auto bytes = static_cast<double>(plan.shape.bytes());
  const auto direction = [&](const std::string& name, const KvTimes& times) {
    const auto line = [&](const char* metric, std::vector<double> samples) {
      record.measurement(name + metric, fixed(std::move(samples)), subject);
    };
    line("_time", times.all);
    line("_first_block", times.first);
    line("_contiguous", times.contiguous);
    std::vector<double> rates, costs, shares;
    for (std::size_t i = 0; i < times.all.size(); ++i) {
      rates.push_back(bytes / times.all[i]);
      costs.push_back(times.all[i] / times.contiguous[i]);
      if (link) shares.push_back(rates.back() / link->count);
    }
    line("_paging_cost", costs);
    if (outcome.findings.count > 0) return;
    line("_bandwidth", rates);
    if (fabric && link) line("_link_share", shares);
  };
  for (const auto& words : outcome.findings.words) record.note(words);
  direction(fabric ? "forward" : "loopback", outcome.forward);
  if (fabric) direction("backward", outcome.backward);
  record.measurement("mismatches", static_cast<double>(outcome.findings.count), subject);
}

}  // namespace assay::inference
