// nvml_api: the part of NVIDIA's NVML interface that is used here: names, numbers and layouts of its public nvml.h
// (NVML API reference, version 13), declared so that neither building nor starting needs the library.
#pragma once

#include "probes/core/library.h"

namespace assay::nvml_api {

/// The file name of the library that every NVIDIA driver installs.
inline constexpr const char* kLibrary = "libnvidia-ml.so.1";

/// Result of every call.
using Return = int;
inline constexpr Return kSuccess = 0, kUninitialized = 1, kInvalidArgument = 2, kNotSupported = 3, kNoPermission = 4,
                        kNotFound = 6, kInsufficientSize = 7, kDriverNotLoaded = 9, kTimeout = 10,
                        kFunctionNotFound = 13, kGpuIsLost = 15, kVersionMismatch = 18, kNoData = 21,
                        kInsufficientResources = 23, kArgumentVersionMismatch = 25, kDeprecated = 26, kGpuNotFound = 28,
                        kUnknown = 999;

/// One GPU, an opaque handle of the library.
struct DeviceTag;
using Device = DeviceTag*;

/// Sizes of the texts that the library writes, with their final zero.
inline constexpr unsigned kTextSize = 96;

/// Sensors, clocks, error kinds and counters, as the calls number them.
inline constexpr int kTemperatureGpu = 0;
inline constexpr int kClockSm = 1, kClockMemory = 2;
inline constexpr int kCorrected = 0, kUncorrected = 1;
inline constexpr int kSinceDriverLoad = 0, kLifetime = 1;
inline constexpr unsigned kMaxLinks = 36;
/// Counters of nvmlDeviceGetNvLinkErrorCounter: replay, recovery, CRC of flits, CRC of data.
inline constexpr int kLinkErrorCounters = 4;

/// Question of nvmlDeviceGetP2PStatus, and its answer for yes.
inline constexpr int kPeerOverNvLink = 2, kPeerOk = 0;

/// Fields of nvmlDeviceGetFieldValues. A link's number or a power scope is in scope_id.
inline constexpr unsigned kFieldRetiredSingleBit = 29, kFieldRetiredDoubleBit = 30, kFieldPowerCap = 74,
                          kFieldMemoryTemperature = 82, kFieldLinkCount = 91, kFieldPowerAverage = 185,
                          kFieldPowerInstant = 186, kFieldPowerDefaultLimit = 189, kFieldRecoveryAction = 230,
                          kFieldSwThermal = 269, kFieldHwThermal = 270, kFieldPowerBrake = 271;
/// Of one link: speed in MB/s (1e6), state, and from driver 570 its bit error rates.
inline constexpr unsigned kFieldLinkSpeed = 164, kFieldLinkState = 165, kFieldLinkEffectiveBer = 220,
                          kFieldLinkSymbolBer = 222;
/// States of kFieldLinkState. A sleeping link wakes with traffic.
inline constexpr unsigned kLinkInactive = 0, kLinkActive = 1, kLinkSleeping = 2;
/// Links between GPU and processor on one module (NVLink-C2C): how many, and of one its state and its speed in MB/s;
/// from driver 575 CRC errors, replays and replays back to back.
inline constexpr unsigned kFieldC2cCount = 170, kFieldC2cState = 171, kFieldC2cSpeed = 172, kFieldC2cCrc = 231,
                          kFieldC2cReplay = 232, kFieldC2cReplayBackToBack = 233;
/// Link errors up to NVLink 4: replays, recoveries, CRC errors.
inline constexpr unsigned kFieldLinkReplay = 161, kFieldLinkRecovery = 162, kFieldLinkCrc = 163;
/// Link errors from NVLink 5: malformed packets, buffer overruns, receive errors, integrity errors, recoveries.
inline constexpr unsigned kFieldLinkMalformed = 206, kFieldLinkOverrun = 207, kFieldLinkReceive = 208,
                          kFieldLinkIntegrity = 211, kFieldLinkRecoveryEvents = 215;
inline constexpr unsigned kScopeGpu = 0, kScopeModule = 1;

/// The tuple that names a device on its bus.
struct PciInfo {
  char bus_id_legacy[16];
  unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32];  // "00000000:1B:00.0"
};
static_assert(sizeof(PciInfo) == 68);

/// Memory in bytes.
struct Memory {
  unsigned long long total, free, used;
};
static_assert(sizeof(Memory) == 24);

/// Memory in bytes with the driver's own part apart (version 2).
struct MemoryParts {
  unsigned version;
  unsigned long long total, reserved, free, used;  ///< used: by processes, without the reserved part
};
static_assert(sizeof(MemoryParts) == 40);

