// s3_signature: authentication of a request to S3 by a key: AWS Signature Version 4 in the header Authorization. Pure.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace assay::protocols {

/// Whose request it is, and for which region it is signed.
struct S3Key {
  std::string access_key, secret_key, region;
};

using S3Words = std::vector<std::pair<std::string, std::string>>;  ///< names with values

/// A request before it is signed. Nothing in it is encoded.
struct S3Request {
  std::string method;
  std::string path;  ///< begins with '/'
  S3Words query;     ///< in any order; the value of a word without `=` is empty
  S3Words headers;   ///< all that are signed, by any case: Host, X-Amz-Date and X-Amz-Content-Sha256 must be among them
};

/// `text` with every byte but letters, digits and "-._~" as %XX; '/' stays too where `keep_slash`.
std::string percent_encoded(std::string_view text, bool keep_slash);

/// `query` as in the URL and in the signed text: encoded and sorted.
std::string query_text(const S3Words& query);

/// The moment, in UTC, as X-Amz-Date has it: "20130524T000000Z".
std::string amz_date(std::chrono::system_clock::time_point moment);

/// The text hashed into the signature: "Task 1: Create a Canonical Request" of the source. Throws std::invalid_argument
/// if one of the three headers is missing. Source: AWS, Amazon S3 API Reference, "Signature Calculations for the
/// Authorization Header: Transferring Payload in a Single Chunk (AWS Signature Version 4)".
std::string canonical_request(const S3Request& request);

/// The value of the header Authorization, of the same source. Throws as canonical_request does.
std::string authorization(const S3Request& request, const S3Key& key);

}  // namespace assay::protocols
