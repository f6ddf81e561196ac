// moe_record: the outcome of moe_dispatch as lines of a record.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "workloads/inference/moe_run.h"

namespace assay::inference {
namespace {

Sampling fixed(std::vector<double> samples, std::vector<double> warmup = {}) {
  return {.samples = std::move(samples), .warmup = std::move(warmup), .stopped = "fixed"};
}

/// `amount` over each of `times`.
Sampling rates(double amount, const std::vector<double>& times) {
  std::vector<double> values;
  for (const double time : times) values.push_back(amount / time);
  return fixed(std::move(values));
}

class Lines {
 public:
  Lines(const MoeOutcome& outcome, Recorder& record) : outcome_(outcome), job_(outcome.job), record_(record) {
    if (outcome.nodes.size() > 1) all_ = {.kind = "group", .id = fmt::format("{}", fmt::join(outcome.nodes, ","))};
  }

  void write() {
    for (const auto& words : outcome_.findings.words) record_.note(words);
    for (const auto& [family, steps] : outcome_.families) {
      if (steps.dispatch.empty()) continue;  // it only warmed up
      const Values at = {{"family", std::string(word_of(family))}};
      write_family(family, steps, at);
    }
    record_.measurement("idle_time", fixed(outcome_.after_idle), all_);
    for (std::size_t rank = 0; rank < outcome_.ranks.size(); ++rank) write_rank(rank);
    const auto shares = edge_shares(outcome_.edges);
    for (std::size_t i = 0; i < shares.size(); ++i) write_edge(outcome_.edges[i], shares[i]);
    record_.measurement("mismatches", static_cast<double>(outcome_.findings.count), all_);
  }

 private:
  void write_family(Family family, const FamilySteps& steps, const Values& at) {
    const auto line = [&](const char* metric, Sampling values) { record_.measurement(metric, values, all_, at); };
    const auto times = steps.last(steps.dispatch.size());
    line("dispatch_time", fixed(steps.dispatch));
    line("combine_time", fixed(steps.combine));
    line("step_time", fixed(times, steps.warmup));
    line("imbalance", fixed(steps.imbalances));
    if (!steps.penalties.empty()) line("skew_penalty", fixed(steps.penalties));
    if (!steps.pairs.empty()) line("pair_time", fixed(steps.pairs));
    const ExchangeTraffic& moved = steps.traffic;
    const auto tokens = static_cast<double>(steps.tokens), count = static_cast<double>(steps.dispatch.size());
    const auto copies = static_cast<double>(moved.own + moved.node + moved.network);
    const auto out = static_cast<double>(moved.node_bytes), away = static_cast<double>(moved.network_bytes);
    line("algorithm_bytes",
         fixed({static_cast<double>(job_.routing.top_k) * static_cast<double>(job_.out_bytes() + job_.back_bytes())}));
    line("sent_bytes", fixed({(out + away) / tokens}));
    line("own_share", fixed({static_cast<double>(moved.own) / copies}));
    if (job_.ranks_per_node > 1) line("node_share", fixed({static_cast<double>(moved.node) / copies}));
    if (outcome_.fabric) line("network_bytes", fixed({away / tokens}));
    if (is_forced(family) || outcome_.findings.count > 0) return;
    line("tokens_rate", rates(tokens / count, times));
    const double slots = static_cast<double>(moved.slots) / count / static_cast<double>(job_.routing.ranks);
    line("dispatch_rate", rates(slots * static_cast<double>(job_.out_bytes()), steps.dispatch));
    line("combine_rate", rates(slots * static_cast<double>(job_.back_bytes()), steps.combine));
    // A rate is of sent bytes: nothing for a rank or node that keeps all of its tokens.
    const auto nodes = static_cast<double>(outcome_.nodes.size()), ranks = static_cast<double>(job_.routing.ranks);
    if (outcome_.fabric && away > 0) line("network_rate", rates(away / count / nodes, times));
    if (!outcome_.fabric && out + away > 0) line("loopback_rate", rates((out + away) / count / ranks, times));
  }

  [[nodiscard]] std::string name_of(std::int64_t rank) const {
    const std::int64_t here = job_.ranks_per_node;
    const std::string& node = outcome_.nodes[static_cast<std::size_t>(rank / here)];
    return here > 1 ? fmt::format("{} rank {}", node, rank % here) : node;
  }

  void write_rank(std::size_t rank) {
    Subject subject{.kind = "rank", .id = fmt::format("{}", rank)};
    if (outcome_.nodes.size() > 1) subject = {.kind = "group", .id = name_of(static_cast<std::int64_t>(rank))};
    const auto& figures = outcome_.ranks[rank];
    record_.measurement("self_time", fixed(figures.self_time), subject);
    record_.measurement("lateness", fixed(figures.lateness), subject);
    record_.measurement("last_share", fixed(figures.last_share), subject);
    if (!figures.self_share.empty()) record_.measurement("self_share", fixed(figures.self_share), subject);
  }

  void write_edge(const Edge& edge, const std::optional<double>& share) {
    Subject subject{.kind = "rank", .id = fmt::format("{}+{}", edge.low, edge.high)};
    if (outcome_.nodes.size() > 1)
      subject = {.kind = "group", .id = fmt::format("{},{}", name_of(edge.low), name_of(edge.high))};
    record_.measurement("edge_time", fixed(edge.times), subject);
    if (share) record_.measurement("edge_share", fixed({*share}), subject);
  }

  const MoeOutcome& outcome_;
  const ExchangeJob& job_;
  Recorder& record_;
  Subject all_;
};

}  // namespace

void record_job(const Parameters& given, const ExchangeJob& job, const std::vector<std::string>& nodes,
                Recorder& record) {
  record.condition("engine", given.text("engine"));
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

void record_outcome(const MoeOutcome& outcome, Recorder& record) { Lines(outcome, record).write(); }

}  // namespace assay::inference
