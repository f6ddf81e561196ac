// payload: splitmix64 in counter form, with AVX2 where the processor has it.
#include "workloads/storage/shared/payload.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include <sys/random.h>

// The compiler makes a function once for each of these, and the program's loader selects by the processor: before
// ThreadSanitizer can be called.
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
#define ASSAY_FOR_EACH_PROCESSOR [[gnu::target_clones("avx2", "default")]]
#else
#define ASSAY_FOR_EACH_PROCESSOR
#endif

namespace assay::cluster_storage {
namespace {

constexpr std::size_t kWord = sizeof(std::uint64_t);
constexpr std::size_t kCompared = 512;  // words that are compared as one, and one by one only on a difference

/// Words `first` and on of the stream of `seed`.
ASSAY_FOR_EACH_PROCESSOR
void make_words(std::uint64_t seed, std::uint64_t first, std::byte* out, std::size_t words) {
  for (std::size_t i = 0; i < words; ++i) {
    const std::uint64_t word = payload_word(seed, first + i);
    std::memcpy(out + i * kWord, &word, kWord);
  }
}

/// The bits in which any of the words found differs from its own of the stream.
ASSAY_FOR_EACH_PROCESSOR
std::uint64_t difference(std::uint64_t seed, std::uint64_t first, const std::byte* found, std::size_t words) {
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < words; ++i) {
    std::uint64_t word = 0;
    std::memcpy(&word, found + i * kWord, kWord);
    bits |= word ^ payload_word(seed, first + i);
  }
  return bits;
}

}  // namespace

std::uint64_t fresh_payload_nonce() {
  std::uint64_t nonce = 0;
  if (getrandom(&nonce, sizeof nonce, 0) != sizeof nonce)  // so few bytes come whole (getrandom(2))
    throw std::system_error(errno, std::generic_category(), "getrandom");
  return nonce;
}

void fill_payload(const PayloadKey& key, std::uint64_t offset, std::span<std::byte> out) {
  make_words(payload_seed(key), offset / kWord, out.data(), out.size() / kWord);
}

std::uint64_t payload_mismatches(const PayloadKey& key, std::uint64_t offset, std::span<const std::byte> found) {
  const std::uint64_t seed = payload_seed(key);
  const std::uint64_t begin = offset / kWord;
  const std::size_t words = found.size() / kWord;
  std::uint64_t wrong = 0;
  for (std::size_t at = 0; at < words; at += kCompared) {
    const std::size_t some = std::min(kCompared, words - at);
    const auto* const bytes = found.data() + at * kWord;
    if (difference(seed, begin + at, bytes, some) == 0) continue;
    std::byte expected[kCompared * kWord];
    make_words(seed, begin + at, expected, some);
    for (std::size_t i = 0; i < some * kWord; ++i) wrong += bytes[i] != expected[i] ? 1U : 0U;
  }
  return wrong;
}

}  // namespace assay::cluster_storage
