// suggest: the nearest known name to a misspelt one.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace assay {

/// "did you mean 'nvidia-h200-one' or 'nvidia-h200-sxm'?" when up to three names begin with four letters or more that
/// were typed, "did you mean 'host_gemm'?" when a name within a third of the word's length in edits exists, else "known
/// are: …" with up to twelve of `names`. For the hint of an error.
std::string suggestion(std::string_view wrong, std::span<const std::string> names);

}  // namespace assay