/// Types of a field's value, in the order of the library's numbers.
enum class ValueType : int { real, uint32, ulong, uint64, int64, int32, uint16 };

/// A field's value; ValueType says which member.
union FieldNumber {
  double real;
  int int32;
  unsigned uint32;
  unsigned long ulong;
  unsigned long long uint64;
  long long int64;
  unsigned short uint16;
};

/// One question to nvmlDeviceGetFieldValues, and its answer.
struct FieldValue {
  unsigned field_id = 0, scope_id = 0;
  long long timestamp_us = 0, latency_us = 0;
  ValueType type = ValueType::real;
  Return result = kSuccess;
  FieldNumber value = {};
};
static_assert(sizeof(FieldValue) == 40 && alignof(FieldValue) == 8);

/// How long a policy kept a GPU below its clocks.
struct ViolationTime {
  unsigned long long reference_us, violation_ns;
};
static_assert(sizeof(ViolationTime) == 16);
inline constexpr int kPolicyPower = 0, kPolicyThermal = 1;

/// One process that uses a GPU (version 2 of the structure, which the _v3 calls fill).
struct Process {
  unsigned pid;
  unsigned long long used_memory;
  unsigned gpu_instance, compute_instance;
};
static_assert(sizeof(Process) == 24);

/// Value of used_memory if the driver does not report it.
inline constexpr unsigned long long kMemoryNotTold = ~0ULL;

/// A set of GPUs and kinds of events, an opaque handle of the library.
struct EventSetTag;
using EventSet = EventSetTag*;
/// One thing that the driver reported.
struct Event {
  Device device;
  unsigned long long type, data;  ///< data: the number of an Xid
  unsigned gpu_instance, compute_instance;
};
static_assert(sizeof(Event) == 32);
inline constexpr unsigned long long kEventXid = 8;

/// A temperature in degrees Celsius (version 1).
struct Temperature {
  unsigned version;
  int sensor;
  int temperature_c;
};
static_assert(sizeof(Temperature) == 12);

/// A GPU's place in its NVLink fabric (version 3, from driver 580). Version 2, from driver 550, ends before the
/// summary.
struct FabricInfo {
  unsigned version;
  unsigned char cluster_uuid[16];
  Return status;
  unsigned clique;
  unsigned char state;
  unsigned health_mask;
  unsigned char health_summary;
};
static_assert(sizeof(FabricInfo) == 40);

/// State of confidential computing of the node: environment 0 none, 1 simulated, 2 production; the others 0 or 1.
struct ConfidentialState {
  unsigned environment, feature, devtools;
};

/// Certificates of a GPU, PEM; the second are those of the key that signs its reports.
struct GpuCertificates {
  unsigned size, attestation_size;
  unsigned char chain[0x1000], attestation_chain[0x1400];
};

/// An attestation report; the nonce is given.
struct AttestationReport {
  unsigned is_second_present, size, second_size;  ///< the second report is by another processor of the board (CEC)
  unsigned char nonce[0x20], report[0x2000], second_report[0x1000];
};
static_assert(sizeof(GpuCertificates) == 0x2408 && sizeof(AttestationReport) == 0x302C);

/// The number by which the library knows the version of a structure.
template <class Structure>
constexpr unsigned version_of(unsigned version) {
  return static_cast<unsigned>(sizeof(Structure)) | (version << 24U);
}
/// The versions of FabricInfo, the newest first.
inline constexpr unsigned kFabricVersions[] = {version_of<FabricInfo>(3), 0x02000024};
static_assert(kFabricVersions[0] == 0x03000028);

template <class... Arguments>
using Call = Return (*)(Arguments...);
using TextCall = Call<Device, char*, unsigned>;
using NumberCall = Call<Device, unsigned*>;

/// The functions, as the library exports them; null if this version of it has none.
struct Functions {
  void* handle;  ///< of dlopen
  /// The export `symbol` of the library; null when it has none of that name.
  [[nodiscard]] Symbol find(const char* symbol) const;

