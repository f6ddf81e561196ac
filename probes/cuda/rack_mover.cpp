// rack_mover: cuMemcpy between mapped addresses.
#include "probes/cuda/rack_mover.h"

#include <algorithm>
#include <chrono>
#include <span>
#include <vector>

#include "probes/cuda/payload.h"
#include "probes/cuda/shared_memory.h"

namespace assay::cuda {
namespace {

constexpr std::size_t kPiece = std::size_t{16} << 20;  // B that the host makes or compares at once

/// Calls use(offset, words) for the payload `seed` of `size` B, piece by piece.
template <class Use>
void over_pieces(std::size_t size, Use use) {
  std::vector<std::uint64_t> words;
  for (std::size_t offset = 0; offset < size; offset += kPiece) {
    words.resize(std::min(kPiece, size - offset) / sizeof(std::uint64_t));
    use(offset, std::span(words));
  }
}

/// The seed with which word 0 is word `offset` / 8 of the payload `seed`.
std::uint64_t seed_at(std::uint64_t seed, std::size_t offset) {
  return seed + offset / sizeof(std::uint64_t) * kPayloadStep;
}

}  // namespace

RackMover copy_engine_mover(const SharingGpu& on) {
  return {.fill =
              [&on](std::uint64_t address, std::size_t size, std::uint64_t seed) {
                over_pieces(size, [&](std::size_t offset, std::span<std::uint64_t> words) {
                  fill_payload(words, seed_at(seed, offset));
                  on.demand(on.current().copy_in(address + offset, words.data(), words.size_bytes()), "cuMemcpyHtoD");
                });
              },
          .clear =
              [&on](std::uint64_t address, std::size_t size) {
                on.demand(on.current().set_bytes(address, 0, size), "cuMemsetD8");
                on.demand(on.current().synchronize(), "cuCtxSynchronize");
              },
          .mismatches =
              [&on](std::uint64_t address, std::size_t size, std::uint64_t seed) {
                std::uint64_t wrong = 0;
                over_pieces(size, [&](std::size_t offset, std::span<std::uint64_t> words) {
                  on.demand(on.current().copy_out(words.data(), address + offset, words.size_bytes()), "cuMemcpyDtoH");
                  wrong += payload_mismatches(words, seed_at(seed, offset));
                });
                return wrong;
              },
          .copy =
              [&on](std::uint64_t target, std::uint64_t source, std::size_t size, std::size_t copies) {
                const auto& f = on.current();
                const auto begin = std::chrono::steady_clock::now();
                for (std::size_t i = 0; i < copies; ++i) on.demand(f.copy(target, source, size), "cuMemcpyDtoD");
                on.demand(f.synchronize(), "cuCtxSynchronize");
                return Seconds{std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count()};
              },
          .multicast = nullptr};
}

#ifndef ASSAY_RACK_KERNELS
std::optional<RackMover> kernel_mover(const std::string&) { return std::nullopt; }
#endif

}  // namespace assay::cuda
