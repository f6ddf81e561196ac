// pairs: the nodes or pairs at fault, by the planned pairs themselves: a node that is short with most of its partners,
// or a pair that is short while both of it are good with others.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "orchestrator/judge/locate/part_pairs.h"
#include "orchestrator/judge/verdict.h"
#include "orchestrator/plan/plan.h"

namespace assay::judge {

/// The findings by the pairs of each figure, in the profile's order; those all of whose pairs are good are left out.
/// Two requirements whose metrics are the two directions of one figure are looked at together: a node is then accused
/// by the pairs in which it sends, or by those in which it receives. A node is accused as PairMatrix::accuse() says;
/// by a required figure, it also explains pairs short with it by other figures of the same rail, which then accuse
/// neither a pair nor its partner. A node accused by an advisory figure explains nothing of others. Pairs that miss
/// their limit within the guard band support an accusation and make none. No extra test is made: a pair is a test of
/// two nodes already, and its attempts are its controls. A pair that broke is left out if one of its nodes is among
/// `lost`: that node is known to be gone. Last the findings of localise_parts(), which
/// `hosts` is for.
std::vector<Localised> localise_pairs(const plan::Plan& plan, const Results& results,
                                      const std::set<std::string>& lost = {}, const NodesByHost& hosts = {});

}  // namespace assay::judge
