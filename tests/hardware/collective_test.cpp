// hardware_collective: nccl_collective on real GPUs keeps its contract; where there is one GPU, one rank alone goes
// through every request, so that NCCL, kernels and timing are exercised there, too.
#include <algorithm>
#include <cmath>

#include <unistd.h>

#include <nlohmann/json.hpp>

#include "probes/collective/local_ranks.h"
#include "probes/collective/operation.h"
#include "probes/nccl/rank_process.h"
#include "tests/hardware/hardware_test.h"

namespace assay {
namespace {

using nlohmann::json;

constexpr const char* kOperationWords[] = {"all_reduce", "all_gather", "reduce_scatter", "all_to_all",
                                           "broadcast",  "scatter",    "send_recv"};

void test_probe(const std::string& probe, Claims& claims) {
  for (const std::string operation : kOperationWords) {
    const auto record = claims.measured(probe, {"--quick", "--operation", operation});
    if (!record) return;  // what one operation lacks, all lack
    const auto mismatches = all_samples(*record, "mismatches");
    claims.expect(!mismatches.empty() && std::ranges::all_of(mismatches, [](double count) { return count == 0; }),
                  operation + ": every element is right");
    const auto rates = all_samples(*record, "busbw");
    claims.expect(!rates.empty() && std::ranges::all_of(rates, [](double rate) { return rate > 0 && rate < 2e13; }),
                  operation + ": bus bandwidth is positive and below 20 TB/s");
    claims.expect(std::ranges::any_of(record->conditions, [](const auto& c) { return c.name == "transport"; }),
                  operation + ": the transport is known");
  }
}

/// One rank alone: nothing of a fabric, but every call that a rank makes.
void test_rank(const std::string& probe, const std::string& operation, const std::string& type, Claims& claims) {
  const nccl::RankPlace place{.rank = 0, .ranks = 1, .gpu = "0", .operation = operation, .type = type};
  std::vector<std::string> environment;
  for (char** variable = environ; *variable != nullptr; ++variable) environment.emplace_back(*variable);
  environment.insert(environment.end(), {"NCCL_DEBUG=INFO", "NCCL_DEBUG_SUBSYS=INIT,TUNING"});
  collective::LocalRanks ranks({{.path = probe,
                                 .arguments = nccl::rank_arguments("nccl_collective", place),
                                 .environment = environment,
                                 .title = "the rank"}});
  const auto ask = [&](const json& request) {
    constexpr Seconds kPatient = {120};  // a bound; the first request makes a context
    const json answer = json::parse(ranks.ask(request.dump(), kPatient).front());
    claims.expect(!answer.contains("error"), operation + " of " + type + ", " + request.at("do").get<std::string>() +
                                                 ": " + answer.value("error", "done"));
    return answer;
  };
  claims.expect(ask({{"do", "hello"}}).value("free", 0.0) > 0, "there is free memory");
  const json id = ask({{"do", "introduce"}});
  if (!id.contains("word")) return;
  (void)ask({{"do", "enter"}, {"words", {id["word"]}}});  // its claim is that there is no error
  constexpr std::int64_t kCapacity = 64 << 20;
  (void)ask({{"do", "allocate"}, {"sent", kCapacity}, {"received", kCapacity}});  // the same
  std::int64_t number = 0;
  for (const std::int64_t size : {std::int64_t{64}, std::int64_t{1 << 20}, kCapacity}) {
    claims.expect(ask({{"do", "check"}, {"size", size}, {"number", number++}}).value("mismatches", -1.0) == 0,
                  "every element is right");
    const json timed = ask({{"do", "time"}, {"size", size}, {"lead", 1}, {"counted", 5}, {"number", number}});
    number += 6;
    const auto times = timed.value("times", std::vector<double>{});
    claims.expect(times.size() == 5 && std::ranges::all_of(times, [](double s) { return s > 0 && s < 10; }),
                  "five times are positive and below 10 s");
  }
  const json facts = ask({{"do", "facts"}});
  claims.expect(facts.contains("transports"), "the log was read");
  claims.expect(facts.value("launch_excluded", false), "the gate held until all was enqueued");
  ranks.finish({30});
}

void test(const std::string& folder, Claims& claims) {
  const std::string probe = folder + "/nccl_collective";
  test_probe(probe, claims);
  const auto record = record_of(probe, {"--quick"});
  if (record.end.status == Status::skip && !record.end.reason.starts_with("one GPU")) return;
  for (const std::string operation : kOperationWords) test_rank(probe, operation, "fp32", claims);
  for (const std::string type : {"fp64", "fp16", "bf16"}) test_rank(probe, "all_reduce", type, claims);
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) { return assay::hardware_main(argc, argv, assay::test); }
