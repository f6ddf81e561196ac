// smi: AMD SMI, opened at run time, with every answer typed: available, absent or failed.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "probes/amd/smi_api.h"

namespace assay::amd {

/// One answer. `value` is there exactly when the library gave one.
template <class T>
struct Answer {
  std::optional<T> value;
  smi::Status code = smi::kSuccess;

  /// Whether the question failed: neither answered, nor refused as one that this GPU, driver or user has no answer to.
  [[nodiscard]] bool failed() const;
};

/// Whether `code` says that GPU, driver or permissions have no answer.
bool is_absent(smi::Status code);

template <class T>
bool Answer<T>::failed() const {
  return code != smi::kSuccess && !is_absent(code);
}

/// `number`, or nothing for the largest one of its type, the mark of "not supported".
template <class Number>
std::optional<Number> reported(Number number) {
  return number == std::numeric_limits<Number>::max() ? std::nullopt : std::optional(number);
}

class AmdSmi;

/// How two GPUs are linked.
struct LinkFacts {
  bool is_xgmi = false;
  std::int64_t hops = 0;
};

/// One GPU, or one partition of it, as AMD SMI lists it. Valid as long as the AmdSmi it is of.
class AmdGpu {
 public:
  AmdGpu(const AmdSmi& library, smi::Handle handle) : library_(&library), handle_(handle) {}

  /// The answer of a function that takes this GPU, then `given`, then where to put a T.
  template <class T, class Function, class... Given>
  [[nodiscard]] Answer<T> ask(Function* function, Given... given) const {
    return told<T>([&](T* to) { return function(handle_, given..., to); }, function != nullptr);
  }

  /// Unlike the PCI address it stays with the GPU.
  [[nodiscard]] Answer<std::string> uuid() const;
  /// "0000:1b:00.0".
  [[nodiscard]] Answer<std::string> pci_address() const;
  /// "SPX", "DPX", "CPX"; "NPS1", "NPS4".
  [[nodiscard]] Answer<std::string> compute_partition() const;
  [[nodiscard]] Answer<std::string> memory_partition() const;
  /// Pages of memory that were taken out of use, that wait for it, and that cannot be.
  struct BadPages {
    std::uint64_t retired = 0, pending = 0, unreservable = 0;
  };
  [[nodiscard]] Answer<BadPages> bad_pages() const;
  /// Ids of the processes that use it, those of this process's own namespace.
  [[nodiscard]] Answer<std::vector<std::uint32_t>> processes() const;
  /// Energy since the driver was loaded, in J.
  [[nodiscard]] Answer<double> energy_j() const;
  /// Its link to `other`; nothing for one that is neither XGMI nor PCIe.
  [[nodiscard]] Answer<LinkFacts> link_to(const AmdGpu& other) const;
  /// Power now, or its mean where only that is reported, in W; the power limit in force.
  [[nodiscard]] Answer<double> power_w() const;
  [[nodiscard]] Answer<double> power_limit_w() const;
  /// Temperature at smi::kHotspot or smi::kMemoryTemperature, in degC; clock of the compute units.
  [[nodiscard]] Answer<double> temperature_c(unsigned where) const;
  [[nodiscard]] Answer<double> gfx_clock_hz() const;
  /// The largest cache before the memory, in B.
  [[nodiscard]] Answer<std::uint64_t> last_cache() const;

 private:
  template <class T, class Function>
  Answer<T> told(const Function& function, bool is_there) const {
    if (!is_there) return {.value = std::nullopt, .code = smi::kNoSymbol};
    const auto roomy = std::make_unique<smi::Roomy<T>>();
    const smi::Status code = function(&roomy->value);
    return {.value = code == smi::kSuccess ? std::optional(roomy->value) : std::nullopt, .code = code};
  }
  Answer<std::string> partition(smi::Functions::Call<smi::Handle, char*, std::uint32_t> function) const;

  const AmdSmi* library_;
  smi::Handle handle_;
};

/// The library, open and initialised for as long as this lives.
class AmdSmi {
 public:
  /// Opens `library`, a file name or a path; empty is smi::kLibrary, which is also looked for under /opt/rocm. Throws
  /// Skip with a hint when it is absent, of another version, or finds no driver.
  explicit AmdSmi(const std::string& library = "");

  /// Every GPU, or every partition, in its order. Throws std::runtime_error when it cannot list them.
  [[nodiscard]] std::vector<AmdGpu> gpus() const;
  /// The GPU at a PCI address as Linux spells it; nothing if there is none.
  [[nodiscard]] std::optional<AmdGpu> gpu_at(std::string_view pci_address) const;
  /// "26.1.0".
  [[nodiscard]] const std::string& version() const { return version_; }
  [[nodiscard]] const std::string& path() const { return path_; }
  /// Its words for a status, with the number.
  [[nodiscard]] std::string words(smi::Status code) const;
  [[nodiscard]] const smi::Functions& functions() const { return *functions_; }

 private:
  struct ShutDown {
    void operator()(smi::Functions* functions) const;
  };
  std::unique_ptr<smi::Functions> functions_;
  std::unique_ptr<smi::Functions, ShutDown> initialised_;  // the same functions; gone before they are
  std::string version_, path_;
};

/// Text of a fixed array that may lack its end; nothing if it is empty or "N/A".
std::optional<std::string> text_in(const char (&text)[smi::kText]);

/// "0000:1b:00.0" of the bits of an address.
std::string pci_address_of(std::uint64_t bits);

}  // namespace assay::amd
