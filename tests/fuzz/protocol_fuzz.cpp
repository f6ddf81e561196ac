// The frame reader and both decoders on a hostile stream: how the bytes are cut does not matter, and a message that is
// taken is one that can be sent and taken again.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "orchestrator/wire/protocol.h"

namespace {

using namespace assay;

/// The frames in `bytes` when they arrive in pieces of `piece` bytes; the last element says whether the stream broke.
std::vector<std::string> frames(std::string_view bytes, std::size_t piece) {
  wire::FrameReader reader;
  std::vector<std::string> all;
  while (true) {
    const auto frame = reader.next();
    if (!frame) {
      if (frame.error().what.empty()) std::abort();
      all.push_back("broken");
      return all;
    }
    if (*frame) {
      all.push_back(std::string(1, static_cast<char>((*frame)->type)) + (*frame)->payload);
      continue;
    }
    if (bytes.empty()) return all;
    const auto now = bytes.substr(0, piece);
    reader.feed(now);
    bytes.remove_prefix(now.size());
  }
}

template <class Decode>
void check(const wire::Frame& frame, Decode decode) {
  const auto message = decode(frame);
  if (!message && message.error().what.empty()) std::abort();
  if (!message) return;
  wire::FrameReader reader;
  reader.feed(wire::encode(*message));
  const auto again = reader.next();
  if (!again || !*again || !decode(**again)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view stream(reinterpret_cast<const char*>(bytes), size);
  constexpr std::size_t kSmallPiece = 3;
  if (frames(stream, kSmallPiece) != frames(stream, std::max<std::size_t>(size, 1))) std::abort();
  wire::FrameReader reader;
  reader.feed(stream);
  while (true) {
    const auto frame = reader.next();
    if (!frame || !*frame) return 0;
    check(**frame, wire::decode_to_agent);
    check(**frame, wire::decode_from_agent);
  }
}
