// smbios: offsets and codes of DSP0134 3.7, section 7.18. The table comes from firmware; its lengths are checked.
#include "probes/health/smbios.h"

#include <algorithm>
#include <cctype>
#include <map>

#include <fmt/format.h>

#include "probes/core/machine_tree.h"

namespace assay::health {
namespace {

constexpr int kMemoryDevice = 17;
constexpr int kMemoryChannel = 37;
constexpr int kEndOfTable = 127;
constexpr std::size_t kHeader = 4;  // type, length, handle

/// One structure: its formatted area and the strings after it.
class Structure {
 public:
  Structure(std::string_view formatted, std::vector<std::string_view> strings)
      : formatted_(formatted), strings_(std::move(strings)) {}

  /// The little-endian number of `size` bytes at `offset`; nothing if the structure is of an older, shorter version.
  [[nodiscard]] std::optional<std::uint32_t> number(std::size_t offset, std::size_t size) const {
    if (offset + size > formatted_.size()) return std::nullopt;
    std::uint32_t value = 0;
    for (std::size_t i = size; i-- > 0;) value = value << 8 | static_cast<unsigned char>(formatted_[offset + i]);
    return value;
  }
  /// The string whose number (from 1) is at `offset`.
  [[nodiscard]] std::optional<std::string> text(std::size_t offset) const {
    const auto index = number(offset, 1);
    if (!index || *index == 0 || *index > strings_.size()) return std::nullopt;
    return told(strings_[*index - 1]);
  }
  [[nodiscard]] int type() const { return static_cast<unsigned char>(formatted_[0]); }
  [[nodiscard]] std::uint32_t handle() const { return number(2, 2).value_or(0); }

