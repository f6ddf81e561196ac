// drive_log: offsets of the NVM Express Base Specification 2.0, 5.16.1.2 (error log) and 5.16.1.3 (SMART / health), and
// of ATA Command Set 3 (SMART, Device Statistics); compared with those that smartmontools and libnvme use.
#include "probes/health/drive_log.h"
#include "probes/core/descriptor.h"

#include <array>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <system_error>

#include <fcntl.h>
#include <linux/nvme_ioctl.h>
#include <sys/ioctl.h>

#include <fmt/format.h>
#include <scsi/sg.h>

namespace assay::health {
namespace {

constexpr unsigned kDeadline_ms = 5000;  // a healthy drive answers within milliseconds, a waking one within seconds
constexpr std::size_t kAnswerSize = 512;

std::string words_of_errno(int number) { return std::error_code(number, std::generic_category()).message(); }

/// NVM Express Base Specification 2.0, 5.16: Get Log Page. CDW10 bit 15, Retain Asynchronous Event, keeps the event
/// that the kernel waits for.
DriveAnswer nvme_log(int file, const std::string& device, unsigned page, std::size_t size) {
  constexpr std::uint8_t kGetLogPage = 0x02;
  constexpr std::uint32_t kWholeController = 0xffffffff, kRetainEvent = 1U << 15U;
  DriveAnswer answer{.bytes = std::string(size, '\0'), .absence = ""};
  nvme_admin_cmd command = {};
  command.opcode = kGetLogPage;
  command.nsid = kWholeController;
  command.addr = reinterpret_cast<std::uintptr_t>(answer.bytes.data());
  command.data_len = static_cast<std::uint32_t>(size);
  command.cdw10 = page | kRetainEvent | static_cast<std::uint32_t>(size / 4 - 1) << 16U;
  command.timeout_ms = kDeadline_ms;
  const int result = ioctl(file, NVME_IOCTL_ADMIN_CMD, &command);
  if (result == 0) return answer;
  const std::string cause = result < 0 ? words_of_errno(errno) : fmt::format("status {:#x}", result);
  return {.bytes = "", .absence = fmt::format("{}: log page {:02x}h was not given: {}", device, page, cause)};
}

/// The registers of an ATA command.
struct AtaCommand {
  std::uint8_t command = 0, feature = 0, count = 0, lba_low = 0, lba_mid = 0, lba_high = 0;
  bool wide = false;  ///< a 48-bit command
  bool reads = true;  ///< a sector comes back; else only registers
};

constexpr std::size_t kSenseRoom = 32;
using Sense = std::array<unsigned char, kSenseRoom>;

/// LBA mid and LBA high of the answer's registers: SAT-3, the ATA Status Return descriptor, or fixed sense data.
std::string registers_of(const Sense& sense) {
  constexpr unsigned kDescriptors = 0x72, kFixed = 0x70, kAtaReturn = 0x09;
  const unsigned format = sense[0] & 0x7fU;
  if (format == kDescriptors && sense[8] == kAtaReturn)
    return {static_cast<char>(sense[8 + 9]), static_cast<char>(sense[8 + 11])};
  if (format == kFixed) return {static_cast<char>(sense[10]), static_cast<char>(sense[11])};
  return "";
}

/// SAT-3, 12.2.2: ATA PASS-THROUGH (16).
DriveAnswer ata(int file, const std::string& device, const AtaCommand& ask) {
  constexpr std::uint8_t kPassThrough16 = 0x85, kNoData = 3, kDataIn = 4;
  constexpr std::uint8_t kTellRegisters = 1U << 5U, kFromDevice = 1U << 3U, kBlocks = 1U << 2U, kCountSaysLength = 2;
  constexpr unsigned kCheckCondition = 2;  // SAM-5 status
  std::array<std::uint8_t, 16> command = {};
  command[0] = kPassThrough16;
  command[1] = static_cast<std::uint8_t>((ask.reads ? kDataIn : kNoData) << 1U | (ask.wide ? 1U : 0U));
  command[2] = ask.reads ? kFromDevice | kBlocks | kCountSaysLength : kTellRegisters;
  command[4] = ask.feature;
  command[6] = ask.count;
  command[8] = ask.lba_low;
  command[10] = ask.lba_mid;
  command[12] = ask.lba_high;
  command[14] = ask.command;
  DriveAnswer answer{.bytes = std::string(ask.reads ? kAnswerSize : 0, '\0'), .absence = ""};
  Sense sense = {};
  sg_io_hdr_t request = {};
  request.interface_id = 'S';
  request.cmdp = command.data();
  request.cmd_len = command.size();
  request.dxfer_direction = ask.reads ? SG_DXFER_FROM_DEV : SG_DXFER_NONE;
  request.dxferp = answer.bytes.data();
  request.dxfer_len = static_cast<unsigned>(answer.bytes.size());
  request.sbp = sense.data();
  request.mx_sb_len = sense.size();
  request.timeout = kDeadline_ms;
  const auto refused = [&](const std::string& cause) {
    return DriveAnswer{.bytes = "",
                       .absence = fmt::format("{}: ATA command {:02x}h/{:02x}h was not answered: {}", device,
                                              ask.command, ask.feature, cause)};
  };
  if (ioctl(file, SG_IO, &request) != 0) return refused(words_of_errno(errno));
  if (request.host_status != 0) return refused(fmt::format("host status {:#x}", request.host_status));
  if (!ask.reads) {
    answer.bytes = registers_of(sense);  // they come as sense data of a command that succeeded
    return answer.bytes.empty() ? refused("no registers came back") : answer;
  }
  if (request.status == kCheckCondition || request.status != 0)
    return refused(fmt::format("status {:#x}, sense {:#x}", request.status, sense[1] & 0xfU));
  return answer;
}

AtaCommand smart(std::uint8_t feature, bool reads) {
  constexpr std::uint8_t kSmart = 0xb0, kKeyMid = 0x4f, kKeyHigh = 0xc2;
  return {.command = kSmart,
          .feature = feature,
          .count = static_cast<std::uint8_t>(reads ? 1 : 0),
          .lba_mid = kKeyMid,
          .lba_high = kKeyHigh,
          .reads = reads};
}

/// READ LOG EXT of the Device Statistics log, one page.
AtaCommand statistics(std::uint8_t page) {
  constexpr std::uint8_t kReadLogExt = 0x2f, kDeviceStatistics = 0x04;
  return {.command = kReadLogExt, .count = 1, .lba_low = kDeviceStatistics, .lba_mid = page, .wide = true};
}

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

DriveAnswer read_device_log(const std::string& device, DriveLog log) {
  constexpr std::uint8_t kReadData = 0xd0, kReturnStatus = 0xda;
  constexpr std::uint8_t kMedia = 3, kErrors = 4, kTransport = 6, kEndurance = 7;
  constexpr unsigned kErrorPage = 0x01, kHealthPage = 0x02;
  constexpr std::size_t kErrorEntries = 64, kErrorBytes = kErrorEntries * 64;
  const std::string path = "/dev/" + device;
  const Descriptor file(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!file) return {.bytes = "", .absence = fmt::format("{} cannot be opened: {}", path, words_of_errno(errno))};
  switch (log) {
    case DriveLog::nvme_health:
      return nvme_log(file.number(), device, kHealthPage, kAnswerSize);
    case DriveLog::nvme_errors:
      return nvme_log(file.number(), device, kErrorPage, kErrorBytes);
    case DriveLog::sata_attributes:
      return ata(file.number(), device, smart(kReadData, true));
    case DriveLog::sata_status:
      return ata(file.number(), device, smart(kReturnStatus, false));
    case DriveLog::sata_media:
      return ata(file.number(), device, statistics(kMedia));
    case DriveLog::sata_errors:
      return ata(file.number(), device, statistics(kErrors));
    case DriveLog::sata_transport:
      return ata(file.number(), device, statistics(kTransport));
    case DriveLog::sata_endurance:
      return ata(file.number(), device, statistics(kEndurance));
  }
  return {.bytes = "", .absence = device + ": no such log"};
}

DriveLogReader saved_logs(std::string directory) {
  return [directory = std::move(directory)](const std::string& device, DriveLog log) -> DriveAnswer {
    const std::string path = fmt::format("{}/{}.{}", directory, device, word_of(log));
    std::ifstream file(path, std::ios::binary);
    if (!file) return {.bytes = "", .absence = path + " is not there"};
    return {.bytes = std::string(std::istreambuf_iterator<char>(file), {}), .absence = ""};
  };
}

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
