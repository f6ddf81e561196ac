// part_pairs: the parts at fault among those of several nodes that were measured as one, such as the GPUs of a rack.
#pragma once

#include <vector>

#include "orchestrator/judge/verdict.h"
#include "orchestrator/plan/plan.h"

namespace assay::judge {

/// The findings on each step of several nodes whose results are of parts of them, "node/part", in the plan's order.
/// Pairs of parts, "node/part>node/part", accuse parts as PairMatrix::accuse() says, each direction an end of its own;
/// a part whose own count of faults misses its limit is accused by that alone. Where all parts of a node are accused by
/// their pairs, two at least, it is the node: what its parts have in common cannot be distinguished from all of them.
/// Neither can a part from its only link, nor what all pairs cross from anything else that is common to all.
std::vector<Localised> localise_parts(const plan::Plan& plan, const Results& results);

}  // namespace assay::judge
