// judged: what most tests of the judge judge.
#pragma once

#include <vector>

#include "orchestrator/judge/overall/limitations.h"
#include "orchestrator/judge/run_verdict.h"
#include "tests/unit/fixture.h"

namespace assay::judge::test {

inline constexpr const char* kAtLeast100 = R"({"limit": {"at_least": 100, "unit": "B/s"}})";
inline const std::vector<double> kSteady110(10, 110.0);

inline Verdict judged(const fixture::MemoryRun& run) {
  Verdict verdict = judge(run.plan, "digest", run.journal, run.reader());
  claim_less(run.plan, verdict);
  return verdict;
}
inline Result only(const fixture::MemoryRun& run) { return judged(run).results.at(0); }

}  // namespace assay::judge::test
