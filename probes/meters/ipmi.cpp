// ipmi: the power of a node from its BMC over the network (RMCP+), by libfreeipmi.
#include <algorithm>
#include <array>
#include <memory>

#include <fmt/format.h>

#include "probes/core/library.h"
#include "probes/core/probe.h"
#include "probes/meters/registers.h"
#include "probes/meters/session.h"

#if __has_include(<freeipmi/freeipmi.h>)
#include <freeipmi/freeipmi.h>

namespace assay::meters {
namespace {

struct IpmiFunctions {
  Library library = Library::open("libfreeipmi.so.17", "libfreeipmi");
  decltype(&::ipmi_ctx_create) create = library.function("ipmi_ctx_create");
  decltype(&::ipmi_ctx_open_outofband_2_0) open = library.function("ipmi_ctx_open_outofband_2_0");
  decltype(&::ipmi_cmd_raw) raw = library.function("ipmi_cmd_raw");
  decltype(&::ipmi_ctx_errormsg) words = library.function("ipmi_ctx_errormsg");
  decltype(&::ipmi_ctx_errnum) error = library.function("ipmi_ctx_errnum");
  decltype(&::ipmi_ctx_close) close = library.function("ipmi_ctx_close");
  decltype(&::ipmi_ctx_destroy) destroy = library.function("ipmi_ctx_destroy");
};

constexpr int kIpmiPort = 623;
// HMAC-SHA256 with AES, the only one of newer BMCs, then HMAC-SHA1 with AES, which all have. No suite without
// encryption. Some BMCs (and ipmi_sim of OpenIPMI 2.0.33) grant a privilege only if the open-session request names it.
struct Opening {
  std::uint8_t suite;
  unsigned workaround;
};
constexpr std::array<Opening, 3> kOpenings = {
    {{17, 0}, {3, 0}, {3, IPMI_WORKAROUND_FLAGS_OUTOFBAND_2_0_OPEN_SESSION_PRIVILEGE}}};
constexpr std::uint8_t kInsufficientPrivilege = 0xd4;
constexpr double kMilliseconds = 1e3;

class Bmc {
 public:
  Bmc(Meter meter, MeterLogin login) : meter_(std::move(meter)), login_(std::move(login)) {}
  Bmc(const Bmc&) = delete;
  Bmc& operator=(const Bmc&) = delete;
  ~Bmc() { drop(); }

  std::vector<MeterReading> read() {
    std::array<std::uint8_t, 64> answer{};
    double before_s = utc_now_s();
    int length = ask(answer);
    // DCMI asks for the privilege of a user; a BMC that wants more is asked as administrator from then on.
    if (length > 1 && answer[1] == kInsufficientPrivilege && privilege_ == IPMI_PRIVILEGE_LEVEL_USER) {
      drop();
      privilege_ = IPMI_PRIVILEGE_LEVEL_ADMIN;
      before_s = utc_now_s();
      length = ask(answer);
    }
    const double after_s = utc_now_s();
    // The library puts the number of the command before the completion code.
    const auto power =
        length < 2 ? std::nullopt : dcmi_power_of({answer.data() + 1, static_cast<std::size_t>(length - 1)});
    if (!power)
      fail(fmt::format("DCMI Get Power Reading is refused, completion code {:02x}h", length < 2 ? 0xff : answer[1]));
    return {{.quantity = Quantity::power,
             .value = power->current_w,
             .taken_s = (before_s + after_s) / 2,
             .quantum = 1,
             .instrument = "ipmi DCMI Get Power Reading",
             .absent = !power->measuring,
             .averaging_s = meter_.averaging_s,
             .accuracy = meter_.accuracy,
             .stated_s = power->stated_s}};
  }

 private:
  /// Sends the request; bytes of the answer, the number of the command first.
  int ask(std::array<std::uint8_t, 64>& answer) {
    if (context_ == nullptr) connect();
    const int length = api_.raw(context_, 0, kDcmiNetFn, kDcmiPowerRequest, sizeof kDcmiPowerRequest, answer.data(),
                                static_cast<unsigned>(answer.size()));
    if (length < 0) fail(fmt::format("DCMI Get Power Reading: {}", api_.words(context_)));
    return length;
  }
  void connect() {
    const std::string host = fmt::format("{}:{}", meter_.address, meter_.port == 0 ? kIpmiPort : meter_.port);
    const auto session_ms = static_cast<unsigned>(meter_.timeout_s * kMilliseconds);
    const unsigned again_ms = std::max(50U, session_ms / 4);
    std::string cause;
    for (const auto& [suite, workaround] : kOpenings) {
      context_ = api_.create();
      if (context_ == nullptr) fail("no memory for a session");
      if (api_.open(context_, host.c_str(), login_.user.c_str(), login_.password.c_str(), nullptr, 0, privilege_, suite,
                    session_ms, again_ms, workaround, 0) >= 0)
        return;
      cause = api_.words(context_);
      const int error = api_.error(context_);
      api_.destroy(context_);
      context_ = nullptr;
      if (error == IPMI_ERR_CONNECTION_TIMEOUT || error == IPMI_ERR_SESSION_TIMEOUT) break;
    }
    fail(fmt::format("no session: {}", cause));
  }
  void drop() {
    if (context_ == nullptr) return;
    (void)api_.close(context_);  // a BMC that does not answer keeps its session until its own time is over
    api_.destroy(context_);
    context_ = nullptr;
  }
  [[noreturn]] void fail(const std::string& what) {
    drop();
    throw MeterFault(fault_text(meter_, what));
  }

  Meter meter_;
  MeterLogin login_;
  IpmiFunctions api_;
  std::uint8_t privilege_ = IPMI_PRIVILEGE_LEVEL_USER;
  ipmi_ctx_t context_ = nullptr;
};

}  // namespace

MeterSession open_ipmi(const Meter& meter, MeterLogin login) {
  const std::shared_ptr<Bmc> bmc = std::make_shared<Bmc>(meter, std::move(login));
  return [bmc] { return bmc->read(); };
}

}  // namespace assay::meters
#else
namespace assay::meters {
MeterSession open_ipmi(const Meter& meter, MeterLogin) {
  throw Skip(fault_text(meter, "this build reads no IPMI: install libfreeipmi-dev and build again"));
}
}  // namespace assay::meters
#endif
