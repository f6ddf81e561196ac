// hardware_detection: faults of the published classes, put into the memory of a real GPU between what was written and
// what checks it, are found by the checks of the GPU probes; and nothing is found where nothing was put.
#include <functional>

#include "probes/core/probe.h"
#include "probes/cuda/device.h"
#include "probes/cuda/device_words.h"
#include "probes/cuda/gemm_operands.h"
#include "probes/cuda/memory_kernels.h"
#include "probes/cuda/walk_errors.h"
#include "tests/hardware/hardware_test.h"
#include "tests/unit/cuda/faults.h"

namespace assay::cuda {
namespace {

constexpr Bytes kSize = {std::uint64_t{64} << 20};
constexpr std::uint64_t kWords = kSize.count / sizeof(std::uint64_t), kSeed = 7, kRoom = 4096;
constexpr std::size_t kFaults = 20;  // of each class

/// Changes the 8 KiB at a random place of `memory` on the host, between earlier and later work of `stream`.
void change(const DeviceBuffer& memory, Random& random, const Stream& stream,
            const std::function<void(std::span<std::uint64_t>)>& how) {
  std::vector<std::uint64_t> words(kFaultWords);
  std::byte* const place = memory.data() + below(random, kWords / words.size()) * words.size() * sizeof(std::uint64_t);
  const Bytes size = {words.size() * sizeof(std::uint64_t)};
  copy_down(reinterpret_cast<std::byte*>(words.data()), place, size, stream);
  wait(stream);
  how(words);
  copy_up(place, reinterpret_cast<const std::byte*>(words.data()), size, stream);
  wait(stream);
}

/// What the checks of one memory with the payload say.
struct Verdicts {
  bool sum = false, words = false, step = false;
  WalkClasses classes;
};

Verdicts checked(const DeviceBuffer& memory, const Stream& stream) {
  DeviceWords found(kSumWords), right(kSumWords), wrong(2);
  const DeviceBuffer errors({kRoom * sizeof(WalkError)});
  for (DeviceWords* words : {&found, &right, &wrong}) words->clear(stream);
  enqueue_sum(memory.data(), kSize, found.data(), stream);
  enqueue_right_sum(kSize, kSeed, right.data(), stream);
  enqueue_payload_check(memory.data(), kSize, kSeed, wrong.data(), stream);
  WalkStep step = walk_step(1, 1, 0, kSize.count);  // compares, writes nothing
  step.expected.seed = kSeed;
  enqueue_walk(memory.data(), kSize, step, {.wrong = wrong.data() + 1, .errors = errors.as<WalkError>(), .room = kRoom},
               stream);
  wait(stream);
  std::vector<WalkError> noted(std::min(wrong.total(1, 1), kRoom));
  if (!noted.empty()) copy_to_host(std::as_writable_bytes(std::span(noted)), errors.data());
  return {
      .sum = found.total(0, kSumSlots) != right.total(0, kSumSlots) || found.total(kSumSlots) != right.total(kSumSlots),
      .words = wrong.total(0, 1) != 0,
      .step = wrong.total(1, 1) != 0,
      .classes = classes_of(noted)};
}

void test_memory(Claims& claims) {
  const Stream stream = make_stream();
  const DeviceBuffer memory(kSize);
  Random random(1);
  const auto refill = [&] { enqueue_fill(memory.data(), kSize, kSeed, stream), wait(stream); };
  refill();
  DeviceWords right(kSumWords);
  right.clear(stream);
  enqueue_right_sum(kSize, kSeed, right.data(), stream);
  wait(stream);
  claims.expect(right.total(0, kSumSlots) == payload_sum(kSeed, kWords), "the GPU's own right sum is the host's");
  const Verdicts clean = checked(memory, stream);
  claims.expect(!clean.sum && !clean.words && !clean.step, "right memory is right in every check");
  const std::pair<const char*, FaultClass> classes[] = {{"a single bit", FaultClass::single_bit},
                                                        {"a burst", FaultClass::burst},
                                                        {"the lanes of a warp", FaultClass::warp_aligned}};
  for (const auto& [name, fault] : classes) {
    std::size_t sums = 0, words = 0, steps = 0;
    WalkClasses seen;
    for (std::size_t i = 0; i < kFaults; ++i) {
      refill();
      change(memory, random, stream, [&](std::span<std::uint64_t> piece) { put_fault(piece, fault, i); });
      const Verdicts found = checked(memory, stream);
      sums += found.sum ? 1 : 0, words += found.words ? 1 : 0, steps += found.step ? 1 : 0;
      seen = found.classes;
    }
    const std::string what = std::string(name) + " is found ";
    claims.expect(sums == kFaults, what + "by the sums of a timed read");
    claims.expect(words == kFaults, what + "by the check of a payload");
    claims.expect(steps == kFaults, what + "by a step of the walk");
    std::cout << "      " << words_of(seen, 1, 1) << '\n';
  }
}

/// A stuck bit, played by the host between the steps of a walk.
void test_stuck_bit(Claims& claims) {
  const Stream stream = make_stream();
  const DeviceBuffer memory(kSize), errors({kRoom * sizeof(WalkError)});
  DeviceWords wrong(1);
  wrong.clear(stream);
  enqueue_fill(memory.data(), kSize, walk_words(0, 0, kSize.count).seed, stream);
  const std::uint64_t end = walk_contents(1);
  for (std::uint64_t number = 1; number <= end; ++number) {
    Random same_place(5);
    change(memory, same_place, stream, [](std::span<std::uint64_t> words) { words[77] |= std::uint64_t{1} << 17; });
    enqueue_walk(memory.data(), kSize, walk_step(number, end, 0, kSize.count),
                 {.wrong = wrong.data(), .errors = errors.as<WalkError>(), .room = kRoom}, stream);
  }
  wait(stream);
  std::vector<WalkError> noted(std::min(wrong.total(), kRoom));
  if (!noted.empty()) copy_to_host(std::as_writable_bytes(std::span(noted)), errors.data());
  claims.expect(classes_of(noted).stuck == 1, "a stuck bit is one stuck place of a walk");
}

void test_results(const Device& device, Claims& claims) {
  const Stream stream = make_stream();
  const GemmOperands operands(device, gemm_type("bf16"), {.m = 1024, .n = 1024, .k = 1024}, Pattern::gaussian, 1);
  const FaultCounts counts = operands.put_faults(stream);
  for (const FaultClass fault : {FaultClass::single_bit, FaultClass::burst, FaultClass::warp_aligned}) {
    const FaultCount& count = counts[static_cast<std::size_t>(fault)];
    claims.expect(count.put > 0 && count.found == count.put, "every fault of a class changes the sum of the results");
  }
}

void test(const std::string& /*folder*/, Claims& claims) {
  try {
    for (const Device& device : all_devices()) {
      use(device);
      test_memory(claims);
      test_stuck_bit(claims);
      test_results(device, claims);
    }
  } catch (const Skip& skip) {
    std::cout << "skip  " << skip.what() << '\n';
  }
}

}  // namespace
}  // namespace assay::cuda

int main(int argc, char** argv) { return assay::hardware_main(argc, argv, assay::cuda::test); }
