// encryption: linux/xfrm.h (associations, a policy of one socket), linux/tls.h and the kernel's documentation of TLS
// (Documentation/networking/tls.rst: keys of a socket, counters of sessions in proc/net/tls_stat).
#include "probes/host/encryption.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <sstream>
#include <stdexcept>
#include <system_error>

#include <linux/netlink.h>
#include <linux/tcp.h>
#include <linux/tls.h>
#include <linux/xfrm.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <fmt/format.h>

#include "probes/core/machine_tree.h"
#include "probes/core/netlink.h"
#include "probes/core/sha256.h"

namespace assay::host {
namespace {

constexpr int kSolTls = 282;                     // SOL_TLS of the kernel's linux/socket.h
constexpr int kIpPolicy = 17, kIpv6Policy = 35;  // IP_XFRM_POLICY of linux/in.h, IPV6_XFRM_POLICY of linux/in6.h
constexpr unsigned kPacketOffload = 4;           // XFRM_OFFLOAD_PACKET since Linux 6.2
constexpr std::size_t kMostTlsStat = 64 << 10;

/// This node's associations; none if the kernel has no IPsec, nothing if they may not be read.
std::optional<std::map<std::string, Association>> read_associations() {
  const Descriptor socket = netlink_socket(NETLINK_XFRM);
  if (!socket) return errno == EPROTONOSUPPORT ? std::optional(std::map<std::string, Association>{}) : std::nullopt;
  const auto bodies = dump(socket, XFRM_MSG_GETSA, "", sizeof(xfrm_usersa_info));
  return bodies ? std::optional(associations_in(*bodies)) : std::nullopt;
}

/// The kernel's counters of TLS sessions; empty if it keeps none.
std::map<std::string, std::uint64_t> tls_sessions() {
  std::istringstream lines(MachineTree("/").bytes("proc/net/tls_stat", kMostTlsStat).value_or(""));
  std::map<std::string, std::uint64_t> counters;
  std::string name;
  for (std::uint64_t value = 0; lines >> name >> value;) counters[name] = value;
  return counters;
}

/// Keys of one direction of a stream; both ends derive the same.
tls12_crypto_info_aes_gcm_128 keys_of(const std::string& token, std::size_t stream, int sender) {
  const std::string bytes = hmac_sha256(token, fmt::format("ktls {} {}", stream, sender));
  tls12_crypto_info_aes_gcm_128 keys = {};
  keys.info = {.version = TLS_1_2_VERSION, .cipher_type = TLS_CIPHER_AES_GCM_128};
  std::memcpy(keys.key, bytes.data(), sizeof keys.key);
  std::memcpy(keys.salt, bytes.data() + sizeof keys.key, sizeof keys.salt);
  std::memcpy(keys.iv, bytes.data() + sizeof keys.key + sizeof keys.salt, sizeof keys.iv);
  return keys;
}

void encrypt(int socket, const std::string& token, std::size_t stream, int rank) {
  if (setsockopt(socket, IPPROTO_TCP, TCP_ULP, "tls", sizeof "tls") != 0)
    throw std::runtime_error(fmt::format(
        "encryption: the kernel takes no TLS on a stream: {}\nhint: load the module tls", error_words(errno)));
  const auto send_keys = keys_of(token, stream, rank), receive_keys = keys_of(token, stream, 1 - rank);
  if (setsockopt(socket, kSolTls, TLS_TX, &send_keys, sizeof send_keys) != 0 ||
      setsockopt(socket, kSolTls, TLS_RX, &receive_keys, sizeof receive_keys) != 0)
    throw std::system_error(errno, std::generic_category(), "encryption: the kernel takes no keys of AES-GCM-128");
}

std::string offload_in(std::string_view attributes) {
  const auto bytes = find_attribute(attributes, XFRMA_OFFLOAD_DEV);
  xfrm_user_offload offload = {};
  if (!bytes || bytes->size() < sizeof offload) return "none";
  std::memcpy(&offload, bytes->data(), sizeof offload);
  return (offload.flags & kPacketOffload) != 0 ? "packet" : "crypto";
}

}  // namespace

std::map<std::string, Association> associations_in(std::span<const std::string> bodies) {
  std::map<std::string, Association> all;
  for (const auto& body : bodies) {
    xfrm_usersa_info info = {};
    if (body.size() < sizeof info) continue;
    std::memcpy(&info, body.data(), sizeof info);
    const std::string id(reinterpret_cast<const char*>(&info.id), sizeof info.id);
    const std::size_t head = (sizeof info + 3) / 4 * 4;
    all[id] = {.bytes = info.curlft.bytes,
               .offload = offload_in(std::string_view(body).substr(std::min(head, body.size())))};
  }
  return all;
}

Encrypted encrypted_by(const std::map<std::string, Association>& before,
                       const std::map<std::string, Association>& after, std::uint64_t payload) {
  static constexpr std::array<std::string_view, 3> kLeastFirst = {"none", "crypto", "packet"};
  constexpr std::uint64_t kOtherTraffic = 100;  // payload over what other connections may have sent meanwhile
  std::uint64_t bytes = 0;
  auto least = kLeastFirst.end();
  for (const auto& [id, association] : after) {
    const auto known = before.find(id);
    const std::uint64_t earlier = known == before.end() ? 0 : known->second.bytes;
    if (association.bytes <= earlier) continue;
    bytes += association.bytes - earlier;
    least = std::min(least, std::ranges::find(kLeastFirst, association.offload));
  }
  if (bytes <= payload / kOtherTraffic) return {};
  return {.by = bytes < payload ? "partly" : "ipsec", .offload = std::string(*least)};
}

void pass_by_ipsec(int socket, int family) {
  const bool four = family == AF_INET;
  xfrm_userpolicy_info policy = {};
  policy.sel.family = static_cast<__u16>(family);
  policy.action = XFRM_POLICY_ALLOW;
  for (const int direction : {XFRM_POLICY_IN, XFRM_POLICY_OUT}) {
    policy.dir = static_cast<__u8>(direction);
    if (setsockopt(socket, four ? int{IPPROTO_IP} : int{IPPROTO_IPV6}, four ? kIpPolicy : kIpv6Policy, &policy,
                   sizeof policy) != 0)
      throw std::system_error(errno, std::generic_category(),
                              "encryption: IPsec cannot be passed by, which needs root and a kernel with IPsec");
  }
}

EncryptionWatch::EncryptionWatch(std::string wanted, const Streams& streams, const std::string& token, int rank)
    : wanted_(std::move(wanted)), streams_(streams.size()), before_(read_associations()), tls_before_(tls_sessions()) {
  if (wanted_ != "ktls") return;
  for (std::size_t i = 0; i < streams.size(); ++i) encrypt(streams[i].number(), token, i, rank);
}

void EncryptionWatch::record(Recorder& record, std::uint64_t payload) const {
  if (wanted_ == "ktls") {
    record.condition("encryption", std::string("ktls"));
    auto after = tls_sessions();
    if (after.empty()) return;
    const auto opened = [&](const char* name) {
      const auto known = tls_before_.find(name);
      return after[name] - (known == tls_before_.end() ? 0 : known->second);
    };
    const bool adapter = opened("TlsTxDevice") >= streams_ && opened("TlsRxDevice") >= streams_;
    record.condition("encryption_offload", std::string(adapter ? "crypto" : "none"));
    return;
  }
  const auto after = read_associations();
  if (!before_ || !after) return;
  const Encrypted encrypted = encrypted_by(*before_, *after, payload);
  record.condition("encryption", encrypted.by);
  if (!encrypted.offload.empty()) record.condition("encryption_offload", encrypted.offload);
}

}  // namespace assay::host
