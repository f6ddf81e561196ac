// rank_check: the loops over host buffers; the arithmetic is in pattern.h.
#include "probes/gloo/rank_check.h"

#include <stdexcept>

namespace assay::gloo {
namespace {

/// Calls `work` with a null pointer to unsigned numbers as wide as the element.
template <class Work>
auto with_width(collective::Element element, Work work) {
  if (element == collective::Element::fp32) return work(static_cast<std::uint32_t*>(nullptr));
  if (element == collective::Element::fp64) return work(static_cast<std::uint64_t*>(nullptr));
  throw std::logic_error("hosts sum fp32 and fp64 only");
}

}  // namespace

void fill(std::byte* buffer, std::uint64_t count, collective::Element element, const collective::Pattern& pattern) {
  with_width(element, [&]<class Bits>(Bits*) {
    auto* const numbers = reinterpret_cast<Bits*>(buffer);
    for (std::uint64_t i = 0; i < count; ++i)
      numbers[i] = static_cast<Bits>(collective::bits_of(element, pattern, collective::sent(pattern, i)));
  });
}

std::uint64_t count_mismatches(const std::byte* buffer, std::uint64_t count, collective::Element element,
                               const collective::Pattern& pattern) {
  return with_width(element, [&]<class Bits>(Bits*) {
    const auto* const numbers = reinterpret_cast<const Bits*>(buffer);
    std::uint64_t wrong = 0;
    for (std::uint64_t i = 0; i < count; ++i)
      wrong += numbers[i] != collective::bits_of(element, pattern, collective::received(pattern, i)) ? 1 : 0;
    return wrong;
  });
}

}  // namespace assay::gloo
