// advice: what to do about what a run found, by the table of actions. It is derived when a verdict is shown: no
// verdict holds it, and nothing is judged by it.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "orchestrator/judge/evidence/evidence.h"
#include "orchestrator/judge/verdict.h"
#include "profiles/actions.h"

namespace assay::judge {

/// The advice for the results of one verdict.
struct Advices {
  std::unordered_map<const Result*, profiles::Advice> known;  ///< of results of which something is known
  std::string today;                                          ///< when the run ended, UTC

  /// What is shown behind `result`: what is known, or "not known" if it missed its limit; nothing if it asks for no
  /// action.
  [[nodiscard]] std::optional<profiles::Advice> of(const Result& result) const;
};

/// For each result of `verdict`: by its metric if it missed its limit, and by the conditions that it does not meet; the
/// most urgent counts. A rate of a virtual machine that missed its limit, of which nothing else is known, has advice
/// too. Records are read only where the table goes by another condition of theirs.
Advices advices_of(const plan::Plan& plan, const Journal& journal, const Verdict& verdict,
                   const EvidenceReader& evidence);

/// The advice for an accused culprit.
profiles::Advice advice_of(const Culprit& culprit);

/// One action and all that it is for.
struct ToDo {
  profiles::Advice advice;
  std::vector<std::string> findings;  ///< that ask for it, each once
  std::vector<std::string> subjects;  ///< "n01 gpu GPU-8f2…", "n01 (gpu: 8)", "pair n01 and n02", each once
};

/// What the required results and the searches for them ask for, as far as it is known: the most urgent action first,
/// then in the order of the verdict.
std::vector<ToDo> to_do(const Verdict& verdict, const Advices& advices);

/// "n01", "n01 gpu GPU-8f2…": where a result was measured.
std::string place_of(const Result& result);

}  // namespace assay::judge
