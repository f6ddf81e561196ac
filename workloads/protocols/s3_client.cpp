// s3_client: a request is signed as a whole, then handed to libcurl with the path, the query and the headers that were
// signed: it changes none of them.
#include "workloads/protocols/s3_client.h"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstring>
#include <vector>

#include <fmt/format.h>

#include "probes/core/library.h"
#include "probes/core/probe.h"
#include "probes/core/sha256.h"
#include "probes/core/text.h"
#include "workloads/protocols/s3_signature.h"

#if __has_include(<curl/curl.h>)
#define CURL_DISABLE_TYPECHECK  // its macros know the functions only by name, and ours are pointers
#include <curl/curl.h>
#endif

namespace assay::protocols {
namespace {

bool all_of_set(const std::string& text, std::string_view more) {
  return std::ranges::all_of(text, [&](char one) {
    return std::isalnum(static_cast<unsigned char>(one)) != 0 || more.find(one) != std::string_view::npos;
  });
}

constexpr long kFound = 200, kNoContent = 204, kMissing = 404;

struct Answer {
  long status = 0;
  std::string body, etag;
  std::uint64_t length = 0;
};

/// The word between <Code> and </Code> of an error, for the message.
std::string code_in(const std::string& body) {
  const auto begin = body.find("<Code>");
  const auto end = body.find("</Code>");
  constexpr std::size_t kLongest = 80;
  if (begin == std::string::npos || end == std::string::npos || end < begin + 6 || end - begin > kLongest) return "";
  return " " + body.substr(begin + 6, end - begin - 6);
}

}  // namespace

std::string wrong_with(const S3Bucket& bucket) {
  const auto scheme = bucket.endpoint.find("://");
  const std::string name = scheme == std::string::npos ? "" : bucket.endpoint.substr(0, scheme);
  if ((name != "http" && name != "https") || bucket.endpoint.size() <= scheme + 3)
    return fmt::format("endpoint: '{}' is not http://HOST:PORT or https://HOST:PORT", bucket.endpoint);
  if (bucket.endpoint.find_first_of("/?#@", scheme + 3) != std::string::npos)
    return fmt::format("endpoint: '{}' has more than a host and a port; the bucket is a parameter of its own",
                       bucket.endpoint);
  if (bucket.bucket.empty() || !all_of_set(bucket.bucket, ".-_"))
    return fmt::format("bucket: '{}' is not a name of letters, digits, '.', '-' and '_'", bucket.bucket);
  if (bucket.region.empty() || !all_of_set(bucket.region, "-_"))
    return fmt::format("region: '{}' is not a name of letters, digits and '-'", bucket.region);
  return "";
}

bool is_plain_key(const std::string& key) { return all_of_set(key, "/._-"); }

#if __has_include(<curl/curl.h>)
namespace {

constexpr std::size_t kLargestBody = 64 << 20;  // no object of ours is larger than 16 MiB
constexpr double kMilliseconds = 1e3;

}  // namespace

/// The used functions of libcurl.
struct CurlFunctions {
  Library library;
  decltype(&::curl_easy_init) init = library.function("curl_easy_init");
  decltype(&::curl_easy_reset) reset = library.function("curl_easy_reset");
  decltype(&::curl_easy_setopt) set = library.function("curl_easy_setopt");
  decltype(&::curl_easy_perform) perform = library.function("curl_easy_perform");
  decltype(&::curl_easy_getinfo) info = library.function("curl_easy_getinfo");
  decltype(&::curl_easy_strerror) words = library.function("curl_easy_strerror");
  decltype(&::curl_easy_cleanup) cleanup = library.function("curl_easy_cleanup");
  decltype(&::curl_slist_append) append = library.function("curl_slist_append");
  decltype(&::curl_slist_free_all) free_all = library.function("curl_slist_free_all");
  decltype(&::curl_version) version = library.function("curl_version");
};

namespace {

Library opened_library() {
  Library library = Library::open("libcurl.so.4", "libcurl");
  const decltype(&::curl_global_init) init = library.function("curl_global_init");
  // Before any thread uses it, as the library asks; a second call only counts.
  if (init(CURL_GLOBAL_DEFAULT) != CURLE_OK) throw Skip("libcurl cannot be initialised");
  return library;
}

/// Takes a part of the body; one that would be too large ends the transfer.
std::size_t take_body(char* bytes, std::size_t one, std::size_t count, void* into) {
  auto& body = *static_cast<std::string*>(into);
  if (body.size() + one * count > kLargestBody) return 0;
  body.append(bytes, one * count);
  return one * count;
}

/// Keeps the value of the header ETag.
std::size_t take_header(char* bytes, std::size_t one, std::size_t count, void* into) {
  constexpr std::string_view kName = "etag:";
  const std::string_view line(bytes, one * count);
  const bool same =
      line.size() >= kName.size() && std::ranges::equal(line.substr(0, kName.size()), kName, {}, [](char c) {
        return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      });
  if (same) {
    const auto begin = line.find_first_not_of(" \t", kName.size());
    const auto end = line.find_last_not_of(" \t\r\n");
    if (begin != std::string_view::npos && end >= begin)
      *static_cast<std::string*>(into) = std::string(line.substr(begin, end - begin + 1));
  }
  return one * count;
}

std::size_t give_body(char* into, std::size_t one, std::size_t count, void* from) {
  auto& left = *static_cast<std::span<const std::byte>*>(from);
  const std::size_t size = std::min(left.size(), one * count);
  std::memcpy(into, left.data(), size);
  left = left.subspan(size);
  return size;
}

}  // namespace

struct S3Client::Session {
  explicit Session(S3Bucket of) : bucket(std::move(of)), api{.library = opened_library()}, handle(api.init()) {
    if (handle == nullptr) throw std::bad_alloc();
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() { api.cleanup(handle); }

  template <class Value>
  void set(CURLoption option, Value value) {
    if (api.set(handle, option, value) != CURLE_OK)
      throw Skip(fmt::format("libcurl does not take option {}; version 7.85 or newer with TLS is needed",
                             static_cast<int>(option)));
  }

  /// The headers of the request, signed, as lines.
  [[nodiscard]] std::vector<std::string> signed_lines(S3Request request, std::span<const std::byte> body) const {
    if (bucket.access_key.empty()) return {};
    const std::string_view bytes(reinterpret_cast<const char*>(body.data()), body.size());
    request.headers = {{"Host", bucket.endpoint.substr(bucket.endpoint.find("://") + 3)},
                       {"X-Amz-Date", amz_date(std::chrono::system_clock::now())},
                       {"X-Amz-Content-Sha256", to_hexadecimal(sha256_of(bytes))}};
    const S3Key key{.access_key = bucket.access_key, .secret_key = bucket.secret_key, .region = bucket.region};
    std::vector<std::string> lines;
    for (const auto& [name, value] : request.headers) lines.push_back(fmt::format("{}: {}", name, value));
    lines.push_back("Authorization: " + authorization(request, key));
    return lines;
  }

  void limit() {
    const auto timeout_ms = static_cast<long>(bucket.timeout.count * kMilliseconds);
    set(CURLOPT_PROTOCOLS_STR, "http,https");
    set(CURLOPT_FOLLOWLOCATION, 0L);  // a signature is of one host; another place is an answer to be reported
    set(CURLOPT_PATH_AS_IS, 1L);      // as it was signed
    set(CURLOPT_PROXY, "");           // a cache between would answer in the store's place
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_TIMEOUT_MS, timeout_ms);
    set(CURLOPT_CONNECTTIMEOUT_MS, timeout_ms);
    if (!bucket.any_certificate) return;
    set(CURLOPT_SSL_VERIFYPEER, 0L);
    set(CURLOPT_SSL_VERIFYHOST, 0L);
  }

