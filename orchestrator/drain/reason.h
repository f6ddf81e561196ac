// reason: the text that a drained node carries, by which assay knows its own drains.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "orchestrator/drift/night.h"

namespace assay::drain {

/// "assay:host_gemm.rate:0123456789ab:20260105".
struct Reason {
  std::string prefix, check, flag;
  drift::Date date = {};
  friend bool operator==(const Reason&, const Reason&) = default;
};

/// The text of `reason`; characters of the check other than [A-Za-z0-9._-] become '-', and it is cut at 60.
std::string reason_text(const Reason& reason);

/// The reason that reason_text wrote with this prefix; nothing for any other text, so that a text to which a person
/// added a word is not assay's own.
std::optional<Reason> reason_from(std::string_view text, std::string_view prefix);

}  // namespace assay::drain
