// listed_parts: the parts of a node that a record lists, held against those of which there are figures and against the
// number in the site.
#pragma once

#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "orchestrator/judge/evidence/evidence.h"
#include "orchestrator/judge/verdict.h"
#include "orchestrator/plan/plan.h"

namespace assay::judge {

/// Kinds of parts in the site, by the metric of an inventory that counts them.
inline constexpr std::pair<std::string_view, std::string_view> kPartCounts[] = {
    {"nics_up", "nic"}, {"drives_total", "drive"}, {"gpus_total", "gpu"}};

/// Collects the parts that probes list, whether they answer or not: every GPU of a record with gpus_listed, every drive
/// of one with the figure drives; and the numbers of network ports with a link, drives and GPUs in an inventory.
class ListedParts {
 public:
  /// Looks at the records of one step.
  void look(const plan::Step& step, const StepEvidence& found);
  /// Looks at what `later` looked at in other steps.
  void look(ListedParts&& later);

  /// A requirement of parts that has a result for some listed parts of a node and not for all of them gets one more, of
  /// the node, which is not measured and names the others; where there is one that counts them, it names them. Held are
  /// names of one kind only: MIG instances are no GPUs of the list. Not held are a choice of devices by a parameter,
  /// and what need not be reported (when_told). Where the profile has no number for a kind, a node of which an
  /// inventory counted fewer than its `parts` in the site is not measured either, also by an advisory requirement of
  /// that step.
  void hold(const plan::Plan& plan, Results& results) const;

 private:
  using Parts = std::map<std::string, std::string>;  ///< by id, the probe that lists it
  /// The lowest number that an inventory counted, and its step.
  struct Count {
    double lowest = std::numeric_limits<double>::infinity();
    std::string step = {};
  };
  std::map<std::pair<std::string, std::string>, Parts> of_node_;  ///< by node and kind
  std::map<std::pair<std::string, std::string>, Count> counted_;  ///< alike
  void count(const plan::Step& step, const Record& record);
  /// Why a node has fewer parts than the site says, by the place in `results` of a result of the step that counted
  /// them.
  [[nodiscard]] std::map<std::size_t, std::string> fewer_than_said(const plan::Plan& plan,
                                                                   const Results& results) const;
  [[nodiscard]] std::string missing(const std::string& node, const std::string& kind, const Results& results,
                                    std::size_t begin, std::size_t end) const;
};

}  // namespace assay::judge
