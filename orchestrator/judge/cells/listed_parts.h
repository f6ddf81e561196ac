// listed_parts: the parts of a node that a record lists, held against those of which there are figures and against
// numbers and names in the site.
#pragma once

#include <limits>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "orchestrator/judge/evidence/evidence.h"
#include "orchestrator/judge/verdict.h"
#include "orchestrator/plan/plan.h"

namespace assay::judge {

/// Kinds of parts in the site, by the metric of an inventory that counts them.
inline constexpr std::pair<std::string_view, std::string_view> kPartCounts[] = {
    {"nics_up", "nic"}, {"drives_total", "drive"}, {"gpus_total", "gpu"}, {"gpu_instances", "gpu_instance"}};

/// The kind of part of which `description`'s records list all, besides those of kPartCounts; empty if of none.
std::string_view listed_kind(const Description& description);

/// Collects the parts that probes list, whether they answer or not: every GPU of a record with gpus_listed, every drive
/// of one with the figure drives; the numbers of network ports with a link, drives, GPUs and their instances in an
/// inventory; the parts that the site names and that such a record lacks; and partitioned GPUs (MIG).
class ListedParts {
 public:
  /// Looks at the records of one step.
  void look(const plan::Plan& plan, const plan::Step& step, const StepEvidence& found);
  /// Looks at what `later` looked at in other steps.
  void look(ListedParts&& later);

  /// A requirement of parts that has a result for some listed parts of a node and not for all of them gets one more, of
  /// the node, which is not measured and names the others; where there is one that counts them, it names them. Held are
  /// names of one kind only: MIG instances are no GPUs of the list. Not held are a choice of devices by a parameter,
  /// and what need not be reported (when_told). Where the profile has no number for a kind, a node of which an
  /// inventory counted fewer than its `parts` in the site, or another number of instances, is not measured either,
  /// also by an advisory requirement of that step. Nor is, by any profile, one that lacks a part by the name in the
  /// site, whose GPUs are partitioned where profile or site state GPUs and the site no instances, or the other way
  /// round.
  void hold(const plan::Plan& plan, Results& results) const;

 private:
  using Parts = std::map<std::string, std::string>;  ///< by id, the probe that lists it
  /// The parts in records of one step: the lowest number, the highest, the names of the
  /// site that are missing and the GPUs that are partitioned.
  struct Count {
    double lowest = std::numeric_limits<double>::infinity(), highest = 0;
    std::string step = {};
    std::set<std::string> absent = {}, partitioned = {};
    bool tells_mode = false;  ///< a GPU reports its mode
  };
  std::map<std::pair<std::string, std::string>, Parts> of_node_;  ///< by node and kind
  std::map<std::pair<std::string, std::string>, Count> counted_;  ///< alike
  void count(const site::Node& node, const plan::Step& step, const Record& record);
  /// Why the parts of a node are not those of the site, by the place in `results` of a result of the step that showed
  /// it.
  [[nodiscard]] std::map<std::size_t, std::string> unlike_site(const plan::Plan& plan, const Results& results) const;
  [[nodiscard]] std::string missing(const std::string& node, const std::string& kind, const Results& results,
                                    std::size_t begin, std::size_t end) const;
};

}  // namespace assay::judge
