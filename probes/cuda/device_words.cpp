// device_words: words in device memory, cleared and copied back.
#include "probes/cuda/device_words.h"

#include <algorithm>
#include <numeric>
#include <span>

namespace assay::cuda {

DeviceWords::DeviceWords(std::size_t count) : memory_(Bytes{count * sizeof(std::uint64_t)}) {}

void DeviceWords::clear(const Stream& stream) { cuda::clear(memory_.data(), memory_.size(), stream); }

std::uint64_t DeviceWords::total(std::size_t first, std::size_t count) const {
  std::vector<std::uint64_t> words(std::min(count, memory_.size().count / sizeof(std::uint64_t) - first));
  copy_to_host(std::as_writable_bytes(std::span(words)), memory_.data() + first * sizeof(std::uint64_t));
  return std::accumulate(words.begin(), words.end(), std::uint64_t{0});
}

Device made_current(const Device& device) {
  use(device);
  return device;
}

}  // namespace assay::cuda
