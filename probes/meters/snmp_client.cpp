// snmp_client: SNMP v2c or v3 (SHA, AES), by Net-SNMP.
#include "probes/meters/snmp_client.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "probes/core/library.h"
#include "probes/core/probe.h"

namespace assay::meters {

Oid oid_of(std::string_view text) {
  Oid numbers;
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  while (at < end) {
    std::uint32_t number = 0;
    const auto [next, error] = std::from_chars(at, end, number);
    if (error != std::errc{}) break;
    numbers.push_back(number);
    at = next + 1;
  }
  return numbers;
}

void SnmpClient::fail(const std::string& what) const { throw MeterFault(fault_text(device, what)); }

void ask(const SnmpClient& client, const std::vector<Oid>& names, double limit_s,
         const std::function<void(SnmpVariable&)>& take) {
  for (std::size_t i = 0; i < names.size(); i += kMostObjects) {
    if (utc_now_s() > limit_s) client.fail(fmt::format("has answered {} of {} questions in time", i, names.size()));
    const auto end = names.begin() + static_cast<std::ptrdiff_t>(std::min(i + kMostObjects, names.size()));
    for (auto& one : client.get({names.begin() + static_cast<std::ptrdiff_t>(i), end})) take(one);
  }
}

}  // namespace assay::meters

#if __has_include(<net-snmp/net-snmp-includes.h>)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast"
#include <net-snmp/net-snmp-config.h>
// Its includes need the line above first.
#include <net-snmp/net-snmp-includes.h>
#pragma GCC diagnostic pop

namespace assay::meters {
namespace {

/// Before the first session, once: no configuration file, no MIB, no state on disk and no word on stderr.
void prepare(const Library& library) {
  const decltype(&::netsnmp_ds_set_boolean) set = library.function("netsnmp_ds_set_boolean");
  const decltype(&::snmp_disable_log) disable_log = library.function("snmp_disable_log");
  const decltype(&::netsnmp_register_loghandler) add_handler = library.function("netsnmp_register_loghandler");
  const decltype(&::init_snmp) init = library.function("init_snmp");
  for (const int option : {NETSNMP_DS_LIB_DONT_READ_CONFIGS, NETSNMP_DS_LIB_DONT_PERSIST_STATE,
                           NETSNMP_DS_LIB_DISABLE_PERSISTENT_LOAD, NETSNMP_DS_LIB_DISABLE_PERSISTENT_SAVE})
    (void)set(NETSNMP_DS_LIBRARY_ID, option, 1);
  // Net-SNMP 5.9 makes a folder for indexes of certificates in its state all the same; below no folder it cannot.
  for (const auto& [name, value] :
       {std::pair("MIBS", ""), {"MIBDIRS", "/dev/null"}, {"SNMP_PERSISTENT_DIR", "/dev/null"}})
    (void)::setenv(name, value, 1);  // fails for lack of memory only
  disable_log();
  // Without any handler it writes to stderr.
  (void)add_handler(NETSNMP_LOGHANDLER_NONE, LOG_DEBUG);
  init("assay");
}

Library opened_library() {
  static const Library library = [] {
    Library opened = Library::open("libnetsnmp.so.40", "Net-SNMP");
    prepare(opened);
    return opened;
  }();
  return library;
}

struct SnmpFunctions {
  Library library = opened_library();
  decltype(&::snmp_sess_init) session_init = library.function("snmp_sess_init");
  decltype(&::snmp_sess_open) open = library.function("snmp_sess_open");
  decltype(&::snmp_sess_synch_response) ask = library.function("snmp_sess_synch_response");
  decltype(&::snmp_sess_close) close = library.function("snmp_sess_close");
  decltype(&::snmp_pdu_create) pdu_create = library.function("snmp_pdu_create");
  decltype(&::snmp_add_null_var) add = library.function("snmp_add_null_var");
  decltype(&::snmp_free_pdu) free_pdu = library.function("snmp_free_pdu");
  decltype(&::generate_Ku) make_key = library.function("generate_Ku");
  const oid* sha = library.function("usmHMACSHA1AuthProtocol");
  const oid* aes = library.function("usmAESPrivProtocol");
};

constexpr int kSnmpPort = 161;
constexpr int kAttempts = 2;                 // one datagram may be lost
constexpr std::size_t kProtocolLength = 10;  // of USM_AUTH_PROTO_SHA_LEN and USM_PRIV_PROTO_AES_LEN
constexpr double kMicroseconds = 1e6;
constexpr std::size_t kLongestText = 255;  // of a name of a port, a system or a sensor

SnmpVariable read_variable(const variable_list& from) {
  SnmpVariable one{.name = {from.name, from.name + from.name_length}};
  switch (from.type) {
    case ASN_INTEGER:
      one.type = SnmpType::integer;
      one.integer = static_cast<std::int32_t>(*from.val.integer);
      break;
    case ASN_GAUGE:
    case ASN_COUNTER:
    case ASN_TIMETICKS:
      one.type =
          from.type == ASN_GAUGE ? SnmpType::gauge : (from.type == ASN_COUNTER ? SnmpType::counter32 : SnmpType::ticks);
      one.count = static_cast<std::uint32_t>(*from.val.integer);
      break;
    case ASN_COUNTER64:
      one.type = SnmpType::counter64;
      one.count = (static_cast<std::uint64_t>(from.val.counter64->high) << 32) |
                  static_cast<std::uint32_t>(from.val.counter64->low);
      break;
    case ASN_OCTET_STR:
      one.type = SnmpType::text;
      one.text.assign(reinterpret_cast<const char*>(from.val.string), std::min(from.val_len, kLongestText));
      break;
    case ASN_OBJECT_ID:
      one.type = SnmpType::oid;
      one.oid.assign(from.val.objid, from.val.objid + from.val_len / sizeof(oid));
      break;
    case SNMP_ENDOFMIBVIEW:
      one.type = SnmpType::end;
      break;
    default:
      break;  // noSuchObject and noSuchInstance among them
  }
  return one;
}

class Agent {
 public:
  Agent(Meter meter, MeterLogin login) : meter_(std::move(meter)), login_(std::move(login)) {}
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;
  ~Agent() { drop(); }

