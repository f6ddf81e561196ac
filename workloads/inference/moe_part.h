// moe_part: the part of one node in moe_dispatch, with any carrier of the slots.
#pragma once

#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "probes/collective/fleet.h"
#include "probes/collective/limits.h"
#include "probes/collective/local_ranks.h"
#include "probes/core/host_facts.h"
#include "probes/core/probe.h"
#include "probes/core/rank_names.h"
#include "probes/core/recorder.h"
#include "workloads/inference/moe_run.h"

namespace assay::inference {

/// Runs this node's ranks. `Side` has their job, programs, titles and rules, and records the facts of its engine:
/// begin() and end() on every node, conclude() on that of rank 0 from the answers of all ranks to "facts", follow() on
/// the others from those of their own.
template <class Side>
void take_part(const Parameters& given, const Placement& placement, Recorder& record, Rendezvous* group) {
  Side side(given, placement);
  const ExchangeJob& job = side.job();
  collective::LocalRanks ranks(side.programs(), {.after_error = collective::kAfterError});
  const auto ask = [&](std::string_view request, Seconds limit) {
    return ranks.ask(request, limit, [&] {  // a library may never report to its rank that a peer is gone
      if (group != nullptr) group->check();
    });
  };
  collective::Fleet fleet(ask, side.titles(), std::get<std::string>(host_facts().at("name")), group);
  const auto names = group != nullptr ? rank_names(*group) : fleet.nodes();
  const bool several = fleet.nodes().size() > 1;
  record_job(given, job, fleet.nodes(), record);
  side.begin(record);
  if (placement.rank == 0) {
    MoeOutcome outcome = conduct_exchange(fleet, given, job, side.rules(several));
    outcome.nodes = names;
    outcome.fabric = several && given.text("path") == "fabric";
    record_outcome(outcome, record);
    record.condition("nonce", fmt::format("{:016x}", outcome.job.nonce));
    Subject all;
    if (several) all = {.kind = "group", .id = fmt::format("{}", fmt::join(names, ","))};
    side.conclude(record, fleet.ask({{"do", "facts"}}, collective::kHelloLimit), all);
    fleet.release();
  } else {
    const auto answers = fleet.follow();
    if (const auto facts = answers.find("facts"); facts != answers.end()) side.follow(record, facts->second);
  }
  ranks.finish(collective::kLeaveLimit);
  side.end(record);
}

}  // namespace assay::inference
