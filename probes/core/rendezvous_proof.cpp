// rendezvous_proof: one HMAC over fields of fixed length, so that no two joins give the same message.
#include "probes/core/rendezvous_proof.h"

#include <cerrno>
#include <system_error>

#include <sys/random.h>

#include "probes/core/rendezvous_link.h"
#include "probes/core/sha256.h"

namespace assay::rendezvous {

std::string fresh_nonce() {
  std::string nonce(kNonce, '\0');
  std::size_t have = 0;
  while (have < nonce.size()) {
    const ssize_t got = getrandom(nonce.data() + have, nonce.size() - have, 0);
    if (got < 0 && errno != EINTR) throw std::system_error(errno, std::generic_category(), "getrandom");
    if (got > 0) have += static_cast<std::size_t>(got);
  }
  return nonce;
}

std::string proof_of(std::string_view token, Side side, const Join& join) {
  std::string message = "assay rendezvous 2 ";
  message += static_cast<char>(side);
  put_u32(message, join.rank);
  put_u32(message, join.world);
  return hmac_sha256(token, message + join.caller + join.listener);
}

}  // namespace assay::rendezvous