  /// `key` begins with '/', or is empty for the bucket itself.
  Answer ask(const std::string& method, const std::string& key, const S3Words& query = {},
             std::span<const std::byte> body = {}) {
    Answer answer = send(method, key, query, body);
    if (answer.status != kFound && answer.status != kNoContent && answer.status != kMissing)
      throw S3Refused(fmt::format("{} {}{}: HTTP status {}{}", method, key, query_words(query), answer.status,
                                  code_in(answer.body)));
    return answer;
  }

  static std::string query_words(const S3Words& query) { return query.empty() ? "" : "?" + query_text(query); }

  /// The answer with any status.
  Answer send(const std::string& method, const std::string& key, const S3Words& query = {},
              std::span<const std::byte> body = {}) {
    Answer answer;
    api.reset(handle);
    limit();
    const std::string path = bucket.bucket.empty() ? key : "/" + bucket.bucket + key;
    const S3Request request{.method = method, .path = path, .query = query, .headers = {}};
    const std::string words = query_words(query);
    set(CURLOPT_URL, (bucket.endpoint + percent_encoded(request.path, true) + words).c_str());
    std::unique_ptr<curl_slist, decltype(api.free_all)> headers(nullptr, api.free_all);
    for (const std::string& line : signed_lines(request, body)) {
      curl_slist* longer = api.append(headers.get(), line.c_str());
      if (longer == nullptr) throw std::bad_alloc();
      if (!headers) headers.reset(longer);  // the head stays that of the first line
    }
    set(CURLOPT_HTTPHEADER, headers.get());
    set(CURLOPT_WRITEFUNCTION, take_body);
    set(CURLOPT_WRITEDATA, &answer.body);
    set(CURLOPT_HEADERFUNCTION, take_header);
    set(CURLOPT_HEADERDATA, &answer.etag);
    if (method == "PUT") {
      set(CURLOPT_UPLOAD, 1L);
      set(CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(body.size()));
      set(CURLOPT_READFUNCTION, give_body);
      set(CURLOPT_READDATA, &body);
    } else if (method == "HEAD") {
      set(CURLOPT_NOBODY, 1L);
    } else if (method != "GET") {
      set(CURLOPT_CUSTOMREQUEST, method.c_str());
    }
    const CURLcode code = api.perform(handle);
    if (code != CURLE_OK) throw S3Refused(fmt::format("{} {}{}: {}", method, key, words, api.words(code)));
    curl_off_t length = 0;
    (void)api.info(handle, CURLINFO_RESPONSE_CODE, &answer.status);
    (void)api.info(handle, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
    answer.length = length < 0 ? 0 : static_cast<std::uint64_t>(length);
    return answer;
  }

  [[nodiscard]] std::string version() const { return api.version(); }

  S3Bucket bucket;
  CurlFunctions api;
  CURL* handle;
};

#else

struct S3Client::Session {
  explicit Session(const S3Bucket& of) : bucket(of) { throw Skip(kNoClient); }
  S3Bucket bucket;
  [[nodiscard]] static Answer ask(const std::string&, const std::string&, const S3Words& = {},
                                  std::span<const std::byte> = {}) {
    throw Skip(kNoClient);
  }
  [[nodiscard]] static Answer send(const std::string&, const std::string&, const S3Words& = {}) {
    throw Skip(kNoClient);
  }
  [[nodiscard]] static std::string version() { throw Skip(kNoClient); }

