// fake_modbus: a Modbus device by libmodbus's own server: PORT_FILE FLOAT_W. Input registers 3059 and 3060 hold the
// power in kW, low word first; holding register 10 holds 4998, the frequency in 0.01 Hz. It ends with its client or its
// parent.
#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include <modbus/modbus.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  prctl(PR_SET_PDEATHSIG, 9);
  modbus_t* device = modbus_new_tcp("127.0.0.1", 0);
  modbus_mapping_t* map = modbus_mapping_new(0, 0, 100, 4000);
  int listener = device == nullptr ? -1 : modbus_tcp_listen(device, 4);
  if (map == nullptr || listener < 0) return 1;
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(std::strtod(argv[2], nullptr) / 1000));
  map->tab_input_registers[3059] = static_cast<std::uint16_t>(bits & 0xffff);
  map->tab_input_registers[3060] = static_cast<std::uint16_t>(bits >> 16);
  map->tab_registers[10] = 4998;
  sockaddr_in own{};
  socklen_t length = sizeof own;
  getsockname(listener, reinterpret_cast<sockaddr*>(&own), &length);
  const std::string path = argv[1];
  std::ofstream(path + ".new") << ntohs(own.sin_port);
  if (std::rename((path + ".new").c_str(), path.c_str()) != 0) return 1;
  while (modbus_tcp_accept(device, &listener) >= 0) {
    std::uint8_t query[MODBUS_TCP_MAX_ADU_LENGTH];
    for (int got = modbus_receive(device, query); got >= 0; got = modbus_receive(device, query)) {
      if (got > 0) modbus_reply(device, query, got, map);
    }
  }
  return 0;
}
