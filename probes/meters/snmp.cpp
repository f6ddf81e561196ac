// snmp: objects of a strip over SNMP v2c or v3 (SHA, AES), by Net-SNMP.
#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "probes/core/library.h"
#include "probes/core/probe.h"
#include "probes/meters/session.h"
#include "probes/meters/strip.h"

#if __has_include(<net-snmp/net-snmp-includes.h>)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast"
#include <net-snmp/net-snmp-config.h>
// Its includes need the line above first.
#include <net-snmp/net-snmp-includes.h>
#pragma GCC diagnostic pop

namespace assay::meters {
namespace {

struct SnmpFunctions {
  Library library;
  decltype(&::snmp_sess_init) session_init;
  decltype(&::snmp_sess_open) open;
  decltype(&::snmp_sess_synch_response) ask;
  decltype(&::snmp_sess_close) close;
  decltype(&::snmp_pdu_create) pdu_create;
  decltype(&::snmp_add_null_var) add;
  decltype(&::snmp_free_pdu) free_pdu;
  decltype(&::generate_Ku) make_key;
  const oid *sha, *aes;
};

/// Before the first session, once: no configuration file, no MIB, no state on disk and no word on stderr.
void prepare(const Library& library) {
  using Boolean = decltype(&::netsnmp_ds_set_boolean);
  const auto set = library.symbol<Boolean>("netsnmp_ds_set_boolean");
  for (const int option : {NETSNMP_DS_LIB_DONT_READ_CONFIGS, NETSNMP_DS_LIB_DONT_PERSIST_STATE,
                           NETSNMP_DS_LIB_DISABLE_PERSISTENT_LOAD, NETSNMP_DS_LIB_DISABLE_PERSISTENT_SAVE})
    (void)set(NETSNMP_DS_LIBRARY_ID, option, 1);
  // Net-SNMP 5.9 makes a folder for indexes of certificates in its state all the same; below no folder it cannot.
  for (const auto& [name, value] :
       {std::pair("MIBS", ""), {"MIBDIRS", "/dev/null"}, {"SNMP_PERSISTENT_DIR", "/dev/null"}})
    (void)::setenv(name, value, 1);  // fails for lack of memory only
  library.symbol<decltype(&::snmp_disable_log)>("snmp_disable_log")();
  // Without any handler it writes to stderr.
  (void)library.symbol<decltype(&::netsnmp_register_loghandler)>("netsnmp_register_loghandler")(NETSNMP_LOGHANDLER_NONE,
                                                                                                LOG_DEBUG);
  library.symbol<decltype(&::init_snmp)>("init_snmp")("assay");
}

SnmpFunctions snmp_functions() {
  static const Library library = [] {
    Library opened = Library::open("libnetsnmp.so.40", "Net-SNMP");
    prepare(opened);
    return opened;
  }();
  return {.library = library,
          .session_init = library.symbol<decltype(&::snmp_sess_init)>("snmp_sess_init"),
          .open = library.symbol<decltype(&::snmp_sess_open)>("snmp_sess_open"),
          .ask = library.symbol<decltype(&::snmp_sess_synch_response)>("snmp_sess_synch_response"),
          .close = library.symbol<decltype(&::snmp_sess_close)>("snmp_sess_close"),
          .pdu_create = library.symbol<decltype(&::snmp_pdu_create)>("snmp_pdu_create"),
          .add = library.symbol<decltype(&::snmp_add_null_var)>("snmp_add_null_var"),
          .free_pdu = library.symbol<decltype(&::snmp_free_pdu)>("snmp_free_pdu"),
          .make_key = library.symbol<decltype(&::generate_Ku)>("generate_Ku"),
          .sha = library.symbol<const oid*>("usmHMACSHA1AuthProtocol"),
          .aes = library.symbol<const oid*>("usmAESPrivProtocol")};
}

constexpr int kSnmpPort = 161;
constexpr int kAttempts = 2;                 // one datagram may be lost
constexpr std::size_t kObjectsOfOne = 16;    // of one request, so that an answer fits a datagram
constexpr std::size_t kProtocolLength = 10;  // of USM_AUTH_PROTO_SHA_LEN and USM_PRIV_PROTO_AES_LEN
constexpr double kMicroseconds = 1e6;

std::vector<oid> numbers_of(const std::string& text) {
  std::vector<oid> numbers;
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  while (at < end) {
    oid number = 0;
    const auto [next, error] = std::from_chars(at, end, number);
    if (error != std::errc{}) break;
    numbers.push_back(number);
    at = next + 1;
  }
  return numbers;
}

std::optional<double> number_of(const variable_list& variable) {
  switch (variable.type) {
    case ASN_INTEGER:
      return static_cast<double>(*variable.val.integer);
    case ASN_GAUGE:
    case ASN_COUNTER:
    case ASN_TIMETICKS:
      return static_cast<double>(static_cast<std::uint32_t>(*variable.val.integer));
    default:
      return std::nullopt;  // noSuchObject and noSuchInstance among them
  }
}

class Strip {
 public:
  Strip(Meter meter, MeterLogin login, SnmpFunctions functions)
      : meter_(std::move(meter)),
        login_(std::move(login)),
        api_(std::move(functions)),
        objects_(strip_objects(meter_)) {
    for (const auto& object : objects_) {
      wanted_.push_back(object.oid);
      if (!object.other_oid.empty()) wanted_.push_back(object.other_oid);
      if (!object.digits_oid.empty()) wanted_.push_back(object.digits_oid);
    }
  }
  Strip(const Strip&) = delete;
  Strip& operator=(const Strip&) = delete;
  ~Strip() { drop(); }

