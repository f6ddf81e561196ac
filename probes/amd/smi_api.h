// smi_api: the part of AMD SMI's C interface that assay uses, declared here so that nothing of ROCm is needed to build.
// Layouts and numbers are those of amd_smi/amdsmi.h 26.1 and 26.5 (ROCm/rocm-systems, projects/amdsmi, read on
// 2026-11-27); members behind those that both versions have alike are left out, and Roomy has space for them.
// amdsmi_get_link_metrics is not used: its entries grew between the two.
#pragma once

#include <cstddef>
#include <cstdint>

#include "probes/core/library.h"

namespace assay::amd::smi {

/// Libraries by their sonames: the one that is read, and older ones of ROCm 6.4 and of 6.0 to 6.3, which are named.
inline constexpr const char* kLibrary = "libamd_smi.so.26";
inline constexpr const char* kOlder[] = {"libamd_smi.so.25", "libamd_smi.so.24"};
/// The first version of ROCm that has it.
inline constexpr int kMajor = 26;
inline constexpr const char* kFirstRocm = "ROCm 7.0";

using Handle = void*;
using Status = std::uint32_t;
inline constexpr Status kSuccess = 0, kInvalid = 1, kNotSupported = 2, kNotYetImplemented = 3, kNoSymbol = 5,
                        kNoPermission = 10, kInput = 17, kNotFound = 31, kDriverNotLoaded = 34, kNoData = 40,
                        kSettingUnavailable = 55;

inline constexpr std::uint64_t kInitGpus = 1U << 1;
inline constexpr unsigned kTypeGpu = 1;
inline constexpr std::size_t kText = 256;
inline constexpr unsigned kClockGfx = 0, kClockMemory = 4;
inline constexpr unsigned kHotspot = 1, kMemoryTemperature = 2, kTemperatureNow = 0;
inline constexpr unsigned kVram = 0;
/// Of amdsmi_link_type_t since 26; before, 1 was XGMI (amdsmi's changelog).
inline constexpr unsigned kLinkPcie = 1, kLinkXgmi = 2;
inline constexpr std::size_t kXgmiLinks = 8, kCacheTypes = 10;

/// Blocks that count errors, bit by bit of their mask.
inline constexpr const char* kBlocks[] = {"umc",  "sdma", "gfx",  "mmhub", "athub", "pcie_bif", "hdp",
                                          "xgmi", "df",   "smn",  "sem",   "mp0",   "mp1",      "fuse",
                                          "mca",  "vcn",  "jpeg", "ih",    "mpio"};

struct Version {
  std::uint32_t major = 0, minor = 0, release = 0;
  const char* build = nullptr;
};
struct Asic {
  char market_name[kText];
  std::uint32_t vendor_id;
  char vendor_name[kText];
  std::uint32_t subvendor_id;
  std::uint64_t device_id;
  std::uint32_t revision;
  char serial[kText];
  std::uint32_t oam_id;
  std::uint32_t compute_units;
  std::uint64_t graphics_version;
};
struct Board {
  char model_number[kText], serial[kText], fru_id[kText], product_name[kText], manufacturer[kText];
};
struct Driver {
  char version[kText], date[kText], name[kText];
};
struct Vbios {
  char name[kText], build_date[kText], part_number[kText], version[kText];
};
struct Firmware {
  std::uint8_t count;
  struct {
    std::uint32_t id;
    std::uint64_t version;
    std::uint64_t reserved[2];
  } list[128];
};
struct Errors {
  std::uint64_t corrected, uncorrected, deferred;
};
struct Pcie {
  std::uint16_t width_max;
  std::uint32_t speed_max;
  std::uint32_t interface_version;
  std::uint32_t slot_type;
  std::uint32_t generation_max;
  std::uint64_t reserved[9];
  std::uint16_t width;
  std::uint32_t speed;  ///< MT/s
  std::uint32_t bandwidth;
  std::uint64_t replays;
};
static_assert(offsetof(Pcie, width) == 96 && offsetof(Pcie, replays) == 112);
struct PowerCap {
  std::uint64_t now, by_default, dpm, least, most;  ///< microwatts, dpm in MHz
};
struct Power {
  std::uint64_t socket;
  std::uint32_t now, average;  ///< W; the first from MI300 on
};
struct Clock {
  std::uint32_t now, least, most;  ///< MHz
};
struct Violations {
  std::uint64_t reference_time, time, samples;
  std::uint64_t processor_hot, power, socket_hot, regulator_hot, memory_hot;  ///< samples in which it lowered clocks
};
struct XgmiLinks {
  std::uint32_t count;
  std::uint32_t state[kXgmiLinks];  ///< 0 down, 1 up, 2 disabled
};
struct Caches {
  std::uint32_t count;
  struct {
    std::uint32_t properties, size_kb, level, sharing, instances, reserved[3];
  } list[kCacheTypes];
};
struct Page {
  std::uint64_t address, size;
  std::uint32_t state;  ///< 0 reserved, 1 pending, 2 cannot be reserved
};
struct Process {
  char name[kText];
  std::uint32_t pid;
  std::uint64_t memory;
  std::uint64_t engines[2];
  std::uint32_t reserved_engines[12];
  std::uint64_t memories[3];
  std::uint32_t reserved_memories[10];
  char container[kText];
  std::uint32_t rest[12];
};
static_assert(sizeof(Process) == 704 && sizeof(Page) == 24);

/// `T` and space behind it, for members that a newer minor version adds.
template <class T>
struct Roomy {
  T value = {};
  std::byte room[16384] = {};
};

/// The functions, null where a library lacks one.
struct Functions {
  template <class... Arguments>
  using Call = Status (*)(Arguments...);
  template <class T>
  using Ask = Call<Handle, T*>;

