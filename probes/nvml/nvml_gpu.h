// nvml_gpu: the queries to one GPU.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "probes/nvml/nvml.h"

namespace assay::nvml {

/// Time that a GPU ran slower than asked for one reason, in ns since the driver was loaded.
struct ThrottleTimes {
  std::optional<std::uint64_t> power_cap_ns;    ///< software kept the power limit: usual under a dense load
  std::optional<std::uint64_t> sw_thermal_ns;   ///< software kept the temperature; from driver 575
  std::optional<std::uint64_t> hw_thermal_ns;   ///< hardware slowed down for temperature; from driver 575
  std::optional<std::uint64_t> power_brake_ns;  ///< an outside signal demanded less power; from driver 575
  std::optional<std::uint64_t> thermal_ns;  ///< both thermal reasons; before driver 575 its one thermal violation time
};

/// A field's number as a count; nothing if it cannot be one.
std::optional<std::uint64_t> whole(const std::optional<double>& number);

/// Rows replaced by spare rows.
struct RemappedRows {
  unsigned corrected = 0;    ///< remapped after corrected errors
  unsigned uncorrected = 0;  ///< remapped after uncorrected errors
  bool pending = false;      ///< a reset is due
  bool failed = false;       ///< no spare row was left
};

/// A mode now and after the next reset.
struct Mode {
  bool now = false;
  bool pending = false;
};

/// A signed statement of a GPU about itself.
struct Attestation {
  std::string report;        ///< bytes
  std::string certificates;  ///< PEM, that of the key that signed first
};

/// One process that uses a GPU.
struct GpuProcess {
  unsigned pid = 0;
  std::optional<std::uint64_t> memory;  ///< bytes of the GPU's memory that it has, if the driver reports it
};

/// One GPU of an Nvml, which must outlive this. Each question is asked anew.
class NvmlGpu {
 public:
  /// `code` says why there is no device when `device` is null; every answer then has it.
  NvmlGpu(const nvml_api::Functions& functions, nvml_api::Device device, unsigned index, nvml_api::Return code)
      : functions_(&functions), device_(device), index_(index), code_(code) {}

  /// NVML's number of it, which is not CUDA's.
  [[nodiscard]] unsigned index() const { return index_; }
  /// "GPU-8f2c…"; stays with the board wherever it is plugged in.
  [[nodiscard]] Answer<std::string> uuid() const;
  /// Address on the bus as Linux spells it: "0000:1b:00.0".
  [[nodiscard]] Answer<std::string> pci_address() const;
  [[nodiscard]] Answer<std::string> name() const;          ///< of the product
  [[nodiscard]] Answer<std::string> serial() const;        ///< number printed on the board
  [[nodiscard]] Answer<std::string> part() const;          ///< number of the board
  [[nodiscard]] Answer<std::string> vbios() const;         ///< version
  [[nodiscard]] Answer<std::string> inforom() const;       ///< version of the image
  [[nodiscard]] Answer<std::string> gsp_firmware() const;  ///< version
  [[nodiscard]] Answer<std::uint64_t> memory() const;      ///< all of it, in bytes

  [[nodiscard]] Answer<double> sm_clock_hz() const;          ///< now
  [[nodiscard]] Answer<double> sm_clock_max_hz() const;      ///< it is made for
  [[nodiscard]] Answer<double> memory_clock_hz() const;      ///< now
  [[nodiscard]] Answer<double> memory_clock_max_hz() const;  ///< it is made for
  [[nodiscard]] Answer<double> temperature_c() const;        ///< of the die
  [[nodiscard]] Answer<double> memory_temperature_c() const;
  /// Power now where the driver reports it, else its own average, in W.
  [[nodiscard]] Answer<double> power_w() const;
  [[nodiscard]] Answer<double> power_limit_w() const;  ///< in force
  /// Field `id` of power in `scope`, in W (the library has mW).
  [[nodiscard]] Answer<double> power_field_w(unsigned id, unsigned scope) const;
  /// Energy since the driver was loaded, in mJ.
  [[nodiscard]] Answer<std::uint64_t> energy_mj() const;
  /// Every reason that the driver counts.
  [[nodiscard]] Answer<ThrottleTimes> throttle() const;

