// judge: the judgement of the planned cells, as a pure function. The verdict of a run is judge_run (run_verdict.h).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "orchestrator/judge/evidence/evidence.h"
#include "orchestrator/judge/verdict.h"

namespace assay::judge {

// The order of refusals. A cell has the outcome and the reason of the first of these that holds; later ones are
// not looked at (judge.cpp, judge_cell() and open_cell()):
//   1. its attempts: one broke, or none left a record. A crash next to a good attempt is inconclusive.
//   2. its subjects: the record has the metric of another kind of subject (inconclusive) or of none (not measured;
//      unchecked where the requirement has `when_told` and the probe need not record it), or of more subjects than the
//      design has (error). Of the site's meters: no figure during the load (inconclusive).
// Then for each subject of the record:
//   3. its samples are unfit: too few attempts or samples in one, or a number below 0 (unfit() in pool.h).
//   4. too few samples for an interval of the statistic; not measured at the size demanded.
//   5. its reference: none, or 0.
//      Of a contrast both sides are looked at for 3 and 4; then too few pairs, or a figure of 0 (contrast.h).
//   6. fewer attempts than planned, or some without the figure. This replaces the outcome of 3 to 5.
// If none holds the cell waits until all cells are known (gathered.h). Then settle() (open_cell.cpp) sets its
// outcome in this order, each step replacing the result of the one before:
//   7. decide(): pass or fail against the limit. A number that is not finite is inconclusive, and ends here.
//   8. unsteady samples open a decided cell (note_findings()).
//   9. doubt makes a pass inconclusive: a fault that no requirement judges, a figure above the physical limit, a
//      promised rate of an emulated drive (conditions.h), a fleet with a common cause. A fail stays.
//      A contrast skips 8, and of 9 only faults count; the states recorded are looked at with 10.
//  10. a demanded condition that is not met makes pass and fail inconclusive.
// A requirement with a demand has no figure: of the above 1, 2 and 6 hold for it, and demand.h has its outcomes.
// Last come parts that were seen on two nodes (identities.h) and failures that chance explains (chance.h).

/// The results of every planned cell, and how far records are outside of their attempts.
struct JudgedCells {
  Results results;
  std::map<std::string, double> outside_s;  ///< by node: as StepEvidence has it, of all steps
};

/// Judges every planned cell, without the searches. Never passes by omission: no record, no metric, no condition, no
/// samples each have an outcome that is not pass. Extra tests of searches have no part in it.
JudgedCells judge_cells_and_clocks(const plan::Plan& plan, const Journal& journal, const EvidenceReader& evidence);

/// Only the results.
Results judge_cells(const plan::Plan& plan, const Journal& journal, const EvidenceReader& evidence);

/// The results by only the attempts of the first stage.
Results judge_first_stage(const plan::Plan& plan, const Journal& journal, const EvidenceReader& evidence);

/// Results of `cells`, all of one `step`, from a journal that needs only the step's attempts and the facts of its
/// nodes. A limit relative to the fleet's median stays inconclusive, because the fleet is not in it.
Results judge_step(const plan::Plan& plan, const plan::Step& step, const std::vector<plan::Cell>& cells,
                   const Journal& part, const EvidenceReader& evidence);

}  // namespace assay::judge
