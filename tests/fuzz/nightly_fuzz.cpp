// The documents of nightly sweeps on hostile bytes: every reader sees every input, and what is read can be written
// again.
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "orchestrator/drift/policy.h"
#include "orchestrator/drift/report.h"
#include "orchestrator/rehearse/nights.h"
#include "orchestrator/sweep/ledger.h"
#include "orchestrator/sweep/sweep_file.h"
#include "tests/fuzz/good_error.h"

namespace {

using namespace assay;

/// What `read` accepts, `write` writes, and that is read again.
template <class Read, class Write>
void round_trip(std::string_view text, const Read& read, const Write& write) {
  const auto document = read(text, "fuzz");
  if (is_good(document) && !read(write(*document), "fuzz")) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  round_trip(text, drift::read_policy, drift::policy_text);
  round_trip(text, drift::read_report, drift::report_text);
  round_trip(text, sweep::read_due, sweep::due_text);
  round_trip(text, sweep::read_sweep, sweep::sweep_text);
  round_trip(text, sweep::read_visit, sweep::visit_text);
  round_trip(text, sweep::read_pair, sweep::pair_text);
  (void)is_good(rehearse::read_night_faults(text, "fuzz"));
  (void)is_good(sweep::read_ledger({std::string(text.substr(0, text.find('\n')))}, "fuzz"));
  return 0;
}