 private:
  static constexpr const char* kNoClient =
      "this build has no client of S3: install libcurl4-openssl-dev and build again";
};

#endif

S3Client::S3Client(S3Bucket bucket) : session_(std::make_unique<Session>(std::move(bucket))) {}

std::string S3Client::put(const std::string& key, std::span<const std::byte> body) {
  const Answer answer = session_->ask("PUT", "/" + key, {}, body);
  if (answer.status == kMissing) throw S3Refused(fmt::format("PUT /{}: HTTP status 404{}", key, code_in(answer.body)));
  return answer.etag;
}

std::optional<S3Object> S3Client::get(const std::string& key) {
  const Answer answer = session_->ask("GET", "/" + key);
  if (answer.status == kMissing) return std::nullopt;
  const auto bytes = std::as_bytes(std::span(answer.body));
  return S3Object{.body = cluster_storage::Content(bytes.begin(), bytes.end()), .etag = answer.etag};
}

std::optional<std::uint64_t> S3Client::size(const std::string& key) {
  const Answer answer = session_->ask("HEAD", "/" + key);
  return answer.status == kMissing ? std::nullopt : std::optional(answer.length);
}

void S3Client::remove(const std::string& key) { (void)session_->ask("DELETE", "/" + key); }

bool S3Client::lists(const std::string& key) {
  const Answer answer = session_->ask("GET", "", {{"list-type", "2"}, {"prefix", key}});
  if (answer.status == kMissing) throw S3Refused("GET of the listing: HTTP status 404" + code_in(answer.body));
  return answer.body.find("<Key>" + key + "</Key>") != std::string::npos;  // plain keys are as they are in XML
}

S3Status S3Client::status_of(const std::string& path) {
  const bool listing = !session_->bucket.bucket.empty();
  const auto answer =
      session_->send("GET", listing ? "" : path, listing ? S3Words{{"list-type", "2"}, {"max-keys", "1"}} : S3Words{});
  const std::string code = code_in(answer.body);
  return {answer.status, code.empty() ? "" : code.substr(1)};
}

std::string S3Client::library() const { return session_->version(); }

S3Client::~S3Client() = default;

}  // namespace assay::protocols
