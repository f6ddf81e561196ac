// drive_commands: one NVMe command and four ATA commands, all of which only read.
#include "probes/health/drive_commands.h"

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <system_error>

#include <fcntl.h>
#include <linux/nvme_ioctl.h>
#include <scsi/sg.h>
#include <sys/ioctl.h>

#include <fmt/format.h>

#include "probes/core/descriptor.h"

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

}  // namespace assay::health
