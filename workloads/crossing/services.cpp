// services: one question each to HTTP, S3 and IPMI.
#include "workloads/crossing/services.h"

#include <charconv>

#include <fmt/format.h>

namespace assay::crossing {
namespace {

std::string host_of(const Target& target) {
  const bool v6 = target.address.find(':') != std::string::npos;
  return fmt::format("{}:{}", v6 ? "[" + target.address + "]" : target.address, target.port);
}

}  // namespace

Tried of_status(long status, const std::string& code) {
  constexpr long kGood = 200, kGoodEnd = 300, kUnauthorised = 401, kForbidden = 403;
  const bool good = status >= kGood && status < kGoodEnd, denied = status == kUnauthorised || status == kForbidden;
  // Other words, such as InvalidAccessKeyId, are of the key and not of the bucket (Amazon S3, "Error responses").
  const bool by_right = code.empty() || code == "AccessDenied";
  return {good                 ? Outcome::answered
          : denied && by_right ? Outcome::refused
                               : Outcome::unclear,
          fmt::format("HTTP status {}{}{}", status, code.empty() ? "" : " ", code)};
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
    const auto ended = protocols::S3Client(bucket).status_of(path);
    return of_status(ended.status, bucket.bucket.empty() ? "" : ended.code);
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