  Library library;
  Call<std::uint64_t> init = library.optional_function("amdsmi_init");
  Call<> shut_down = library.optional_function("amdsmi_shut_down");
  Call<Version*> version = library.optional_function("amdsmi_get_lib_version");
  Call<Status, const char**> words = library.optional_function("amdsmi_status_code_to_string");
  Call<std::uint32_t*, Handle*> sockets = library.optional_function("amdsmi_get_socket_handles");
  Call<Handle, std::uint32_t*, Handle*> processors = library.optional_function("amdsmi_get_processor_handles");
  Call<Handle, unsigned*> type = library.optional_function("amdsmi_get_processor_type");
  Call<Handle, unsigned*, char*> uuid = library.optional_function("amdsmi_get_gpu_device_uuid");
  Ask<std::uint64_t> address =
      library.optional_function("amdsmi_get_gpu_device_bdf");  ///< bits: function 3, device 5, bus 8, domain 48
  Ask<Asic> asic = library.optional_function("amdsmi_get_gpu_asic_info");
  Ask<Board> board = library.optional_function("amdsmi_get_gpu_board_info");
  Ask<Driver> driver = library.optional_function("amdsmi_get_gpu_driver_info");
  Ask<Vbios> vbios = library.optional_function("amdsmi_get_gpu_vbios_info");
  Ask<Firmware> firmware = library.optional_function("amdsmi_get_fw_info");
  Ask<Errors> errors = library.optional_function("amdsmi_get_gpu_total_ecc_count");
  Call<Handle, unsigned, Errors*> errors_of = library.optional_function("amdsmi_get_gpu_ecc_count");
  Ask<std::uint64_t> protected_blocks = library.optional_function("amdsmi_get_gpu_ecc_enabled");
  Call<Handle, std::uint32_t*, Page*> pages = library.optional_function("amdsmi_get_gpu_bad_page_info");
  Call<Handle, char*, std::uint32_t> compute_partition = library.optional_function("amdsmi_get_gpu_compute_partition");
  Call<Handle, char*, std::uint32_t> memory_partition = library.optional_function("amdsmi_get_gpu_memory_partition");
  Ask<Pcie> pcie = library.optional_function("amdsmi_get_pcie_info");
  Call<Handle, std::uint32_t, PowerCap*> power_cap = library.optional_function("amdsmi_get_power_cap_info");
  Ask<Power> power = library.optional_function("amdsmi_get_power_info");
  Call<Handle, unsigned, Clock*> clock = library.optional_function("amdsmi_get_clock_info");
  Call<Handle, unsigned, unsigned, std::int64_t*> temperature = library.optional_function("amdsmi_get_temp_metric");
  Ask<Violations> violations = library.optional_function("amdsmi_get_violation_status");
  Ask<std::uint32_t> xgmi_errors =
      library.optional_function("amdsmi_gpu_xgmi_error_status");  ///< 0 none, 1 errors, 2 multiple errors
  Ask<XgmiLinks> xgmi_links = library.optional_function("amdsmi_get_gpu_xgmi_link_status");
  Ask<Caches> caches = library.optional_function("amdsmi_get_gpu_cache_info");
  Call<Handle, unsigned, std::uint64_t*> memory_total = library.optional_function("amdsmi_get_gpu_memory_total");
  Call<Handle, std::uint64_t*, float*, std::uint64_t*> energy =
      library.optional_function("amdsmi_get_energy_count");  ///< counter, microjoules a count, time
  Call<Handle, std::uint32_t*, Process*> processes = library.optional_function("amdsmi_get_gpu_process_list");
  Call<Handle, Handle, std::uint64_t*, unsigned*> link =
      library.optional_function("amdsmi_topo_get_link_type");  ///< hops, type
};

}  // namespace assay::amd::smi
