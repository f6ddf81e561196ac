// condition_words: the sentence for a demanded condition that is not met: value, bound, advice.
//
#pragma once

#include <string>
#include <string_view>

#include "orchestrator/judge/verdict.h"
#include "orchestrator/plan/profile.h"

namespace assay::judge {

/// One sentence: "15.79 % of the time a thread was off its CPU, at most 10 % is allowed: other work ran; stop it and
/// run again." `seen` is the value of `demand`, which is not met; `meaning` is the probe's for the condition, for
/// conditions without words of their own. Numbers have at most four significant digits.
std::string condition_sentence(const plan::RequiredCondition& demand, const ConditionSeen& seen,
                               std::string_view meaning);

/// Whether the condition of this name has words of its own, with advice.
bool has_condition_words(std::string_view name);

}  // namespace assay::judge
