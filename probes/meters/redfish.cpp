// redfish: resources of a BMC, strip or cooling unit over HTTPS, by libcurl. The certificate's key is pinned.
#include <memory>

#include <fmt/format.h>

#include "probes/core/json_io.h"
#include "probes/core/library.h"
#include "probes/core/probe.h"
#include "probes/core/text.h"
#include "probes/meters/redfish_resource.h"
#include "probes/meters/session.h"

#if __has_include(<curl/curl.h>)
#define CURL_DISABLE_TYPECHECK  // its macros know the functions only by name, and ours are pointers
#include <curl/curl.h>

namespace assay::meters {
namespace {

Library opened_library() {
  Library library = Library::open("libcurl.so.4", "libcurl");
  const decltype(&::curl_global_init) init = library.function("curl_global_init");
  // Before any thread uses it, as the library asks; a second call only counts.
  static const bool ready = init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
  if (!ready) throw Skip("libcurl cannot be initialised");
  return library;
}

struct CurlFunctions {
  Library library = opened_library();
  decltype(&::curl_easy_init) init = library.function("curl_easy_init");
  decltype(&::curl_easy_setopt) set = library.function("curl_easy_setopt");
  decltype(&::curl_easy_perform) perform = library.function("curl_easy_perform");
  decltype(&::curl_easy_getinfo) info = library.function("curl_easy_getinfo");
  decltype(&::curl_easy_strerror) words = library.function("curl_easy_strerror");
  decltype(&::curl_easy_cleanup) cleanup = library.function("curl_easy_cleanup");
};

constexpr int kHttpsPort = 443;
constexpr long kFound = 200;
constexpr double kMilliseconds = 1e3;
constexpr std::size_t kLargestResource = 1 << 20;  // resources of a chassis have some 10 KB

/// Takes a part of the body; one that would be too large ends the transfer.
std::size_t take_body(char* bytes, std::size_t one, std::size_t count, void* into) {
  auto& body = *static_cast<std::string*>(into);
  if (body.size() + one * count > kLargestResource) return 0;
  body.append(bytes, one * count);
  return one * count;
}

class RedfishService {
 public:
  RedfishService(Meter meter, MeterLogin login)
      : meter_(std::move(meter)), login_(std::move(login)), handle_(api_.init()) {
    if (handle_ == nullptr) throw MeterFault(fault_text(meter_, "no memory for a connection"));
  }
  RedfishService(const RedfishService&) = delete;
  RedfishService& operator=(const RedfishService&) = delete;
  ~RedfishService() { api_.cleanup(handle_); }

  std::vector<MeterReading> read() {
    std::vector<MeterReading> readings;
    for (const auto& path : meter_.resources) {
      const double before_s = utc_now_s();
      const auto document = parse_json(body_of(path), path);
      if (!document) throw MeterFault(fault_text(meter_, document.error().text()));
      for (auto& one : redfish_readings(*document, path)) {
        one.taken_s = (before_s + utc_now_s()) / 2;
        if (!one.averaging_s) one.averaging_s = meter_.averaging_s;
        if (!one.accuracy) one.accuracy = meter_.accuracy;
        readings.push_back(std::move(one));
      }
    }
    readings = with_supplies_added(std::move(readings));
    join_leak_detectors(readings);
    return readings;
  }

 private:
  std::string body_of(const std::string& path) {
    std::string body;
    const bool six = meter_.address.find(':') != std::string::npos;
    const std::string url = fmt::format("https://{}{}{}:{}{}", six ? "[" : "", meter_.address, six ? "]" : "",
                                        meter_.port == 0 ? kHttpsPort : meter_.port, path);
    const long timeout_ms = static_cast<long>(meter_.timeout_s * kMilliseconds);
    set(CURLOPT_URL, url.c_str());
    set(CURLOPT_PROTOCOLS_STR, "https");
    set(CURLOPT_FOLLOWLOCATION, 0L);  // another place would get the password
    set(CURLOPT_PROXY, "");           // the environment's proxy is ignored: a BMC is near
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_TIMEOUT_MS, timeout_ms);
    set(CURLOPT_CONNECTTIMEOUT_MS, timeout_ms);
    // The pin replaces name and issuer, as a pinned host key does in ssh: BMCs sign their certificates themselves.
    set(CURLOPT_SSL_VERIFYPEER, 0L);
    set(CURLOPT_SSL_VERIFYHOST, 0L);
    set(CURLOPT_PINNEDPUBLICKEY, meter_.public_key.c_str());
    set(CURLOPT_HTTPAUTH, static_cast<long>(CURLAUTH_BASIC));
    set(CURLOPT_USERNAME, login_.user.c_str());
    set(CURLOPT_PASSWORD, login_.password.c_str());
    set(CURLOPT_WRITEFUNCTION, take_body);
    set(CURLOPT_WRITEDATA, &body);
    const CURLcode code = api_.perform(handle_);
    if (code == CURLE_SSL_PINNEDPUBKEYNOTMATCH)
      throw MeterFault(
          fault_text(meter_, "its certificate has another key than the site's public_key; nothing was sent"));
    if (code != CURLE_OK) throw MeterFault(fault_text(meter_, fmt::format("GET {}: {}", path, api_.words(code))));
    long status = 0;
    const bool told = api_.info(handle_, CURLINFO_RESPONSE_CODE, &status) == CURLE_OK;
    const char* place = nullptr;  // of a redirection, such as the same path with a slash
    if (told && status / 100 == 3 && api_.info(handle_, CURLINFO_REDIRECT_URL, &place) == CURLE_OK && place != nullptr)
      throw MeterFault(fault_text(meter_, fmt::format("GET {}: HTTP status {}, moved to {}: write that into the site",
                                                      path, status, printable(place))));
    if (!told || status != kFound)
      throw MeterFault(fault_text(meter_, fmt::format("GET {}: HTTP status {}", path, status)));
    return body;
  }
  /// A pin that this library cannot check must not become a connection without one.
  template <class Value>
  void set(CURLoption option, Value value) {
    if (api_.set(handle_, option, value) != CURLE_OK)
      throw MeterFault(fault_text(meter_, fmt::format("libcurl does not take option {}", static_cast<int>(option))));
  }

  Meter meter_;
  MeterLogin login_;
  CurlFunctions api_;
  CURL* handle_;
};

}  // namespace

MeterSession open_redfish(const Meter& meter, MeterLogin login) {
  const std::shared_ptr<RedfishService> service = std::make_shared<RedfishService>(meter, std::move(login));
  return [service] { return service->read(); };
}

}  // namespace assay::meters
#else
namespace assay::meters {
MeterSession open_redfish(const Meter& meter, MeterLogin) {
  throw Skip(fault_text(meter, "this build reads no Redfish: install libcurl4-openssl-dev and build again"));
}
}  // namespace assay::meters
#endif
