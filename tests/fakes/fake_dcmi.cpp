// fake_dcmi: a module of ipmi_sim that answers DCMI Get Power Reading and Get Power Limit from the file that its option
// names: the watts, and after them the limit, where one is in force.
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

constexpr unsigned char kGroup = 0xdc;

void put(unsigned char* to, unsigned value, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) to[i] = static_cast<unsigned char>(value >> 8 * i);
}

unsigned power(unsigned watts, unsigned char* reply) {
  constexpr unsigned kLength = 19;
  constexpr unsigned char kMeasuring = 0x40;
  std::memset(reply, 0, kLength);
  reply[1] = kGroup;
  for (int i = 2; i < 10; i += 2) put(reply + i, watts, 2);
  put(reply + 10, static_cast<unsigned>(std::time(nullptr)), 4);
  put(reply + 14, 1000, 4);  // the period, in ms
  reply[18] = kMeasuring;
  return kLength;
}

unsigned limit(unsigned watts, unsigned char* reply) {
  constexpr unsigned kLength = 15;
  std::memset(reply, 0, kLength);
  reply[1] = kGroup;
  put(reply + 5, watts, 2);
  put(reply + 7, 2000, 4);  // the time until it is corrected, in ms
  put(reply + 13, 1, 2);    // the period, in s
  return kLength;
}

void answer(lmc_data_t*, msg_t* message, unsigned char* reply, unsigned int* length, void*) {
  constexpr unsigned char kReading = 2, kLimit = 3, kNoLimit = 0x80, kInvalidCommand = 0xc1, kNotPresent = 0xcb;
  unsigned watts = 0, most = 0;
  std::ifstream file(watts_file());
  *length = 1;
  if (message->cmd != kReading && message->cmd != kLimit)
    reply[0] = kInvalidCommand;
  else if (!(file >> watts))
    reply[0] = kNotPresent;
  else if (message->cmd == kReading)
    *length = power(watts, reply);
  else if (!(file >> most))
    reply[0] = kNoLimit;
  else
    *length = limit(most, reply);
}

}  // namespace

extern "C" int ipmi_sim_module_print_version(sys_data_t*, char*) { return 0; }

extern "C" int ipmi_sim_module_init(sys_data_t*, const char* options) {
  watts_file() = options;
  ipmi_emu_register_group_extension_handler(0xdc, answer, nullptr);
  return 0;
}
