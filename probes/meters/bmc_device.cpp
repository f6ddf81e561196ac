// bmc_device: sends IPMI requests through the kernel's driver, which speaks KCS, BT or SSIF with the BMC
// (linux/ipmi.h).
#include "probes/meters/bmc_device.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <memory>
#include <span>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <linux/ipmi.h>
#include <poll.h>
#include <sys/ioctl.h>

#include <fmt/format.h>

#include "probes/core/descriptor.h"
#include "probes/core/probe.h"

namespace assay::meters {
namespace {

constexpr int kMostOldAnswers = 16;  // to requests that were given up before

class BmcDevice {
 public:
  BmcDevice(std::string device, double timeout_s)
      : name_(std::move(device)), timeout_s_(timeout_s), file_(::open(name_.c_str(), O_RDWR | O_CLOEXEC)) {
    if (file_) return;
    const int cause = errno;
    std::string reason = fmt::format("{} cannot be opened: {}", name_, std::generic_category().message(cause));
    if (cause == ENOENT)
      reason += "; there is no BMC, or the kernel's driver is not loaded: modprobe ipmi_si ipmi_devintf";
    if (cause == EACCES || cause == EPERM) reason += "; it is for root";
    throw Skip(reason);
  }

  std::vector<MeterReading> read() {
    const double before_s = utc_now_s();
    send(kDcmiPowerRequest);
    std::array<unsigned char, 64> bytes{};
    const std::size_t length = receive(bytes);
    const double after_s = utc_now_s();
    const auto power = dcmi_power_of({bytes.data(), length});
    if (!power)
      throw MeterFault(fmt::format("{}: the BMC refuses DCMI Get Power Reading, completion code {:02x}h", name_,
                                   length == 0 ? 0xff : bytes[0]));
    return {{.quantity = Quantity::power,
             .value = power->current_w,
             .taken_s = (before_s + after_s) / 2,
             .quantum = 1,
             .instrument = "ipmi DCMI Get Power Reading, in band",
             .absent = !power->measuring,
             .stated_s = power->stated_s}};
  }

  std::optional<DcmiLimit> limit() {
    send(kDcmiLimitRequest);
    std::array<unsigned char, 64> bytes{};
    const std::size_t length = receive(bytes);
    if (length > 0 && bytes[0] == kDcmiNoLimit) return std::nullopt;
    const auto limit = dcmi_limit_of({bytes.data(), length});
    if (!limit)
      throw MeterFault(fmt::format("{}: the BMC refuses DCMI Get Power Limit, completion code {:02x}h", name_,
                                   length == 0 ? 0xff : bytes[0]));
    return limit;
  }

 private:
  void send(std::span<const std::uint8_t> command) {
    ipmi_system_interface_addr address{
        .addr_type = IPMI_SYSTEM_INTERFACE_ADDR_TYPE, .channel = IPMI_BMC_CHANNEL, .lun = 0};
    std::vector<unsigned char> data(command.begin() + 1, command.end());
    ipmi_req request{.addr = reinterpret_cast<unsigned char*>(&address),
                     .addr_len = sizeof address,
                     .msgid = ++message_,
                     .msg = {.netfn = kDcmiNetFn,
                             .cmd = command[0],
                             .data_len = static_cast<unsigned short>(data.size()),
                             .data = data.data()}};
    if (::ioctl(file_.number(), IPMICTL_SEND_COMMAND, &request) != 0)
      throw MeterFault(fmt::format("{} takes no request: {}", name_, std::generic_category().message(errno)));
  }
  /// The length of the answer to the last request.
  std::size_t receive(std::array<unsigned char, 64>& bytes) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::duration<double>(timeout_s_);
    for (int i = 0; i < kMostOldAnswers; ++i) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(limit - std::chrono::steady_clock::now());
      pollfd wanted{.fd = file_.number(), .events = POLLIN, .revents = 0};
      if (left.count() <= 0 || ::poll(&wanted, 1, static_cast<int>(left.count())) <= 0) break;
      ipmi_addr address{};
      ipmi_recv answer{};
      answer.addr = reinterpret_cast<unsigned char*>(&address);
      answer.addr_len = sizeof address;
      answer.msg.data = bytes.data();
      answer.msg.data_len = static_cast<unsigned short>(bytes.size());
      if (::ioctl(file_.number(), IPMICTL_RECEIVE_MSG_TRUNC, &answer) != 0)
        throw MeterFault(fmt::format("{}: no answer: {}", name_, std::generic_category().message(errno)));
      if (answer.recv_type == IPMI_RESPONSE_RECV_TYPE && answer.msgid == message_) return answer.msg.data_len;
    }
    throw MeterFault(fmt::format("{}: no answer within {} s", name_, timeout_s_));
  }

  std::string name_;
  double timeout_s_;
  Descriptor file_;
  long message_ = 0;
};

}  // namespace

MeterSession open_bmc_device(const std::string& device, double timeout_s) {
  const std::shared_ptr<BmcDevice> bmc = std::make_shared<BmcDevice>(device, timeout_s);
  return [bmc] { return bmc->read(); };
}

std::optional<DcmiLimit> bmc_power_limit(const std::string& device, double timeout_s) {
  return BmcDevice(device, timeout_s).limit();
}

}  // namespace assay::meters
