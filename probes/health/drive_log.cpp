// drive_log: offsets of the NVM Express Base Specification 2.0, 5.16.1.2 (error log) and 5.16.1.3 (SMART / health), and
// of ATA Command Set 3 (SMART, Device Statistics); compared with those that smartmontools and libnvme use.
#include "probes/health/drive_log.h"

#include <array>
#include <bit>
#include <cstdint>
#include <optional>

#include <fmt/format.h>

namespace assay::health {
namespace {

constexpr std::size_t kPage = 512;       // of a SMART log of either kind
constexpr std::size_t kErrorEntry = 64;  // of the NVMe error log
constexpr double kDataUnit = 512'000;    // B; a thousand sectors of 512 B
constexpr double kMinute = 60, kHour = 3600;

/// An unsigned number of `size` bytes, the least significant first; up to 16 bytes, beyond 2^53 rounded.
double number_at(const std::string& bytes, std::size_t offset, std::size_t size) {
  double value = 0;
  for (std::size_t i = size; i-- > 0;) value = value * 256 + static_cast<unsigned char>(bytes[offset + i]);
  return value;
}

unsigned byte_at(const std::string& bytes, std::size_t offset) { return static_cast<unsigned char>(bytes[offset]); }

/// The newest entry of the error log, and how many of its entries are errors of media and data integrity.
void read_error_log(const std::string& log, DriveState& state) {
  constexpr unsigned kMediaErrors = 2;  // status code type 2h: media and data integrity
  double media = 0;
  for (std::size_t at = 0; at + kErrorEntry <= log.size(); at += kErrorEntry) {
    const std::string entry = log.substr(at, kErrorEntry);
    if (number_at(entry, 0, 8) == 0) continue;  // the count of an entry that was never written
    const auto status = static_cast<unsigned>(number_at(entry, 12, 2)) >> 1U;
    const unsigned type = status >> 8U & 7U;
    if (type == kMediaErrors) ++media;
    if (!state.conditions.contains("newest_error"))
      state.conditions["newest_error"] =
          fmt::format("status {:x}h/{:02x}h (type/code), namespace {:.0f}, block {:.0f}", type, status & 0xffU,
                      number_at(entry, 24, 4), number_at(entry, 16, 8));
  }
  state.metrics["logged_media_errors"] = media;
}

/// A number of the Device Statistics log at `offset`; nothing if the drive does not support it or has no value.
std::optional<double> statistic(const DriveAnswer& page, std::size_t offset, std::size_t size) {
  constexpr unsigned kSupportedAndValid = 0xc0;
  if (page.bytes.size() < kPage) return std::nullopt;
  if ((byte_at(page.bytes, offset + 7) & kSupportedAndValid) != kSupportedAndValid) return std::nullopt;
  return number_at(page.bytes, offset, size);
}

/// Raw value of a vendor's attribute, the lowest `size` bytes: some vendors keep other things in the upper ones.
std::optional<double> attribute(const std::string& data, unsigned id, std::size_t size) {
  constexpr std::size_t kFirst = 2, kCount = 30, kLength = 12, kRaw = 5;
  for (std::size_t i = 0; i < kCount; ++i) {
    const std::size_t at = kFirst + i * kLength;
    if (byte_at(data, at) == id) return number_at(data, at + kRaw, size);
  }
  return std::nullopt;
}

bool is_whole(const std::string& page) {
  unsigned sum = 0;
  for (const char c : page) sum += static_cast<unsigned char>(c);
  return page.size() == kPage && sum % 256 == 0;  // the last byte makes it so
}

}  // namespace

DriveState read_nvme_state(const DriveLogReader& read, const std::string& device) {
  static constexpr std::array<const char*, 6> kWarnings = {"spare below its threshold", "temperature",
                                                           "reliability degraded",      "read-only",
                                                           "volatile memory backup",    "persistent memory"};
  DriveState state;
  const DriveAnswer answer = read(device, DriveLog::nvme_health);
  const std::string& log = answer.bytes;
  if (log.size() < kPage) {
    state.absence = answer.absence.empty()
                        ? fmt::format("{}: the health log has {} bytes in place of {}", device, log.size(), kPage)
                        : answer.absence;
    return state;
  }
  const unsigned warnings = byte_at(log, 0);
  state.metrics["critical_warnings"] = std::popcount(warnings);
  std::string names;
  for (std::size_t bit = 0; bit < kWarnings.size(); ++bit) {
    if ((warnings >> bit & 1U) != 0) names += (names.empty() ? "" : ", ") + std::string(kWarnings[bit]);
  }
  if (warnings != 0)
    state.conditions["warnings"] = names.empty() ? fmt::format("reserved bits {:02x}h", warnings) : names;
  constexpr std::int64_t kZeroCelsius = 273;
  if (const double kelvin = number_at(log, 1, 2); kelvin > 0)
    state.conditions["temperature_c"] = static_cast<std::int64_t>(kelvin) - kZeroCelsius;
  const double spare = byte_at(log, 3);
  const double threshold = byte_at(log, 4);
  state.metrics["spare_used"] = spare < 100 ? 100 - spare : 0;
  state.metrics["spare_below_threshold"] = spare < threshold ? 1 : 0;
  state.conditions["spare_threshold"] = static_cast<std::int64_t>(threshold);
  state.metrics["wear"] = byte_at(log, 5);
  state.conditions["data_read_b"] = number_at(log, 32, 16) * kDataUnit;
  state.conditions["data_written_b"] = number_at(log, 48, 16) * kDataUnit;
  state.conditions["power_cycles"] = number_at(log, 112, 16);
  state.conditions["power_on_s"] = number_at(log, 128, 16) * kHour;
  state.metrics["unsafe_shutdowns"] = number_at(log, 144, 16);
  state.metrics["media_errors"] = number_at(log, 160, 16);
  state.metrics["error_log_entries"] = number_at(log, 176, 16);
  state.conditions["hot_s"] = number_at(log, 192, 4) * kMinute;
  state.conditions["critically_hot_s"] = number_at(log, 196, 4) * kMinute;
  if (const DriveAnswer errors = read(device, DriveLog::nvme_errors); !errors.bytes.empty())
    read_error_log(errors.bytes, state);
  return state;
}

DriveState read_sata_state(const DriveLogReader& read, const std::string& device) {
  constexpr unsigned kReallocated = 5, kUncorrectable = 187, kPending = 197, kCrcErrors = 199;
  DriveState state;
  const DriveAnswer data = read(device, DriveLog::sata_attributes);
  if (!is_whole(data.bytes)) {
    state.absence =
        data.absence.empty() ? fmt::format("{}: its SMART data has no valid checksum", device) : data.absence;
    return state;
  }
  const auto put = [&](std::string_view name, std::optional<double> standard, std::optional<double> vendor) {
    if (standard) state.metrics[name] = *standard;
    if (!standard && vendor) state.metrics[name] = *vendor;
  };
  put("reallocated_sectors", statistic(read(device, DriveLog::sata_media), 32, 4),
      attribute(data.bytes, kReallocated, 2));
  put("media_errors", statistic(read(device, DriveLog::sata_errors), 8, 4), attribute(data.bytes, kUncorrectable, 4));
  put("link_crc_errors", statistic(read(device, DriveLog::sata_transport), 24, 4),
      attribute(data.bytes, kCrcErrors, 4));
  put("wear", statistic(read(device, DriveLog::sata_endurance), 8, 1), std::nullopt);
  put("pending_sectors", std::nullopt, attribute(data.bytes, kPending, 4));
  // C2h 4Fh: within its thresholds; 2Ch F4h: one is exceeded (ACS-3, SMART RETURN STATUS).
  if (const std::string status = read(device, DriveLog::sata_status).bytes; status == "\x4f\xc2") {
    state.metrics["critical_warnings"] = 0;
  } else if (status == "\xf4\x2c") {
    state.metrics["critical_warnings"] = 1;
    state.conditions["warnings"] = std::string("a threshold of SMART is exceeded");
  }
  return state;
}

}  // namespace assay::health
