// how_many: numbers of things in sentences.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace assay {

/// "1 node", "2 nodes": `count` with `noun`, whose plural has an s.
inline std::string how_many(std::uint64_t count, std::string_view noun) {
  return std::to_string(count) + ' ' + std::string(noun) + (count == 1 ? "" : "s");
}

}  // namespace assay