 private:
  std::string_view formatted_;
  std::vector<std::string_view> strings_;
};

/// Takes the first structure off `table`; nothing if the rest is no whole structure.
std::optional<Structure> take_structure(std::string_view& table) {
  if (table.size() < kHeader) return std::nullopt;
  const std::size_t length = static_cast<unsigned char>(table[1]);
  if (length < kHeader || length > table.size()) return std::nullopt;
  const std::string_view formatted = table.substr(0, length);
  table.remove_prefix(length);
  // The string set ends with an empty string; without any string it is two zero bytes.
  std::vector<std::string_view> strings;
  while (true) {
    const auto zero = table.find('\0');
    if (zero == std::string_view::npos) return std::nullopt;
    const std::string_view text = table.substr(0, zero);
    table.remove_prefix(zero + 1);
    if (text.empty()) break;
    strings.push_back(text);
  }
  if (strings.empty() && table.starts_with('\0')) table.remove_prefix(1);
  return Structure(formatted, std::move(strings));
}

/// Whole bytes of the module; nothing if unknown. Only called for slots that are not empty.
std::optional<Bytes> size_of(const Structure& device) {
  constexpr std::uint32_t kUnknown = 0xFFFF;
  constexpr std::uint32_t kSeeExtended = 0x7FFF;
  constexpr std::uint32_t kInKibibytes = 0x8000;
  const auto size = device.number(0x0C, 2);
  if (!size || *size == kUnknown) return std::nullopt;
  if (*size == kSeeExtended) {
    const auto extended = device.number(0x1C, 4);  // MiB in bits 0 to 30
    if (!extended || (*extended & 0x7FFF'FFFFU) == 0) return std::nullopt;
    return Bytes{std::uint64_t{*extended & 0x7FFF'FFFFU} << 20};
  }
  if ((*size & kInKibibytes) != 0) return Bytes{std::uint64_t{*size & ~kInKibibytes} << 10};
  return Bytes{std::uint64_t{*size} << 20};
}

/// Transfers a second from the MT/s at `offset`, or from the 32-bit field at `extended` where the short one is full.
std::optional<double> speed_of(const Structure& device, std::size_t offset, std::size_t extended) {
  constexpr std::uint32_t kSeeExtended = 0xFFFF;
  auto speed = device.number(offset, 2);
  if (speed == kSeeExtended) speed = device.number(extended, 4);
  if (!speed || *speed == 0) return std::nullopt;
  return *speed * 1e6;
}

std::optional<std::string> memory_type_of(const Structure& device) {
  static const std::map<std::uint32_t, const char*> kTypes = {
      {0x12, "DDR"},    {0x13, "DDR2"},   {0x18, "DDR3"},   {0x1A, "DDR4"}, {0x1B, "LPDDR"},
      {0x1C, "LPDDR2"}, {0x1D, "LPDDR3"}, {0x1E, "LPDDR4"}, {0x20, "HBM"},  {0x21, "HBM2"},
      {0x22, "DDR5"},   {0x23, "LPDDR5"}, {0x24, "HBM3"}};
  const auto code = device.number(0x12, 1);
  const auto found = code ? kTypes.find(*code) : kTypes.end();
  if (found == kTypes.end()) return std::nullopt;
  return found->second;
}

std::string without_digits_at_end(std::string text) {
  while (!text.empty() && std::isdigit(static_cast<unsigned char>(text.back())) != 0) text.pop_back();
  return text;
}

/// "P0_Node0_Channel1_Dimm0" to the channel's number or letter, in lower case; empty if the text states no channel.
std::string stated_channel(std::string text) {
  constexpr std::string_view kWord = "channel";
  const auto is_letter_or_digit = [](unsigned char c) { return std::isalnum(c) != 0; };
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const auto word = text.find(kWord);
  if (word == std::string::npos) return "";
  auto begin = word + kWord.size();
  while (begin < text.size() && !is_letter_or_digit(static_cast<unsigned char>(text[begin]))) ++begin;
  const auto end = static_cast<std::size_t>(
      std::find_if_not(text.begin() + static_cast<std::ptrdiff_t>(begin), text.end(), is_letter_or_digit) -
      text.begin());
  const std::string_view id = std::string_view(text).substr(begin, end - begin);
  const bool numbered = !id.empty() && id.find_first_not_of("0123456789") == std::string_view::npos;
  return numbered || id.size() == 1 ? text.substr(0, end) : "";
}

/// The channel that the device's own texts state, with the array of memory that it is in.
std::string channel_of(const Structure& device) {
  for (const std::size_t text : {0x11, 0x10}) {
    if (const auto stated = stated_channel(device.text(text).value_or("")); !stated.empty())
      return fmt::format("{:04x}/{}", device.number(0x04, 2).value_or(0), stated);
  }
  return "";
}

/// Channels by handle of their devices, from the Memory Channel structures (section 7.38).
void take_channel(const Structure& channel, std::map<std::uint32_t, std::string>& of_device) {
  for (std::size_t i = 0; i < channel.number(0x06, 1).value_or(0); ++i) {
    const auto device = channel.number(0x08 + 3 * i, 2);  // after one byte of load
    if (device) of_device[*device] = fmt::format("handle 0x{:04X}", channel.handle());
  }
}

Dimm dimm_of(const Structure& device) {
  return {.slot = device.text(0x10).value_or(fmt::format("handle 0x{:04X}", device.handle())),
          .size = size_of(device),
          .memory_type = memory_type_of(device),
          .transfers_per_s = speed_of(device, 0x20, 0x58),
          .transfers_per_s_rated = speed_of(device, 0x15, 0x54),
          .manufacturer = device.text(0x17),
          .part = device.text(0x1A),
          .serial = device.text(0x18),
          .channel = channel_of(device),
          .position = without_digits_at_end(device.text(0x10).value_or("")) + "/" +
                      without_digits_at_end(device.text(0x11).value_or(""))};
}

}  // namespace

std::optional<MemorySlots> read_memory_slots(std::string_view table) {
  std::vector<Structure> devices;
  std::map<std::uint32_t, std::string> channels;
  while (const auto structure = take_structure(table)) {
    if (structure->type() == kEndOfTable) break;
    if (structure->type() == kMemoryDevice) devices.push_back(*structure);
    if (structure->type() == kMemoryChannel) take_channel(*structure, channels);
  }
  if (devices.empty()) return std::nullopt;

  // Some boards name every slot of a bank alike; a subject must be unique.
  const auto times = [&](const auto& name_of, const std::string& name) {
    return std::ranges::count_if(devices, [&](const Structure& other) { return name_of(other) == name; });
  };
  const auto slot = [](const Structure& device) { return dimm_of(device).slot; };
  const auto bank_and_slot = [&](const Structure& device) {
    return device.text(0x11).value_or("") + "/" + slot(device);
  };
  MemorySlots slots;
  for (const Structure& device : devices) {
    if (device.number(0x0C, 2).value_or(0) == 0) {
      ++slots.empty;
      continue;
    }
    Dimm dimm = dimm_of(device);
    if (const auto stated = channels.find(device.handle()); stated != channels.end()) {
      dimm.channel = stated->second;
      dimm.position.clear();
    }
    if (times(slot, dimm.slot) > 1) {
      const std::string longer = bank_and_slot(device);
      dimm.slot = times(bank_and_slot, longer) == 1 ? longer : fmt::format("0x{:04X}/{}", device.handle(), dimm.slot);
    }
    slots.dimms.push_back(std::move(dimm));
  }
  return slots;
}

std::optional<std::int64_t> dimms_unlike(const MemorySlots& slots) {
  std::map<std::pair<std::uint64_t, double>, std::int64_t> alike;
  for (const Dimm& dimm : slots.dimms) {
    if (!dimm.size || !dimm.transfers_per_s) return std::nullopt;
    ++alike[{dimm.size->count, *dimm.transfers_per_s}];
  }
  if (alike.empty()) return std::nullopt;
  const auto most = std::ranges::max_element(alike, {}, [](const auto& entry) { return entry.second; });
  return static_cast<std::int64_t>(slots.dimms.size()) - most->second;
}

std::optional<std::int64_t> dimms_slow(const MemorySlots& slots) {
  std::int64_t slow = 0;
  for (const Dimm& dimm : slots.dimms) {
    if (!dimm.transfers_per_s || !dimm.transfers_per_s_rated) return std::nullopt;
    if (*dimm.transfers_per_s < *dimm.transfers_per_s_rated) ++slow;
  }
  return slots.dimms.empty() ? std::nullopt : std::optional(slow);
}

std::optional<double> memory_fitted(const MemorySlots& slots) {
  double sum = 0;
  for (const Dimm& dimm : slots.dimms) {
    if (!dimm.size) return std::nullopt;
    sum += static_cast<double>(dimm.size->count);
  }
  return sum > 0 ? std::optional(sum) : std::nullopt;
}

std::optional<double> memory_rate(const MemorySlots& slots) {
  constexpr double kBytesATransfer = 8;
  constexpr std::size_t kMostOnChannel = 3;  // registered DDR3; newer ones have two
  std::map<std::string, std::vector<const Dimm*>> channels;
  for (const Dimm& dimm : slots.dimms) {
    if (!dimm.transfers_per_s || (dimm.channel.empty() && slots.dimms.size() > 1)) return std::nullopt;
    channels[dimm.channel].push_back(&dimm);
  }
  double sum = 0;
  for (const auto& [name, dimms] : channels) {
    const auto elsewhere = [&](const Dimm* dimm) { return dimm->position != dimms.front()->position; };
    if (dimms.size() > kMostOnChannel || std::ranges::any_of(dimms, elsewhere)) return std::nullopt;
    sum += *(*std::ranges::min_element(dimms, {}, &Dimm::transfers_per_s))->transfers_per_s * kBytesATransfer;
  }
  return sum > 0 ? std::optional(sum) : std::nullopt;
}

}  // namespace assay::health
