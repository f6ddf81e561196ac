// detection [TRIALS [PASSES_AN_HOUR]]: what share of the published classes of faults each check of the GPU probes
// finds. Faults are put into the words between what was written and the check, and the checks are the probes' own
// functions. Prints the tables of docs/PERFORMANCE.md. Needs no GPU.
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "probes/cuda/gemm_check.h"
#include "probes/cuda/payload.h"
#include "probes/cuda/quantise.h"
#include "probes/cuda/stream_values.h"
#include "probes/cuda/walk_errors.h"
#include "probes/cuda/whole.h"
#include "tests/unit/cuda/faults.h"

namespace assay::cuda {
namespace {

using Words = std::vector<std::uint64_t>;
using Flip = std::function<void(std::span<std::uint64_t>, Random&)>;

constexpr std::uint64_t kWords = 8192;

const std::vector<std::pair<const char*, Flip>>& classes() {
  const auto of = [](FaultClass fault) {
    return [fault](std::span<std::uint64_t> words, Random& random) { put_fault(words, fault, random()); };
  };
  const auto highest = [](std::span<std::uint64_t> words, Random& random) {
    const std::uint64_t first = below(random, words.size() / 64) * 64 + below(random, 2);
    for (std::uint64_t lane = 0; lane < 32; ++lane) words[first + 2 * lane] ^= std::uint64_t{1} << 63;
  };
  static const std::vector<std::pair<const char*, Flip>> all = {{"single bit", of(FaultClass::single_bit)},
                                                                {"burst", of(FaultClass::burst)},
                                                                {"warp's lanes", of(FaultClass::warp_aligned)},
                                                                {"lanes, bit 63", highest}};
  return all;
}

/// Share of `trials` in which `finds` is true of a copy of `right` with a fault of the class.
double share(const Words& right, const Flip& flip, const std::function<bool(const Words&)>& finds, int trials) {
  Random random(1);
  int found = 0;
  for (int trial = 0; trial < trials; ++trial) {
    Words wrong = right;
    flip(wrong, random);
    found += finds(wrong) ? 1 : 0;
  }
  return static_cast<double>(found) / trials;
}

void row(const std::string& check, const Words& right, const std::function<bool(const Words&)>& finds, int trials) {
  std::string line = "| " + check + " |";
  for (const auto& [name, flip] : classes()) line += fmt::format(" {:.4g} |", share(right, flip, finds, trials));
  fmt::print("{}\n", line);
}

Words made(const std::function<std::uint64_t(std::uint64_t)>& word) {
  Words all(kWords);
  for (std::uint64_t i = 0; i < kWords; ++i) all[i] = word(i);
  return all;
}

std::uint64_t dot_word(HbmArray array, std::uint64_t i) {
  return std::bit_cast<std::uint64_t>(hbm_start_value(HbmKernel::dot, array, i));
}

/// The sums of a pass of dot as the kernel makes them, over `a` and right words of b.
Folded dot_of(const Words& a) {
  Folded all;
  for (std::uint64_t thread = 0; thread < kWords / 2 / kSumPiece; ++thread) {
    double sum = 0;
    std::uint64_t fold = 0;
    for (std::uint64_t place = 0; place < kSumPiece; ++place) {
      for (std::uint64_t i = 2 * sum_vector(thread, place); i < 2 * sum_vector(thread, place) + 2; ++i) {
        const std::uint64_t b = dot_word(HbmArray::b, i);
        sum += std::bit_cast<double>(a[i]) * std::bit_cast<double>(b);
        fold = turned(turned(fold, a[i]), b);
      }
    }
    const bool whole = sum > -0x1p63 && sum < 0x1p63;
    all.add({.sum = whole ? static_cast<std::uint64_t>(static_cast<std::int64_t>(sum)) : 0,
             .fold = fold_of_thread(fold, thread)});
  }
  return all;
}

/// The 64 bits of a result, as cuda_gemm's kernel sums them.
std::uint64_t result_sum(const Words& words) {
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < 2 * words.size(); ++i) sum += mixed(words[i / 2] >> (32 * (i % 2)) & 0xffffffffU, i);
  return sum;
}

void of_flips(int trials) {
  fmt::print("| check |");
  for (const auto& one : classes()) fmt::print(" {} |", one.first);
  fmt::print("\n|---|---|---|---|---|\n");
  const Words payload = made([](std::uint64_t i) { return payload_word(7, i); });
  const Folded right = folded(payload);
  row(
      "timed read, plain sum (revision 3)", payload, [&](const Words& w) { return folded(w).sum != right.sum; },
      trials);
  row(
      "timed read, sum and fold", payload, [&](const Words& w) { return folded(w) != right; }, trials);
  const Words a = made([](std::uint64_t i) { return dot_word(HbmArray::a, i); });
  const Folded dot = dot_of(a);
  row(
      "dot, plain sum (revision 3)", a, [&](const Words& w) { return dot_of(w).sum != dot.sum; }, trials);
  row(
      "dot, sum and fold", a, [&](const Words& w) { return dot_of(w) != dot; }, trials);
  row(
      "arrays after a kernel, bit by bit", a, [&](const Words& w) { return w != a; }, trials);
  row(
      "copies between GPUs, to and from hosts", payload, [](const Words& w) { return payload_mismatches(w, 7) != 0; },
      trials);
  const std::uint64_t sum = result_sum(payload);
  row(
      "results of products, 64-bit sum", payload, [&](const Words& w) { return result_sum(w) != sum; }, trials);
}

/// Share of walks of `passes` passes that find a bit which is stuck in `one_in` of the reads.
double stuck_share(std::uint64_t passes, double one_in, int trials) {
  Random random(1);
  std::bernoulli_distribution acts(1 / one_in);
  int found = 0;
  for (int trial = 0; trial < trials; ++trial) {
    FaultyMemory memory{.words = Words(64)};
    const std::uint64_t place = below(random, 64), bit = std::uint64_t{1} << below(random, 64);
    const bool one = below(random, 2) == 1;
    memory.read = [&](std::uint64_t i, std::uint64_t stored) {
      return i != place || !acts(random) ? stored : one ? stored | bit : stored & ~bit;
    };
    found += memory.walk(passes).empty() ? 0 : 1;
  }
  return static_cast<double>(found) / trials;
}

void of_stuck_bits(int trials, double passes_an_hour) {
  fmt::print("\n| bit stuck in | payload and complement | one pass of all patterns | an hour of {:g} passes |\n",
             passes_an_hour);
  fmt::print("|---|---|---|---|\n");
  for (const double one_in : {1.0, 10.0, 100.0, 1000.0}) {
    const double pass = stuck_share(1, one_in, trials);
    fmt::print("| every {:g}. read | {:.4g} | {:.4g} | {:.4g} |\n", one_in, stuck_share(0, one_in, trials), pass,
               1 - std::pow(1 - pass, passes_an_hour));
  }
}

/// Share of sampled elements that the tolerance finds when a bit of the stored result is turned.
double sampled_share(MiniFloat format, const Exactness& exactness, int trials) {
  constexpr std::size_t kTerms = 8192;
  Random random(1);
  std::normal_distribution<double> normal;
  int found = 0;
  for (int trial = 0; trial < trials; ++trial) {
    SampledProduct product{.k = kTerms, .a = {}, .b = {}, .d = {}};
    double sum = 0;
    for (std::size_t i = 0; i < kTerms; ++i) {
      product.a.push_back(decode(format, encode(format, static_cast<float>(normal(random)))));
      product.b.push_back(decode(format, encode(format, static_cast<float>(normal(random)))));
      sum += product.a.back() * product.b.back();
    }
    const std::uint32_t code = encode(kBf16, static_cast<float>(sum)) ^ (1U << below(random, 16));
    const bool number = (code & 0x7fffU) <= kBf16.largest;
    product.d = {number ? decode(kBf16, code) : std::nan("")};
    found += check_elements(product, exactness).wrong != 0 ? 1 : 0;
  }
  return static_cast<double>(found) / trials;
}

/// Share of lines of a whole product of `form` that are found wrong when bit `bit` of the factors of A is stuck at 0.
double factor_share(WholeForm form, int bit) {
  constexpr std::size_t kOrder = 128;
  const WholeNumbers numbers = form == WholeForm::small ? whole_numbers(kOrder, kOrder, kOrder, 7)
                                                        : wide_numbers(kOrder, kOrder, kOrder, 7, form, 8);
  Words terms;
  for (std::size_t term = 0; term < kOrder; ++term) terms.push_back(weighted_term(numbers, term));
  int found = 0;
  for (std::size_t line = 0; line < kOrder; ++line) {
    const auto result = [&](std::size_t column) {
      int sum = 0;
      for (std::size_t term = 0; term < kOrder; ++term) {
        const int a = whole_element(numbers, WholeStream::a, line, term);
        sum += (a < 0 ? -(-a & ~(1 << bit)) : a & ~(1 << bit)) * whole_element(numbers, WholeStream::b, column, term);
      }
      return static_cast<double>(sum);
    };
    found += whole_line_is_right(numbers, line, terms.data(), result) ? 0 : 1;
  }
  return static_cast<double>(found) / kOrder;
}

void of_products(int trials) {
  const double sampled = 4096.0 / (8192.0 * 8192.0);
  const double bf16 = sampled_share(kBf16, gemm_type("bf16").exactness, trials);
  const double fp8 = sampled_share(kE4m3, gemm_type("fp8_e4m3").exactness, trials);
  fmt::print("\n| bit of one bf16 result turned | bf16 factors | fp8_e4m3 factors |\n|---|---|---|\n");
  fmt::print("| in a sampled element | {:.4g} | {:.4g} |\n", bf16, fp8);
  fmt::print("| in any element of 8192 x 8192 | {:.2g} | {:.2g} |\n", bf16 * sampled, fp8 * sampled);
  fmt::print(
      "\n| bit of the factors of A stuck at 0 | small whole numbers (revision 4) | wide ones |\n|---|---|---|\n");
  for (const int bit : {0, 3, 6})
    fmt::print("| {} of 8 | {:.4g} | {:.4g} |\n", bit, factor_share(WholeForm::small, bit),
               factor_share(WholeForm::wide_a, bit));
}

}  // namespace
}  // namespace assay::cuda

int main(int argc, char** argv) {
  const int trials = argc > 1 ? std::stoi(argv[1]) : 2000;
  const double passes_an_hour = argc > 2 ? std::stod(argv[2]) : 450;
  assay::cuda::of_flips(trials);
  assay::cuda::of_stuck_bits(trials, passes_an_hour);
  assay::cuda::of_products(trials);
}
