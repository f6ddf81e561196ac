// rank_log: facts of a rank about NCCL: its log, the variables in force, and the ports that it names.
#pragma once

#include <nlohmann/json.hpp>

#include "probes/core/descriptor.h"

namespace assay::nccl {

/// NCCL's log in memory, which no other user can read and which needs no removal.
class RankLog {
 public:
  /// NCCL opens its log at the first thing it says, so this comes before the library.
  RankLog();
  /// The part of the answer to "facts" that follows from the log and the environment; see record_facts(), which also
  /// needs "library", "version", "buffers" and "launch_excluded".
  [[nodiscard]] nlohmann::json facts() const;

 private:
  Descriptor file_;
};

}  // namespace assay::nccl
