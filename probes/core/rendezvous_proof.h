// rendezvous_proof: how two ranks show each other that they know the step's token without sending it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace assay::rendezvous {

/// Bytes of a nonce and of a proof.
inline constexpr std::size_t kNonce = 32, kProof = 32;

/// What both sides of one join have said: who the caller is, and a fresh nonce of each.
struct Join {
  std::uint32_t rank = 0, world = 0;
  std::string caller, listener;
};

/// Which of the two proves.
enum class Side : char { caller = 'C', listener = 'L' };

/// Fresh random bytes. Throws std::system_error when the kernel gives none.
std::string fresh_nonce();

/// HMAC-SHA-256 under `token` of the side and everything in `join`.
std::string proof_of(std::string_view token, Side side, const Join& join);

}  // namespace assay::rendezvous
