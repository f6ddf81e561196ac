// Frames of a rank on hostile bytes: however the stream is cut, the same frames come out, and none is over the limit.
#include <cstdint>
#include <cstdlib>
#include <vector>

#include <sys/socket.h>

#include "probes/core/rendezvous_link.h"

namespace {

using namespace assay;

constexpr std::size_t kLimit = 4096;

/// The frames that a link takes from `bytes` when they arrive in pieces of `piece` bytes.
std::vector<std::string> frames(std::string_view bytes, std::size_t piece) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) std::abort();
  const rendezvous::Descriptor peer(ends[0]);
  rendezvous::Link link(rendezvous::Descriptor(ends[1]), "peer", kLimit);
  std::vector<std::string> all;
  while (!bytes.empty() && !link.closed()) {
    const auto now = bytes.substr(0, piece);
    if (send(peer.number(), now.data(), now.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(now.size())) std::abort();
    bytes.remove_prefix(now.size());
    link.read();
    while (const auto frame = link.next()) {
      if (frame->payload.size() > kLimit) std::abort();
      all.push_back(std::to_string(static_cast<unsigned>(frame->kind)) + "/" + std::to_string(frame->sequence) + "/" +
                    frame->payload);
    }
  }
  all.push_back(link.trouble());
  return all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view stream(reinterpret_cast<const char*>(bytes), std::min<std::size_t>(size, 64 << 10));
  constexpr std::size_t kSmallPiece = 7, kLargePiece = 16 << 10;
  if (frames(stream.substr(0, 2048), kSmallPiece) != frames(stream.substr(0, 2048), kLargePiece)) std::abort();
  (void)frames(stream, kLargePiece);
  return 0;
}
