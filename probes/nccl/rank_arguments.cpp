// rank_arguments: how a leader passes a rank its place.
#include <unistd.h>

#include "probes/nccl/rank_process.h"

namespace assay::nccl {

std::vector<std::string> rank_arguments(const std::string& program, const RankPlace& place) {
  return {program,
          "--local-rank",
          std::to_string(getpid()),
          std::to_string(place.rank),
          std::to_string(place.ranks),
          place.gpu,
          place.operation,
          place.type};
}

}  // namespace assay::nccl
