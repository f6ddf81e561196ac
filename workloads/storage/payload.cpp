// payload: splitmix64 in counter form.
#include "workloads/storage/payload.h"

#include <cerrno>
#include <cstring>
#include <system_error>

#include <sys/random.h>

namespace assay {
namespace {

constexpr std::uint64_t kGamma = 0x9e3779b97f4a7c15;  // splitmix64's increment, the odd fraction of the golden ratio
constexpr std::size_t kWord = sizeof(std::uint64_t);

constexpr std::uint64_t mix(std::uint64_t state) {
  state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9;
  state = (state ^ (state >> 27)) * 0x94d049bb133111eb;
  return state ^ (state >> 31);
}
static_assert(mix(kGamma) == 0xe220a8397b1dcdaf);  // the first output of splitmix64 from seed 0

constexpr std::uint64_t seed_of(const PayloadKey& key) {
  return mix(mix(mix(key.nonce + kGamma) + key.rank * kGamma) + key.step * kGamma);
}

constexpr std::uint64_t word_of(std::uint64_t seed, std::uint64_t index) { return mix(seed + (index + 1) * kGamma); }

}  // namespace

std::uint64_t fresh_payload_nonce() {
  std::uint64_t nonce = 0;
  if (getrandom(&nonce, sizeof nonce, 0) != sizeof nonce)  // so few bytes come whole (getrandom(2))
    throw std::system_error(errno, std::generic_category(), "getrandom");
  return nonce;
}

void fill_payload(const PayloadKey& key, std::uint64_t offset, std::span<std::byte> out) {
  const std::uint64_t seed = seed_of(key);
  const std::uint64_t first = offset / kWord;
  for (std::size_t i = 0; i < out.size() / kWord; ++i) {
    const std::uint64_t word = word_of(seed, first + i);
    std::memcpy(out.data() + i * kWord, &word, kWord);
  }
}

std::uint64_t payload_mismatches(const PayloadKey& key, std::uint64_t offset, std::span<const std::byte> found) {
  const std::uint64_t seed = seed_of(key);
  const std::uint64_t first = offset / kWord;
  std::uint64_t wrong = 0;
  for (std::size_t i = 0; i < found.size() / kWord; ++i) {
    const std::uint64_t word = word_of(seed, first + i);
    if (std::memcmp(found.data() + i * kWord, &word, kWord) == 0) continue;
    std::byte expected[kWord];
    std::memcpy(expected, &word, kWord);
    for (std::size_t b = 0; b < kWord; ++b) wrong += found[i * kWord + b] != expected[b] ? 1U : 0U;
  }
  return wrong;
}

}  // namespace assay
