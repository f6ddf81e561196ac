// smbios_table: structures of an SMBIOS table, byte by byte (DSP0134 3.7, section 7.18).
#pragma once

#include <cstdint>
#include <string>

namespace assay::health {

/// What a test says about one Memory Device; `length` is that of its formatted area.
struct MemoryDevice {
  std::string locator = "DIMM_A1";
  std::string bank = "BANK 0";
  std::uint16_t size = 0;  ///< the code at offset 0Ch
  std::uint32_t extended_mib = 0;
  std::string serial = "04A1B2C3";
  std::uint16_t rated = 4800;
  std::size_t length = 0x5C;
  std::uint16_t handle = 0x1100;
};

/// The structure of type 17 that says so, with its strings.
inline std::string memory_device(const MemoryDevice& device) {
  std::string body(device.length, '\0');
  const auto put = [&](std::size_t offset, std::uint32_t value, std::size_t size) {
    for (std::size_t i = 0; i < size && offset + i < body.size(); ++i)
      body[offset + i] = static_cast<char>(value >> (8 * i));
  };
  put(0x00, 17, 1);
  put(0x01, static_cast<std::uint32_t>(device.length), 1);
  put(0x02, device.handle, 2);
  put(0x0C, device.size, 2);
  put(0x10, 1, 1);
  put(0x11, 2, 1);
  put(0x12, 0x22, 1);  // DDR5
  put(0x15, device.rated, 2);
  put(0x17, 3, 1);
  put(0x18, 4, 1);
  put(0x1A, 5, 1);
  put(0x1C, device.extended_mib, 4);
  put(0x20, 4400, 2);
  const std::string zero(1, '\0');
  return body + device.locator + zero + device.bank + zero + "Samsung" + zero + device.serial + zero +
         "M321R8GA0BB0  " + zero + zero;
}

/// A structure of another type without any string.
inline std::string bios_entry() { return std::string("\x00\x06\x01\x00\xAA\xBB\x00\x00", 8); }

/// The structure that ends a table.
inline std::string end_of_table() { return std::string("\x7F\x04\xFF\xFE\x00\x00", 6); }

}  // namespace assay::health
