// pool: the attempts of a step, sorted by the subjects that a requirement judges.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "orchestrator/judge/cells/conditions.h"
#include "orchestrator/judge/evidence/evidence.h"
#include "orchestrator/judge/verdict.h"
#include "orchestrator/plan/plan.h"

namespace assay::judge {

/// Measurements of one subject in the attempts of a step; of a demand there are none, and the records count.
/// Points into the StepEvidence that it was made from.
struct Pool {
  std::vector<double> samples;               ///< of all attempts
  std::vector<const Measurement*> measured;  ///< one of each attempt, in their order
  std::vector<const Measurement*> parts;     ///< the parts joined into these, each with its coordinates
  std::vector<const Record*> records;        ///< that they are in
  SharedList<const Record*> others;          ///< those of the other ranks
  std::vector<std::size_t> attempts;         ///< indices into the step's evidence
  std::deque<Measurement> joined;            ///< what `measured` points to where several measurements count as one
  std::set<int> ranks;                       ///< whose records `parts` are in
  SharedList<std::string> evidence;          ///< paths of the files of these ranks in all attempts of the step
};

/// The pools of every subject of `requirement`, on a metric of `probe`, in `step`. A node is judged by records of
/// itself. With "every" the samples of all coordinates are joined. A metric of kind fault counts from any rank: a fault
/// found by another rank is joined to its subject's, or if ranks work together to the common one.
std::map<Subject, Pool> pooled(const StepEvidence& step, const plan::Requirement& requirement,
                               const Description& probe);

/// Where the parts of `pool` miss `limit`, a share of `reference`, each worst first: "Missed at class hang (2), class
/// exit (1)". At most three are named. Empty if `requirement` does not judge every coordinate, or if none misses it.
std::string places_missed(const Pool& pool, const plan::Requirement& requirement, double reference);

/// The kind of the subjects that `step` measured what `requirement` judges of, if it is not the kind that it judges;
/// empty if there is none.
std::string other_kind(const StepEvidence& step, const plan::Requirement& requirement);

/// A pool without the attempts whose surroundings were not those that the requirement demands, and these. Extremes are
/// judged over all attempts, since an error that was seen has happened; they only do not count as attempts made.
struct FitPool {
  Pool pool;
  std::vector<SetAside> set_aside;
  std::size_t attempts = 0;  ///< that met the demands on the surroundings
};

/// Parts `pool`, of `subject` in `step` with the evidence `found`.
FitPool fit_part(Demands& demands, const plan::Step& step, const plan::Requirement& requirement,
                 const Description& probe, const Subject& subject, const StepEvidence& found, const Pool& pool);

/// Why a cell with these attempts cannot be judged: fewer than were planned of it, too few samples in one, or a number
/// below 0, which no count, rate or time can be. Nothing if it can.
struct Unfit {
  Outcome outcome = Outcome::inconclusive;
  std::string reason;
};
std::optional<Unfit> unfit(const plan::Step& step, const plan::Requirement& requirement, const FitPool& fit,
                           const StepEvidence& found);

/// The attempts that `requirement` asks of `step` when its second stage was asked for: after a load all of the step's,
/// because each load may have left another state. Attempts that a lost node did
/// not make in the first stage are not made up for in the second one, as long as there are enough of them in all.
int due_attempts(const plan::Requirement& requirement, const plan::Step& step, const StepEvidence& made);

}  // namespace assay::judge
