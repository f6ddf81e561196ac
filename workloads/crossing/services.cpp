// services: one question each to NFS, HTTP, S3 and IPMI.
#include "workloads/crossing/services.h"

#include <array>
#include <charconv>
#include <cstdint>
#include <optional>

#include <arpa/inet.h>
#include <fmt/format.h>

namespace assay::crossing {
namespace {

// RFC 5531: kinds of messages and of authentication; RFC 7530 and linux/nfs4.h: numbers of operations and errors.
constexpr std::uint32_t kXid = 0x61737361, kCall = 0, kReply = 1, kRpcVersion = 2, kNfsProgram = 100003,
                        kNfsVersion = 4, kCompound = 1, kAuthSys = 1, kDenied = 1, kAuthError = 1,
                        kLastPart = 0x80000000;
constexpr std::uint32_t kLookUp = 15, kPutRootHandle = 24, kGetHandle = 10;
struct NfsError {
  std::uint32_t number;
  const char* name;
};
constexpr std::array<NfsError, 4> kRefusals = {
    {{1, "NFS4ERR_PERM"}, {2, "NFS4ERR_NOENT"}, {13, "NFS4ERR_ACCESS"}, {10016, "NFS4ERR_WRONGSEC"}}};

void put(std::string& bytes, std::uint32_t number) {
  const std::uint32_t wire = htonl(number);
  bytes.append(reinterpret_cast<const char*>(&wire), sizeof wire);
}

void put_text(std::string& bytes, std::string_view text) {
  put(bytes, static_cast<std::uint32_t>(text.size()));
  bytes += text;
  bytes.append((4 - text.size() % 4) % 4, '\0');
}

/// Takes a number from the front of `bytes`; nothing if they are too few.
std::optional<std::uint32_t> take(std::string_view& bytes) {
  if (bytes.size() < sizeof(std::uint32_t)) return std::nullopt;
  std::uint32_t wire = 0;
  std::copy_n(bytes.data(), sizeof wire, reinterpret_cast<char*>(&wire));
  bytes.remove_prefix(sizeof wire);
  return ntohl(wire);
}

std::vector<std::string_view> parts_of(std::string_view path) {
  std::vector<std::string_view> parts;
  while (!path.empty()) {
    const auto end = std::min(path.find('/'), path.size());
    if (end > 0) parts.push_back(path.substr(0, end));
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return parts;
}

std::string host_of(const Target& target) {
  const bool v6 = target.address.find(':') != std::string::npos;
  return fmt::format("{}:{}", v6 ? "[" + target.address + "]" : target.address, target.port);
}

}  // namespace

std::string nfs_lookup(const std::string& path) {
  std::string call;
  for (const std::uint32_t number : {kXid, kCall, kRpcVersion, kNfsProgram, kNfsVersion, kCompound}) put(call, number);
  std::string credential;
  put(credential, 0);                              // stamp
  put_text(credential, "");                        // machine
  for (int i = 0; i < 3; ++i) put(credential, 0);  // user, group, no more groups
  put(call, kAuthSys);
  put_text(call, credential);
  put(call, 0), put(call, 0);  // no verifier
  const auto parts = parts_of(path);
  put_text(call, "");  // tag
  put(call, 0);        // minor version
  put(call, static_cast<std::uint32_t>(parts.size() + 2));
  put(call, kPutRootHandle);
  for (const auto part : parts) {
    put(call, kLookUp);
    put_text(call, part);
  }
  put(call, kGetHandle);
  std::string marked;
  put(marked, kLastPart | static_cast<std::uint32_t>(call.size()));
  return marked + call;
}

Tried nfs_answer(std::string_view reply) {
  const Tried short_reply{Outcome::unclear, "the reply is none of RPC"};
  const auto xid = take(reply), kind = take(reply), denied = take(reply);
  if (!denied || xid != kXid || kind != kReply) return short_reply;
  if (*denied == kDenied) {
    const auto why = take(reply), error = take(reply);
    if (why == kAuthError && error) return {Outcome::refused, fmt::format("RPC authentication error {}", *error)};
    return {Outcome::unclear, "RPC does not take the version of the call"};
  }
  (void)take(reply);  // kind of the verifier
  const auto verifier = take(reply);
  if (!verifier || *verifier > reply.size()) return short_reply;
  reply.remove_prefix(*verifier);
  const auto accepted = take(reply);
  if (accepted != 0U) return {Outcome::unclear, fmt::format("RPC status {}", accepted.value_or(0))};
  const auto status = take(reply);
  if (!status) return short_reply;
  if (*status == 0) return {Outcome::answered, "NFS gave a file handle"};
  for (const auto& [number, name] : kRefusals)
    if (number == *status) return {Outcome::refused, name};
  return {Outcome::unclear, fmt::format("NFS status {}", *status)};
}

Tried try_nfs(const Target& target, const std::string& path) {
  const auto [connection, tried] = open_tcp(target, true);
  if (!connection) return tried;
  constexpr std::size_t kMark = 4, kHeader = 32;  // bytes of the record mark, and of a reply up to the status of NFS
  const std::string reply = exchange(connection, nfs_lookup(path), kMark + kHeader, target.timeout);
  if (reply.size() < kMark) return {Outcome::no_answer, "connected; the server said nothing"};
  return nfs_answer(std::string_view(reply).substr(kMark));
}

Tried of_status(long status) {
  constexpr long kGood = 200, kGoodEnd = 300, kUnauthorised = 401, kForbidden = 403;
  const bool good = status >= kGood && status < kGoodEnd;
  return {good                                              ? Outcome::answered
          : status == kUnauthorised || status == kForbidden ? Outcome::refused
                                                            : Outcome::unclear,
          fmt::format("HTTP status {}", status)};
}

Tried try_http(const Target& target, const std::string& path) {
  const auto [connection, tried] = open_tcp(target);
  if (!connection) return tried;
  constexpr std::string_view kBegin = "HTTP/1.1 ";
  constexpr std::size_t kDigits = 3;
  const std::string reply = exchange(
      connection, fmt::format("GET {} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", path, host_of(target)),
      kBegin.size() + kDigits, target.timeout);
  if (reply.empty()) return {Outcome::no_answer, "connected; the service said nothing"};
  long status = 0;
  if (reply.size() >= kBegin.size() + kDigits && reply.starts_with("HTTP/1."))
    (void)std::from_chars(reply.data() + kBegin.size(), reply.data() + kBegin.size() + kDigits, status);
  return of_status(status);
}

Tried try_https(const Target& target, const std::string& path) {
  protocols::S3Bucket none;
  none.endpoint = "https://";
  return try_s3(target, none, path);
}

Tried try_s3(const Target& target, protocols::S3Bucket bucket, const std::string& path) {
  auto [connection, tried] = open_tcp(target);
  if (!connection) return tried;
  connection.close();  // a small service takes one at a time
  bucket.endpoint += host_of(target);
  bucket.timeout = target.timeout;
  bucket.any_certificate = true;
  try {
    return of_status(protocols::S3Client(bucket).status_of(path));
  } catch (const protocols::S3Refused& nothing) {
    return {Outcome::no_answer, fmt::format("connected; {}", nothing.what())};
  }
}

Tried try_ipmi(const Target& target) {
  using namespace std::string_view_literals;
  // RMCP with class IPMI; session header of no authentication; then to 20h, network function 06h, command 38h: for this
  // channel (0Eh) and the privilege of an administrator (04h), with the two checksums.
  constexpr auto kRequest =
      "\x06\x00\xff\x07\x00\x00\x00\x00\x00\x00\x00\x00\x00\x09\x20\x18\xc8\x81\x00\x38\x8e\x04\xb5"sv;
  return try_udp(target, kRequest, "\x06\x00\xff\x07"sv);
}

}  // namespace assay::crossing
