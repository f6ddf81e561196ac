// condition_words: what people read of a demanded condition that is not met: what was seen, what is allowed, what to
// do.
#pragma once

#include <string>
#include <string_view>

#include "orchestrator/judge/verdict.h"
#include "orchestrator/plan/profile.h"

namespace assay::judge {

/// One sentence: "15.79 % of the time a thread was off its CPU, at most 10 % is allowed: other work ran; stop it and
/// run again." `seen` is what was seen of `demand`, which is not met; `meaning` is what the probe says of the
/// condition, for conditions without words of their own. Numbers have at most four significant digits.
std::string condition_sentence(const plan::RequiredCondition& demand, const ConditionSeen& seen,
                               std::string_view meaning);

/// Whether the condition of this name has words of its own, with what to do.
bool has_condition_words(std::string_view name);

}  // namespace assay::judge
