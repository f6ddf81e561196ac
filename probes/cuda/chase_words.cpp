// chase_words: the host's cycle of pointers, written as offsets that mean the same at every address.
#include "probes/cuda/chase_words.h"

#include <stdexcept>

#include "probes/host/memory_walk.h"

namespace assay::cuda {

std::vector<std::uint64_t> chase_words(std::size_t places, std::uint64_t seed) {
  std::vector<host::Link> links(places);
  host::make_cycle(links, seed);
  constexpr std::size_t kLineWords = kChaseLine / sizeof(std::uint64_t);
  std::vector<std::uint64_t> words(places * kLineWords);
  for (std::size_t i = 0; i < places; ++i) {
    words[i * kLineWords] = static_cast<std::uint64_t>(links[i].next - links.data()) * kChaseLine;
  }
  return words;
}

std::uint64_t chase_end(std::span<const std::uint64_t> words, std::uint64_t from, std::uint64_t steps) {
  for (std::uint64_t i = 0; i < steps; ++i) {
    const std::uint64_t word = from / sizeof(std::uint64_t);
    if (word >= words.size()) throw std::out_of_range("the chase leads out of its memory");
    from = words[word];
  }
  return from;
}

}  // namespace assay::cuda
