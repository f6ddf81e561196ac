// rank_check: the loops over host buffers; the arithmetic is in pattern.h.
#include "probes/gloo/rank_check.h"

#include <stdexcept>

namespace assay::gloo {
namespace {

/// Calls `work` with a null pointer of the element's type, which carries nothing but the type.
template <class Work>
auto with_type(collective::Element element, Work work) {
  if (element == collective::Element::fp32) return work(static_cast<float*>(nullptr));
  if (element == collective::Element::fp64) return work(static_cast<double*>(nullptr));
  throw std::logic_error("hosts sum fp32 and fp64 only");
}

}  // namespace

void fill(std::byte* buffer, std::uint64_t count, collective::Element element, const collective::Pattern& pattern) {
  with_type(element, [&]<class Number>(Number*) {
    auto* const numbers = reinterpret_cast<collective::BitsOf<Number>*>(buffer);
    for (std::uint64_t i = 0; i < count; ++i)
      numbers[i] = collective::bits_of<Number>(pattern, collective::sent(pattern, i));
  });
}

std::uint64_t count_mismatches(const std::byte* buffer, std::uint64_t count, collective::Element element,
                               const collective::Pattern& pattern) {
  return with_type(element, [&]<class Number>(Number*) {
    const auto* const numbers = reinterpret_cast<const collective::BitsOf<Number>*>(buffer);
    std::uint64_t wrong = 0;
    for (std::uint64_t i = 0; i < count; ++i)
      wrong += numbers[i] != collective::bits_of<Number>(pattern, collective::received(pattern, i)) ? 1 : 0;
    return wrong;
  });
}

}  // namespace assay::gloo
