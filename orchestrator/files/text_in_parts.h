// text_in_parts: a long text that several threads make.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>

#include "orchestrator/files/atomic_file.h"
#include "orchestrator/files/in_parallel.h"

namespace assay::files {

/// Hands over what `add(i, text)` appends to a text for each `i` below `count`, in their order. Several threads make
/// it, some elements at a time, so that never all of it is in memory.
template <class Add>
void write_in_parts(std::size_t count, const TextSink& sink, const Add& add) {
  constexpr std::size_t kOfPart = 64, kParts = 32;
  for (std::size_t first = 0; first < count; first += kOfPart * kParts) {
    std::array<std::string, kParts> texts;
    const std::size_t parts = std::min(kParts, (count - first + kOfPart - 1) / kOfPart);
    in_parallel(parts, usual_threads(), [&](unsigned, std::size_t part) {
      const std::size_t begin = first + part * kOfPart;
      for (std::size_t i = begin; i < std::min(begin + kOfPart, count); ++i) add(i, texts[part]);
    });
    for (const auto& text : texts) sink(text);
  }
}

}  // namespace assay::files