  std::vector<MeterReading> read() {
    if (session_ == nullptr) connect();
    std::map<std::string, std::optional<double>> found;
    const double before_s = utc_now_s();
    for (std::size_t i = 0; i < wanted_.size(); i += kObjectsOfOne)
      ask({wanted_.begin() + static_cast<std::ptrdiff_t>(i),
           wanted_.begin() + static_cast<std::ptrdiff_t>(std::min(i + kObjectsOfOne, wanted_.size()))},
          found);
    const double taken_s = (before_s + utc_now_s()) / 2;
    std::vector<MeterReading> readings;
    for (const auto& object : objects_) {
      auto number = found[object.oid];
      // On newer firmware the old column may answer 0 while the signed one has the value.
      if (!object.other_oid.empty() && found[object.other_oid]) number = found[object.other_oid];
      MeterReading one =
          strip_reading(object, number, object.digits_oid.empty() ? 0 : found[object.digits_oid].value_or(-1));
      one.taken_s = taken_s;
      one.averaging_s = meter_.averaging_s;
      one.accuracy = meter_.accuracy;
      readings.push_back(std::move(one));
    }
    return readings;
  }

 private:
  void connect() {
    netsnmp_session session;
    api_.session_init(&session);
    std::string peer = fmt::format("udp:{}:{}", meter_.address, meter_.port == 0 ? kSnmpPort : meter_.port);
    if (meter_.address.find(':') != std::string::npos)
      peer = fmt::format("udp6:[{}]:{}", meter_.address, meter_.port == 0 ? kSnmpPort : meter_.port);
    session.peername = peer.data();
    session.retries = kAttempts - 1;
    session.timeout = static_cast<long>(meter_.timeout_s * kMicroseconds / kAttempts);
    if (!login_.community.empty()) {
      session.version = SNMP_VERSION_2c;
      session.community = reinterpret_cast<u_char*>(login_.community.data());
      session.community_len = login_.community.size();
    } else {
      take_user(session);
    }
    session_ = api_.open(&session);  // makes its own copy; with v3 it asks for the engine
    if (session_ == nullptr) fail("no session: it does not answer, or refuses user or passwords");
  }
  void take_user(netsnmp_session& session) {
    session.version = SNMP_VERSION_3;
    session.securityLevel = SNMP_SEC_LEVEL_AUTHPRIV;
    session.securityName = login_.user.data();
    session.securityNameLen = login_.user.size();
    // The library frees nothing of these two: they are its own constants.
    session.securityAuthProto = const_cast<oid*>(api_.sha);
    session.securityAuthProtoLen = kProtocolLength;
    session.securityPrivProto = const_cast<oid*>(api_.aes);
    session.securityPrivProtoLen = kProtocolLength;
    session.securityAuthKeyLen = sizeof session.securityAuthKey;
    session.securityPrivKeyLen = sizeof session.securityPrivKey;
    const auto key = [&](const std::string& password, u_char* into, std::size_t& length) {
      return api_.make_key(api_.sha, static_cast<u_int>(kProtocolLength),
                           reinterpret_cast<const u_char*>(password.data()), password.size(), into, &length) == 0;
    };
    if (!key(login_.password, session.securityAuthKey, session.securityAuthKeyLen) ||
        !key(login_.privacy_password, session.securityPrivKey, session.securityPrivKeyLen))
      fail("its passwords make no key");
  }
  void ask(const std::vector<std::string>& names, std::map<std::string, std::optional<double>>& found) {
    netsnmp_pdu* const request = api_.pdu_create(SNMP_MSG_GET);
    if (request == nullptr) fail("no memory for a request");
    for (const auto& name : names) {
      const auto numbers = numbers_of(name);
      (void)api_.add(request, numbers.data(), numbers.size());  // a missing one is an absent reading
    }
    netsnmp_pdu* answer = nullptr;
    const int status = api_.ask(session_, request, &answer);  // frees the request
    const std::unique_ptr<netsnmp_pdu, decltype(api_.free_pdu)> owner(answer, api_.free_pdu);
    if (status != STAT_SUCCESS || answer == nullptr)
      fail(fmt::format("no answer within {} s, or one that is refused", meter_.timeout_s));
    if (answer->errstat != SNMP_ERR_NOERROR) fail(fmt::format("answers with SNMP error {}", answer->errstat));
    for (const variable_list* one = answer->variables; one != nullptr; one = one->next_variable) {
      for (const auto& name : names) {
        const auto numbers = numbers_of(name);
        if (numbers.size() == one->name_length && std::equal(numbers.begin(), numbers.end(), one->name))
          found[name] = number_of(*one);
      }
    }
  }
  void drop() {
    if (session_ != nullptr) (void)api_.close(session_);  // sends nothing
    session_ = nullptr;
  }
  [[noreturn]] void fail(const std::string& what) {
    drop();
    throw MeterFault(fault_text(meter_, what));
  }

  Meter meter_;
  MeterLogin login_;
  SnmpFunctions api_;
  std::vector<StripObject> objects_;
  std::vector<std::string> wanted_;
  void* session_ = nullptr;
};

}  // namespace

MeterSession open_snmp(const Meter& meter, MeterLogin login) {
  const std::shared_ptr<Strip> strip = std::make_shared<Strip>(meter, std::move(login), snmp_functions());
  return [strip] { return strip->read(); };
}

}  // namespace assay::meters
#else
namespace assay::meters {
MeterSession open_snmp(const Meter& meter, MeterLogin) {
  throw Skip(fault_text(meter, "this build reads no SNMP: install libsnmp-dev and build again"));
}
}  // namespace assay::meters
#endif
