// encryption: IPsec and TLS of the streams of a probe on their way (IPsec or TLS of the kernel), and which part of it
// the network adapter does. No setting of the machine is changed: IPsec is the node's own, and only sockets differ.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "probes/core/parameters.h"
#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "probes/host/tcp_streams.h"

namespace assay::host {

inline constexpr Parameter kEncryption = choice(
    "encryption", "as_is", "as_is off ktls",
    "as_is: what the node's IPsec policies ask for; off: sockets that IPsec passes by (root); ktls: TLS 1.2 with "
    "AES-GCM-128 by the kernel on each stream");

/// The conditions that EncryptionWatch records.
inline constexpr ConditionSpec kEncryptionConditions[] = {
    if_reported("encryption",
                "What encrypted the payload: none; ipsec, where the counters of the kernel's security associations "
                "rose by all of it; partly, where they rose by less; ktls. Absent where they may not be read (root)."),
    if_reported("encryption_offload",
                "Part of it in the network adapter, the least of all associations or streams: packet, crypto or none."),
};

/// One security association of IPsec.
struct Association {
  std::uint64_t bytes = 0;
  std::string offload = "none";  ///< or crypto, packet
};

/// The associations in the bodies of XFRM_MSG_NEWSA, by destination, protocol and SPI.
std::map<std::string, Association> associations_in(std::span<const std::string> bodies);

/// What encrypted `payload` B that one end sent and received while the associations came from `before` to `after`.
struct Encrypted {
  std::string by = "none";
  std::string offload = {};  ///< empty: nothing encrypted
};
Encrypted encrypted_by(const std::map<std::string, Association>& before,
                       const std::map<std::string, Association>& after, std::uint64_t payload);

/// Lets IPsec pass by a socket and those that it accepts. Throws std::system_error.
void pass_by_ipsec(int socket, int family);

/// Watches the streams of one rank from before their payload to after it.
class EncryptionWatch {
 public:
  /// With "ktls" in `wanted` the kernel encrypts each stream from now on, with keys that only the ranks of this step
  /// can derive; nothing may have been sent but what the other end has read, and both ranks meet before more is. Throws
  /// std::runtime_error where the kernel has no TLS.
  EncryptionWatch(std::string wanted, const Streams& streams, const std::string& token, int rank);
  /// Records the conditions after `payload` B were sent and received here.
  void record(Recorder& record, std::uint64_t payload) const;

 private:
  std::string wanted_;
  std::size_t streams_;
  std::optional<std::map<std::string, Association>> before_;
  std::map<std::string, std::uint64_t> tls_before_;
};

}  // namespace assay::host
