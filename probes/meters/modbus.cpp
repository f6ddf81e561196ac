// modbus: registers of a device over TCP, by libmodbus.
#include <cerrno>
#include <cstdint>
#include <memory>

#include <fmt/format.h>

#include "probes/core/library.h"
#include "probes/core/probe.h"
#include "probes/meters/registers.h"
#include "probes/meters/session.h"

#if __has_include(<modbus/modbus.h>)
#include <modbus/modbus.h>

namespace assay::meters {
namespace {

struct ModbusFunctions {
  Library library = Library::open("libmodbus.so.5", "libmodbus");
  decltype(&::modbus_new_tcp_pi) new_tcp = library.function("modbus_new_tcp_pi");
  decltype(&::modbus_set_response_timeout) set_timeout = library.function("modbus_set_response_timeout");
  decltype(&::modbus_set_byte_timeout) set_byte_timeout = library.function("modbus_set_byte_timeout");
  decltype(&::modbus_set_slave) set_unit = library.function("modbus_set_slave");
  decltype(&::modbus_connect) connect = library.function("modbus_connect");
  decltype(&::modbus_read_registers) read_holding = library.function("modbus_read_registers");
  decltype(&::modbus_read_input_registers) read_input = library.function("modbus_read_input_registers");
  decltype(&::modbus_close) close = library.function("modbus_close");
  decltype(&::modbus_free) free = library.function("modbus_free");
  decltype(&::modbus_strerror) words = library.function("modbus_strerror");
};

constexpr int kModbusPort = 502;
constexpr double kMicroseconds = 1e6;

class ModbusDevice {
 public:
  explicit ModbusDevice(Meter meter) : meter_(std::move(meter)) {}
  ModbusDevice(const ModbusDevice&) = delete;
  ModbusDevice& operator=(const ModbusDevice&) = delete;
  ~ModbusDevice() { drop(); }

  std::vector<MeterReading> read() {
    if (context_ == nullptr) connect();
    std::vector<MeterReading> readings;
    const double deadline_s = utc_now_s() + meter_.timeout_s * (1 + static_cast<double>(meter_.registers.size()) / 8);
    for (const auto& one : meter_.registers) {
      std::uint16_t words[4] = {};
      const int count = registers_of(one.type);
      const double before_s = utc_now_s();
      if (before_s > deadline_s) fail("answers too slowly");
      const int got = (one.input ? api_.read_input : api_.read_holding)(context_, one.address, count, words);
      if (got != count) fail(fmt::format("register {}: {}", one.address, api_.words(errno)));
      const auto value = number_of({words, static_cast<std::size_t>(count)}, one);
      readings.push_back({.quantity = one.quantity,
                          .value = value.value_or(0) * one.scale,
                          .taken_s = (before_s + utc_now_s()) / 2,
                          .quantum = one.type == RegisterType::float32 ? 0 : one.scale,
                          .instrument = fmt::format("modbus register {}", one.address),
                          .absent = !value,
                          .averaging_s = meter_.averaging_s,
                          .accuracy = meter_.accuracy});
    }
    return readings;
  }

 private:
  void connect() {
    const std::string port = std::to_string(meter_.port == 0 ? kModbusPort : meter_.port);
    context_ = api_.new_tcp(meter_.address.c_str(), port.c_str());
    if (context_ == nullptr) fail(api_.words(errno));
    const auto seconds = static_cast<std::uint32_t>(meter_.timeout_s);
    const auto rest = static_cast<std::uint32_t>((meter_.timeout_s - seconds) * kMicroseconds);
    (void)api_.set_timeout(context_, seconds, rest);       // fails for no time at all only
    (void)api_.set_byte_timeout(context_, seconds, rest);  // likewise
    (void)api_.set_unit(context_, meter_.unit);            // 0 to 255 are checked in the site
    if (api_.connect(context_) != 0) fail(fmt::format("does not take the connection: {}", api_.words(errno)));
  }
  void drop() {
    if (context_ == nullptr) return;
    api_.close(context_);
    api_.free(context_);
    context_ = nullptr;
  }
  [[noreturn]] void fail(const std::string& what) {
    drop();
    throw MeterFault(fault_text(meter_, what));
  }

  Meter meter_;
  ModbusFunctions api_;
  modbus_t* context_ = nullptr;
};

}  // namespace

MeterSession open_modbus(const Meter& meter) {
  const std::shared_ptr<ModbusDevice> device = std::make_shared<ModbusDevice>(meter);
  return [device] { return device->read(); };
}

}  // namespace assay::meters
#else
namespace assay::meters {
MeterSession open_modbus(const Meter& meter) {
  throw Skip(fault_text(meter, "this build reads no Modbus: install libmodbus-dev and build again"));
}
}  // namespace assay::meters
#endif
