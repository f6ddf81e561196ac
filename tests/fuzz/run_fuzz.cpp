// The readers of a run on hostile bytes: plan, journal and verdict. What is taken has one spelling, and facts of nodes
// are within their grammar.
#include <cstdint>
#include <cstdlib>

#include "orchestrator/judge/evidence/journal.h"
#include "orchestrator/judge/overall/verdict_table.h"
#include "orchestrator/judge/verdict.h"
#include "orchestrator/plan/plan.h"
#include "probes/core/host_facts.h"
#include "probes/core/text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace assay;
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  if (const auto plan = plan::read_plan(text, "fuzz"); plan && plan::plan_text(*plan) != text) std::abort();
  if (const auto journal = judge::read_journal(text, "fuzz")) {
    for (const auto& [node, facts] : journal->node_facts) {
      const auto values = values_from(facts);
      if (!values || problem_of_facts(*values)) std::abort();
    }
    for (const auto& attempt : journal->attempts) {
      if (attempt.number < 1) std::abort();
    }
  }
  if (const auto verdict = judge::read_verdict(text, "fuzz")) {
    if (judge::verdict_text(*verdict) != text) std::abort();
    const std::string table = judge::verdict_table(*verdict);
    if (has_controls(table) || harmless_page(table) != table) std::abort();
  }
  return 0;
}
