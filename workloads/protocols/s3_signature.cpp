// s3_signature: names and values are put into one order and one spelling, hashed, and signed with a key of the day.
#include "workloads/protocols/s3_signature.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <stdexcept>

#include <fmt/format.h>

#include "probes/core/sha256.h"
#include "probes/core/text.h"
#include "probes/core/utc_time.h"

namespace assay::protocols {
namespace {

constexpr std::string_view kAlgorithm = "AWS4-HMAC-SHA256", kService = "s3", kEnd = "aws4_request";
constexpr std::size_t kDigitsOfDay = 8;

/// The value without blanks at its ends, and with one for each run of them between.
std::string trimmed(std::string_view value) {
  std::string text;
  for (const char one : value) {
    const bool blank = one == ' ' || one == '\t';
    if (!blank) {
      text += one;
    } else if (!text.empty() && text.back() != ' ') {
      text += ' ';
    }
  }
  if (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

/// Signed headers by lower-case name, in order.
std::map<std::string, std::string> signed_headers(const S3Request& request) {
  std::map<std::string, std::string> headers;
  for (const auto& [name, value] : request.headers) {
    std::string lower = name;
    std::ranges::transform(lower, lower.begin(),
                           [](char one) { return static_cast<char>(std::tolower(static_cast<unsigned char>(one))); });
    if (!headers.emplace(lower, trimmed(value)).second)
      throw std::invalid_argument("header " + name + " occurs twice in a request to be signed");
  }
  for (const char* needed : {"host", "x-amz-date", "x-amz-content-sha256"}) {
    if (!headers.contains(needed))
      throw std::invalid_argument(fmt::format("header {} is missing in a request that is to be signed", needed));
  }
  return headers;
}

std::string names_of(const std::map<std::string, std::string>& headers) {
  std::string names;
  for (const auto& [name, value] : headers) names += (names.empty() ? "" : ";") + name;
  return names;
}

std::string digest(std::string_view text) { return to_hexadecimal(sha256_of(text)); }

}  // namespace

std::string percent_encoded(std::string_view text, bool keep_slash) {
  std::string encoded;
  for (const char one : text) {
    const auto byte = static_cast<unsigned char>(one);
    if (has_only(std::string_view(&one, 1), "-._~") || (keep_slash && one == '/')) {
      encoded += one;
    } else {
      encoded += fmt::format("%{:02X}", byte);
    }
  }
  return encoded;
}

std::string query_text(const S3Words& query) {
  std::vector<std::pair<std::string, std::string>> encoded;
  for (const auto& [name, value] : query)
    encoded.emplace_back(percent_encoded(name, false), percent_encoded(value, false));
  std::ranges::sort(encoded);
  std::string text;
  for (const auto& [name, value] : encoded) text += fmt::format("{}{}={}", text.empty() ? "" : "&", name, value);
  return text;
}

std::string amz_date(std::chrono::system_clock::time_point moment) {
  std::string text;
  for (const char one : utc_text(moment)) {
    if (one == '.') break;  // of the fraction of a second
    if (one != '-' && one != ':') text += one;
  }
  return text + "Z";
}

std::string canonical_request(const S3Request& request) {
  const auto headers = signed_headers(request);
  std::string text =
      fmt::format("{}\n{}\n{}\n", request.method, percent_encoded(request.path, true), query_text(request.query));
  for (const auto& [name, value] : headers) text += fmt::format("{}:{}\n", name, value);
  return text + fmt::format("\n{}\n{}", names_of(headers), headers.at("x-amz-content-sha256"));
}

std::string authorization(const S3Request& request, const S3Key& key) {
  const auto headers = signed_headers(request);
  const std::string& date = headers.at("x-amz-date");
  const std::string day = date.substr(0, kDigitsOfDay);
  const std::string scope = fmt::format("{}/{}/{}/{}", day, key.region, kService, kEnd);
  std::string of_day = "AWS4" + key.secret_key;
  for (const std::string_view word : {std::string_view(day), std::string_view(key.region), kService, kEnd})
    of_day = hmac_sha256(of_day, word);
  const std::string to_sign =
      fmt::format("{}\n{}\n{}\n{}", kAlgorithm, date, scope, digest(canonical_request(request)));
  return fmt::format("{} Credential={}/{},SignedHeaders={},Signature={}", kAlgorithm, key.access_key, scope,
                     names_of(headers), to_hexadecimal(hmac_sha256(of_day, to_sign)));
}

}  // namespace assay::protocols