  Call<> init = find("nvmlInit_v2");
  Call<> shutdown = find("nvmlShutdown");
  const char* (*error_string)(Return) = find("nvmlErrorString");
  Call<char*, unsigned> driver_version = find("nvmlSystemGetDriverVersion");
  Call<unsigned*> count = find("nvmlDeviceGetCount_v2");
  Call<unsigned, Device*> by_index = find("nvmlDeviceGetHandleByIndex_v2");
  Call<const char*, Device*> by_pci_bus_id = find("nvmlDeviceGetHandleByPciBusId_v2");
  TextCall name = find("nvmlDeviceGetName");
  TextCall uuid = find("nvmlDeviceGetUUID");
  TextCall serial = find("nvmlDeviceGetSerial");
  TextCall part = find("nvmlDeviceGetBoardPartNumber");
  TextCall vbios = find("nvmlDeviceGetVbiosVersion");
  TextCall inforom = find("nvmlDeviceGetInforomImageVersion");
  Call<Device, char*> gsp_firmware = find("nvmlDeviceGetGspFirmwareVersion");
  Call<Device, PciInfo*> pci_info = find("nvmlDeviceGetPciInfo_v3");
  Call<Device, Memory*> memory = find("nvmlDeviceGetMemoryInfo");
  Call<Device, MemoryParts*> memory_parts = find("nvmlDeviceGetMemoryInfo_v2");
  Call<EventSet*> event_set_create = find("nvmlEventSetCreate");
  Call<Device, unsigned long long, EventSet> register_events = find("nvmlDeviceRegisterEvents");
  Call<EventSet, Event*, unsigned> event_set_wait = find("nvmlEventSetWait_v2");
  Call<EventSet> event_set_free = find("nvmlEventSetFree");
  Call<Device, int, unsigned*> clock = find("nvmlDeviceGetClockInfo");
  Call<Device, int, unsigned*> clock_max = find("nvmlDeviceGetMaxClockInfo");
  Call<Device, int, unsigned*> temperature = find("nvmlDeviceGetTemperature");
  Call<Device, Temperature*> temperature_v = find("nvmlDeviceGetTemperatureV");
  NumberCall power = find("nvmlDeviceGetPowerUsage");
  NumberCall power_limit = find("nvmlDeviceGetEnforcedPowerLimit");
  NumberCall pcie_generation = find("nvmlDeviceGetCurrPcieLinkGeneration");
  NumberCall pcie_width = find("nvmlDeviceGetCurrPcieLinkWidth");
  NumberCall pcie_generation_max = find("nvmlDeviceGetMaxPcieLinkGeneration");
  NumberCall pcie_width_max = find("nvmlDeviceGetMaxPcieLinkWidth");
  NumberCall pcie_generation_device = find("nvmlDeviceGetGpuMaxPcieLinkGeneration");
  NumberCall pcie_replays = find("nvmlDeviceGetPcieReplayCounter");
  NumberCall persistence = find("nvmlDeviceGetPersistenceMode");
  NumberCall retired_pending = find("nvmlDeviceGetRetiredPagesPendingStatus");
  Call<Device, unsigned long long*> energy = find("nvmlDeviceGetTotalEnergyConsumption");
  Call<Device, unsigned*, unsigned*> ecc_mode = find("nvmlDeviceGetEccMode");
  Call<Device, unsigned*, unsigned*> mig_mode = find("nvmlDeviceGetMigMode");
  NumberCall mig_most = find("nvmlDeviceGetMaxMigDeviceCount");
  Call<Device, unsigned, Device*> mig_device = find("nvmlDeviceGetMigDeviceHandleByIndex");
  Call<Device, int, int, unsigned long long*> ecc_errors = find("nvmlDeviceGetTotalEccErrors");
  Call<Device, unsigned*, unsigned*, unsigned*, unsigned*> remapped_rows = find("nvmlDeviceGetRemappedRows");
  Call<Device, unsigned*, Process*> compute_processes = find("nvmlDeviceGetComputeRunningProcesses_v3");
  Call<Device, unsigned*, Process*> graphics_processes = find("nvmlDeviceGetGraphicsRunningProcesses_v3");
  Call<Device, unsigned, unsigned*> link_state = find("nvmlDeviceGetNvLinkState");
  Call<Device, unsigned, int, unsigned long long*> link_errors = find("nvmlDeviceGetNvLinkErrorCounter");
  Call<Device, unsigned, int*> link_remote_kind = find("nvmlDeviceGetNvLinkRemoteDeviceType");
  Call<Device, unsigned, PciInfo*> link_remote_pci = find("nvmlDeviceGetNvLinkRemotePciInfo_v2");
  Call<Device, Device, int, int*> peer_status = find("nvmlDeviceGetP2PStatus");
  Call<Device, int, FieldValue*> fields = find("nvmlDeviceGetFieldValues");
  Call<Device, FabricInfo*> fabric = find("nvmlDeviceGetGpuFabricInfoV");
  Call<Device, int, ViolationTime*> violation = find("nvmlDeviceGetViolationStatus");
  Call<ConfidentialState*> confidential_state = find("nvmlSystemGetConfComputeState");
  Call<Device, GpuCertificates*> certificates = find("nvmlDeviceGetConfComputeGpuCertificate");
  Call<Device, AttestationReport*> attestation = find("nvmlDeviceGetConfComputeGpuAttestationReport");
};

}  // namespace assay::nvml_api
