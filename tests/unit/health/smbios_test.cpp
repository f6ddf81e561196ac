// SMBIOS: the memory slots of tables that firmware really writes, and of tables that lie.
#include <gtest/gtest.h>

#include "probes/health/smbios.h"
#include "tests/unit/health/smbios_table.h"

namespace assay::health {

TEST(smbios, modules_are_read_and_an_empty_slot_is_counted_apart) {
  const auto slots = read_memory_slots(bios_entry() + memory_device({.size = 0x7FFF, .extended_mib = 65536}) +
                                       memory_device({.locator = "DIMM_A2", .size = 0}) + end_of_table());
  ASSERT_TRUE(slots);
  EXPECT_EQ(slots->empty, 1);
  ASSERT_EQ(slots->dimms.size(), 1U);
  const Dimm& dimm = slots->dimms[0];
  EXPECT_EQ(dimm.slot, "DIMM_A1");
  EXPECT_EQ(dimm.size, Bytes{64ULL << 30});
  EXPECT_EQ(dimm.memory_type, "DDR5");
  EXPECT_EQ(dimm.transfers_per_s, 4.4e9);
  EXPECT_EQ(dimm.transfers_per_s_rated, 4.8e9);
  EXPECT_EQ(dimm.manufacturer, "Samsung");
  EXPECT_EQ(dimm.serial, "04A1B2C3");
  EXPECT_EQ(dimm.part, "M321R8GA0BB0");
}

TEST(smbios, sizes_come_in_mebibytes_in_kibibytes_or_not_at_all) {
  const auto size_of = [](std::uint16_t code) {
    return read_memory_slots(memory_device({.size = code}))->dimms.at(0).size;
  };
  EXPECT_EQ(size_of(0x4000), Bytes{16ULL << 30});
  EXPECT_EQ(size_of(0x8200), Bytes{512ULL << 10});
  EXPECT_EQ(size_of(0xFFFF), std::nullopt);
  EXPECT_EQ(size_of(0x7FFF), std::nullopt);  // says "see the extended size", which is 0
}

TEST(smbios, what_the_firmware_does_not_tell_is_absent) {
  const auto slots = read_memory_slots(memory_device({.size = 0x4000, .serial = "Not Specified", .rated = 0}));
  EXPECT_EQ(slots->dimms.at(0).serial, std::nullopt);
  EXPECT_EQ(slots->dimms.at(0).transfers_per_s_rated, std::nullopt);
}

TEST(smbios, a_structure_of_an_old_version_tells_what_it_has) {
  const auto slots = read_memory_slots(memory_device({.size = 0x4000, .length = 0x15}));
  ASSERT_EQ(slots->dimms.size(), 1U);
  EXPECT_EQ(slots->dimms[0].size, Bytes{16ULL << 30});
  EXPECT_EQ(slots->dimms[0].transfers_per_s, std::nullopt);
  EXPECT_EQ(slots->dimms[0].part, std::nullopt);
}

TEST(smbios, slots_with_one_locator_are_told_apart_by_bank_or_handle) {
  const auto slots = read_memory_slots(memory_device({.locator = "DIMM 0", .bank = "P0 A", .size = 1, .handle = 0x10}) +
                                       memory_device({.locator = "DIMM 0", .bank = "P0 B", .size = 1, .handle = 0x11}));
  EXPECT_EQ(slots->dimms.at(0).slot, "P0 A/DIMM 0");
  EXPECT_EQ(slots->dimms.at(1).slot, "P0 B/DIMM 0");
  const auto alike =
      read_memory_slots(memory_device({.size = 1, .handle = 0x10}) + memory_device({.size = 1, .handle = 0x11}));
  EXPECT_EQ(alike->dimms.at(0).slot, "0x0010/DIMM_A1");
  EXPECT_EQ(alike->dimms.at(1).slot, "0x0011/DIMM_A1");
}

TEST(smbios, a_table_without_memory_devices_is_no_count_of_zero) {
  EXPECT_FALSE(read_memory_slots(""));
  EXPECT_FALSE(read_memory_slots(bios_entry() + end_of_table()));
}

TEST(smbios, a_table_cut_anywhere_is_read_as_far_as_it_is_whole) {
  const std::string first = memory_device({.size = 0x4000});
  const std::string both = first + memory_device({.locator = "DIMM_B1", .size = 0x4000});
  for (std::size_t length = first.size(); length < both.size(); ++length) {
    const auto slots = read_memory_slots(std::string_view(both).substr(0, length));
    ASSERT_TRUE(slots) << length;
    EXPECT_EQ(slots->dimms.size(), 1U) << length;
  }
}

TEST(smbios, a_length_shorter_than_a_header_ends_the_reading) {
  EXPECT_FALSE(read_memory_slots(std::string("\x11\x03\x00\x00\x00\x00", 6) + memory_device({.size = 1})));
}

TEST(smbios, nothing_after_the_end_of_the_table_is_read) {
  EXPECT_FALSE(read_memory_slots(end_of_table() + memory_device({.size = 1})));
}

/// Modules of 16 GiB in slots of these locators and banks.
MemorySlots modules(std::initializer_list<std::pair<const char*, const char*>> slots, const std::string& more = "") {
  std::string text;
  std::uint16_t handle = 0x10;
  for (const auto& [locator, bank] : slots)
    text += memory_device({.locator = locator, .bank = bank, .size = 0x4000, .handle = handle++});
  return *read_memory_slots(text + more);
}

TEST(smbios, channels_that_a_locator_or_bank_states_are_each_counted_once) {
  constexpr double kChannel = 4400e6 * 8;
  EXPECT_EQ(memory_rate(modules({{"P1-DIMMA1", "P0_Node0_Channel0_Dimm0"},
                                 {"P1-DIMMA2", "P0_Node0_Channel0_Dimm1"},
                                 {"P1-DIMMB1", "P0_Node0_Channel1_Dimm0"},
                                 {"P2-DIMME1", "P1_Node1_Channel0_Dimm0"}})),
            3 * kChannel);
  EXPECT_EQ(memory_rate(modules({{"DIMM 0", "P0 CHANNEL A"}, {"DIMM 1", "P0 CHANNEL A"}, {"DIMM 0", "P1 CHANNEL A"}})),
            2 * kChannel);
  EXPECT_EQ(memory_rate(modules({{"ChannelA-DIMM0", "BANK 0"}, {"ChannelB-DIMM0", "BANK 2"}})), 2 * kChannel);
  EXPECT_EQ(memory_rate(modules({{"A1", "Not Specified"}})), kChannel);
  EXPECT_EQ(memory_fitted(modules({{"A1", "Not Specified"}, {"A2", "Not Specified"}})), 2 * 16.0 * (1 << 30));
}

TEST(smbios, a_memory_channel_structure_states_its_modules_whatever_their_slots_are_called) {
  const std::string first("\x25\x0D\x80\x00\x03\x10\x02\x01\x10\x00\x01\x11\x00\x00\x00", 15);
  const std::string second("\x25\x0A\x81\x00\x03\x10\x01\x01\x12\x00\x00\x00", 12);
  EXPECT_EQ(
      memory_rate(modules({{"A1", "Not Specified"}, {"B7", "Not Specified"}, {"C3", "Not Specified"}}, first + second)),
      2 * 4400e6 * 8);
  EXPECT_EQ(memory_rate(modules({{"A1", "Not Specified"}, {"B7", "Not Specified"}, {"C3", "Not Specified"}}, first)),
            std::nullopt);
}

TEST(smbios, channels_are_not_guessed_from_the_form_of_a_slots_name) {
  EXPECT_EQ(memory_rate(modules({{"A1", "Not Specified"}, {"A2", "Not Specified"}, {"B1", "Not Specified"}})),
            std::nullopt);
  EXPECT_EQ(memory_rate(modules({{"PROC 1 DIMM 1", "Not Specified"}, {"PROC 1 DIMM 12", "Not Specified"}})),
            std::nullopt);
  EXPECT_EQ(memory_rate(modules({{"DIMM_A1", "BANK 0"}, {"DIMM_B1", "BANK 1"}})), std::nullopt);
  EXPECT_EQ(memory_rate(modules({{"A1", "Channel 0"}, {"A2", "Not Specified"}})), std::nullopt);
  EXPECT_EQ(memory_rate(modules({{"D1", "Multichannel"}, {"D2", "Multichannel"}})), std::nullopt);
  // Two processors whose channels are called alike: that is one channel too few.
  EXPECT_EQ(memory_rate(modules({{"CPU1 DIMM A", "CHANNEL A"}, {"CPU2 DIMM A", "CHANNEL A"}})), std::nullopt);
  EXPECT_EQ(memory_rate(modules({{"D1", "Channel 0"}, {"D2", "Channel 0"}, {"D3", "Channel 0"}, {"D4", "Channel 0"}})),
            std::nullopt);
  EXPECT_EQ(memory_rate(MemorySlots{}), std::nullopt);
}

TEST(smbios, modules_unlike_the_others_and_below_their_rate_are_counted) {
  const auto slots = read_memory_slots(memory_device({.size = 0x4000, .rated = 4400}) +
                                       memory_device({.locator = "DIMM_B1", .size = 0x4000, .rated = 4400}) +
                                       memory_device({.locator = "DIMM_C1", .size = 0x2000, .rated = 4800}));
  EXPECT_EQ(dimms_unlike(*slots), 1);
  EXPECT_EQ(dimms_slow(*slots), 1);
  const auto untold = read_memory_slots(memory_device({.size = 0x4000, .rated = 0}));
  EXPECT_EQ(dimms_slow(*untold), std::nullopt);
}

}  // namespace assay::health