  [[nodiscard]] Answer<unsigned> pcie_generation() const;         ///< now; an idle GPU may lower it
  [[nodiscard]] Answer<unsigned> pcie_generation_max() const;     ///< that GPU and slot reach together
  [[nodiscard]] Answer<unsigned> pcie_generation_device() const;  ///< that the GPU is made for
  [[nodiscard]] Answer<unsigned> pcie_width() const;              ///< lanes now
  [[nodiscard]] Answer<unsigned> pcie_width_max() const;          ///< lanes that GPU and slot reach together
  [[nodiscard]] Answer<unsigned> pcie_replays() const;            ///< since the driver was loaded

  [[nodiscard]] Answer<Mode> ecc_mode() const;
  [[nodiscard]] Answer<Mode> mig_mode() const;
  /// Instances (MIG) that the GPU is divided into now.
  [[nodiscard]] Answer<unsigned> mig_instances() const;
  [[nodiscard]] Answer<bool> persistence_mode() const;
  /// Memory errors; `kind` is kCorrected or kUncorrected, `period` kSinceDriverLoad or kLifetime.
  [[nodiscard]] Answer<std::uint64_t> ecc_errors(int kind, int period) const;
  [[nodiscard]] Answer<RemappedRows> remapped_rows() const;  ///< from Ampere on
  [[nodiscard]] Answer<unsigned> retired_pages() const;      ///< before Ampere
  [[nodiscard]] Answer<bool> retired_pages_pending() const;  ///< before Ampere
  /// Processes that use it for computing or graphics, each once, by number. A driver lists those of the caller's
  /// process namespace and no others.
  [[nodiscard]] Answer<std::vector<GpuProcess>> processes() const;
  /// Memory that any processes have, in bytes; without the driver's own part.
  [[nodiscard]] Answer<std::uint64_t> memory_used() const;
  /// Its attestation report over `nonce`, 32 bytes, with the certificates. Absent where confidential computing is off.
  [[nodiscard]] Answer<Attestation> attestation(std::string_view nonce) const;
  /// Its place in its fabric.
  [[nodiscard]] Answer<nvml_api::FabricInfo> fabric() const;

  /// Whether `link` is up; absent for a link that it does not have.
  [[nodiscard]] Answer<bool> link_active(unsigned link) const;
  /// One counter of `link` by the call that drivers had before the fields; see kLinkErrorCounters.
  [[nodiscard]] Answer<std::uint64_t> link_errors(unsigned link, int counter) const;
  /// The device at the other end of `link` (0 a GPU, 1 an NPU, 2 a switch), and its address on the bus as Linux spells
  /// it.
  [[nodiscard]] Answer<int> link_remote_kind(unsigned link) const;
  [[nodiscard]] Answer<std::string> link_remote_address(unsigned link) const;
  /// Whether this GPU and `other`, of the same Nvml, reach each other's memory over NVLink.
  [[nodiscard]] Answer<bool> reaches_over_nvlink(const NvmlGpu& other) const;
  /// The numbers of these fields in one call, in the same order; those that the driver does not report,
  /// or that are no finite number, are absent.
  [[nodiscard]] Answer<std::vector<std::optional<double>>> fields(std::span<const unsigned> ids,
                                                                  unsigned scope = 0) const;
  /// The number of one field.
  [[nodiscard]] Answer<double> field(unsigned id, unsigned scope = 0) const;

  /// The library's functions and its handle, for other calls than questions; the handle is null when the GPU is not
  /// reached.
  [[nodiscard]] const nvml_api::Functions& functions() const { return *functions_; }
  [[nodiscard]] nvml_api::Device handle() const { return device_; }

 private:
  template <class T, class Call, class... Given>
  Answer<T> ask(Call call, Given... given) const;
  [[nodiscard]] Answer<std::string> text(nvml_api::TextCall call) const;
  [[nodiscard]] Answer<Mode> mode(nvml_api::Call<nvml_api::Device, unsigned*, unsigned*> call) const;
  [[nodiscard]] Answer<double> clock_hz(nvml_api::Call<nvml_api::Device, int, unsigned*> call, int which) const;

  const nvml_api::Functions* functions_;
  nvml_api::Device device_;
  unsigned index_;
  nvml_api::Return code_;
};

}  // namespace assay::nvml
