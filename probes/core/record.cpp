// record: the names of subjects and of states.
#include "probes/core/record.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace assay {

bool is_subject_kind(const std::string& kind) {
  constexpr std::array<std::string_view, 10> kKinds = {"node",  "cpu",  "dimm", "gpu",   "nic",
                                                       "drive", "rank", "pair", "group", "cluster"};
  return std::ranges::find(kKinds, kind) != kKinds.end();
}

const char* to_string(Status status) {
  switch (status) {
    case Status::complete:
      return "complete";
    case Status::skip:
      return "skip";
    case Status::error:
      return "error";
  }
  return "error";
}

}  // namespace assay
