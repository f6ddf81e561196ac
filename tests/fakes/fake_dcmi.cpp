// fake_dcmi: a module of ipmi_sim that answers DCMI Get Power Reading with the watts in the file that its option names.
#include <cstring>
#include <ctime>
#include <fstream>
#include <string>

extern "C" {
#include <OpenIPMI/mcserv.h>
#include <OpenIPMI/serv.h>
}

namespace {

std::string& watts_file() {
  static std::string path;
  return path;
}

void answer(lmc_data_t*, msg_t* message, unsigned char* reply, unsigned int* length, void*) {
  constexpr unsigned kLength = 19;
  constexpr unsigned char kInvalidCommand = 0xc1, kNotPresent = 0xcb, kGroup = 0xdc, kMeasuring = 0x40;
  *length = 1;
  if (message->cmd != 2) {
    reply[0] = kInvalidCommand;
    return;
  }
  unsigned watts = 0;
  if (!(std::ifstream(watts_file()) >> watts)) {
    reply[0] = kNotPresent;
    return;
  }
  std::memset(reply, 0, kLength);
  reply[1] = kGroup;
  for (int i = 2; i < 10; i += 2) {
    reply[i] = static_cast<unsigned char>(watts & 255U);
    reply[i + 1] = static_cast<unsigned char>(watts >> 8U);
  }
  const auto now = static_cast<unsigned>(std::time(nullptr));
  const unsigned period_ms = 1000;
  std::memcpy(reply + 10, &now, sizeof now);
  std::memcpy(reply + 14, &period_ms, sizeof period_ms);
  reply[18] = kMeasuring;
  *length = kLength;
}

}  // namespace

extern "C" int ipmi_sim_module_print_version(sys_data_t*, char*) { return 0; }

extern "C" int ipmi_sim_module_init(sys_data_t*, const char* options) {
  watts_file() = options;
  ipmi_emu_register_group_extension_handler(0xdc, answer, nullptr);
  return 0;
}
