// s3_client: objects of one bucket over HTTP, by libcurl; requests are signed by s3_signature.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>

#include "probes/core/units.h"
#include "workloads/storage/shared/consistency_look.h"

namespace assay::protocols {

/// Address of a bucket and the client's key.
struct S3Bucket {
  std::string endpoint;  ///< "https://host:port" without a path
  std::string region, bucket;
  std::string access_key, secret_key;
  Seconds timeout = {30};        ///< of one request
  bool any_certificate = false;  ///< over HTTPS: no signature and no name of it is checked
};

/// The error of the parts of a request's address; empty if there is none.
std::string wrong_with(const S3Bucket& bucket);
/// Whether a key needs no encoding, in a URL or in the XML of a listing.
bool is_plain_key(const std::string& key);

/// A request was answered otherwise than it should be, or not at all. what() has method, key and cause.
struct S3Refused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// An object and the ETag that came with it.
struct S3Object {
  cluster_storage::Content body;
  std::string etag;
};

/// The end of a request: the status of HTTP, and the word of an error ("AccessDenied"), if the store gave one.
struct S3Status {
  long status = 0;
  std::string code;
};

/// Requests by one thread, on a connection that is kept. All throw S3Refused. Keys are plain.
class S3Client {
 public:
  /// Throws Skip where libcurl is not there.
  explicit S3Client(S3Bucket bucket);
  ~S3Client();
  S3Client(const S3Client&) = delete;
  S3Client& operator=(const S3Client&) = delete;

  /// Stores an object; its ETag.
  std::string put(const std::string& key, std::span<const std::byte> body);
  /// The object; nothing if there is none (404).
  std::optional<S3Object> get(const std::string& key);
  /// Its size by HEAD.
  std::optional<std::uint64_t> size(const std::string& key);
  /// Removes it; one that is not there is no error.
  void remove(const std::string& key);
  /// Whether a listing of the keys that begin with `key` has it.
  bool lists(const std::string& key);
  /// The status, good or bad, of a listing of at most one key; of a client without a bucket, of a GET of `path`,
  /// which is not signed. S3Refused is only thrown where no answer came.
  S3Status status_of(const std::string& path);
  /// Name and version of the library.
  [[nodiscard]] std::string library() const;

 private:
  struct Session;
  std::unique_ptr<Session> session_;
};

}  // namespace assay::protocols
