// part_pairs: the parts at fault among those of several nodes that were measured as one, such as the GPUs of a rack.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "orchestrator/judge/evidence/journal.h"
#include "orchestrator/judge/verdict.h"
#include "orchestrator/plan/plan.h"

namespace assay::judge {

/// Names of the site's nodes by the names that their machines have, as agents report them: a probe knows these. Empty
/// for a name that several machines have.
using NodesByHost = std::map<std::string, std::string>;
NodesByHost nodes_by_host(const Journal& journal);

/// The findings on each step of several nodes whose results are of parts of them, "host/part", in the plan's order.
/// Pairs of parts, "host/part>host/part", accuse parts as PairMatrix::accuse() says, each direction an end of its own;
/// a part whose own count of faults misses its limit is accused by that. If all parts of a node are accused by their
/// pairs, two at least, it is the node: a cause common to its parts cannot be distinguished from all of them. Neither
/// can a part from its only link, nor a switch that all pairs cross from any other cause common to all. A host that is
/// not among `hosts` is taken for the name of a node.
std::vector<Localised> localise_parts(const plan::Plan& plan, const Results& results, const NodesByHost& hosts = {});

}  // namespace assay::judge
