// part_identities: parts that cannot be on two nodes at once.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "orchestrator/judge/cells/pool.h"
#include "orchestrator/judge/evidence/evidence.h"
#include "orchestrator/judge/verdict.h"
#include "orchestrator/plan/plan.h"

namespace assay::judge {

/// Whether a record is of a virtual machine: the serial numbers that it shows are its hypervisor's.
bool is_guest(const Record& record);
/// Whether a serial number can be one: makers write "To be filled by O.E.M.", "Not Specified", "0123456789" and zeros.
bool is_unique(const std::string& serial);
/// Whether the name of a GPU is that of one piece of hardware. NVIDIA and the runtime of AMD write "GPU-" and digits,
/// AMD SMI a UUID whose last group is of the chip's serial number, and zeros if it is not known.
bool is_gpu_uuid(const std::string& id);

/// How many different things of one kind `pools` are of: partitions and namespaces of one drive are one drive.
std::size_t different_parts(const std::map<Subject, Pool>& pools);

/// Collects globally unique identities from the records of single nodes: UUIDs of GPUs, serial numbers of their
/// boards, of NVMe drives and of the machine. Serial numbers that a guest shows are its hypervisor's, and those that
/// makers leave blank identify nothing: they do not count.
class PartIdentities {
 public:
  /// Looks at the records of one step.
  void look(const plan::Step& step, const StepEvidence& found);

  /// Looks at what `later` looked at, after all that this one has.
  void look(const PartIdentities& later);

  /// A part that two nodes show.
  struct Twins {
    std::string kind, identity, a, b;
  };
  /// The first of them in the order of kinds and identities; nothing if every part is on one node.
  [[nodiscard]] std::optional<Twins> twins() const;

  /// Every result of a node that shows the same part as another one becomes an error that names both and the part: one
  /// of the two was not measured.
  void refuse_twins(Results& results) const;

 private:
  void note(const std::pair<std::string, std::string>& part, const std::string& node);

  std::map<std::pair<std::string, std::string>, std::vector<std::string>> nodes_of_;  ///< kind and identity to nodes
};

}  // namespace assay::judge