  std::vector<SnmpVariable> get(const std::vector<Oid>& names) { return ask(SNMP_MSG_GET, names, 0); }
  std::vector<SnmpVariable> next(const Oid& after, int rows) { return ask(SNMP_MSG_GETBULK, {after}, rows); }

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
  std::vector<SnmpVariable> ask(int question, const std::vector<Oid>& names, int rows) {
    if (session_ == nullptr) connect();
    netsnmp_pdu* const request = api_.pdu_create(question);
    if (request == nullptr) fail("no memory for a request");
    if (question == SNMP_MSG_GETBULK) {
      request->non_repeaters = 0;
      request->max_repetitions = rows;
    }
    for (const auto& name : names) {
      const std::vector<oid> numbers(name.begin(), name.end());
      (void)api_.add(request, numbers.data(), numbers.size());  // a missing one is an absent reading
    }
    netsnmp_pdu* answer = nullptr;
    const int status = api_.ask(session_, request, &answer);  // frees the request
    const std::unique_ptr<netsnmp_pdu, decltype(api_.free_pdu)> owner(answer, api_.free_pdu);
    if (status != STAT_SUCCESS || answer == nullptr)
      fail(fmt::format("no answer within {} s, or one that is refused", meter_.timeout_s));
    if (answer->errstat != SNMP_ERR_NOERROR) fail(fmt::format("answers with SNMP error {}", answer->errstat));
    std::vector<SnmpVariable> found;
    for (const variable_list* one = answer->variables; one != nullptr; one = one->next_variable)
      found.push_back(read_variable(*one));
    return found;
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
  void* session_ = nullptr;
};

}  // namespace

SnmpClient open_snmp_client(const Meter& device, MeterLogin login) {
  const std::shared_ptr<Agent> agent = std::make_shared<Agent>(device, std::move(login));
  return {.device = device,
          .get = [agent](const std::vector<Oid>& names) { return agent->get(names); },
          .next = [agent](const Oid& after, int rows) { return agent->next(after, rows); }};
}

}  // namespace assay::meters
#else
namespace assay::meters {
SnmpClient open_snmp_client(const Meter& device, MeterLogin) {
  throw Skip(fault_text(device, "this build reads no SNMP: install libsnmp-dev and build again"));
}
}  // namespace assay::meters
#endif
