// device: the GPUs of this node through the CUDA runtime, and owned handles of the runtime.
// No CUDA header is needed to include this.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "probes/core/units.h"
#include "probes/cuda/choice.h"

struct CUstream_st;  // the target of cudaStream_t
struct CUevent_st;   // the target of cudaEvent_t

namespace assay {
class Parameters;
}  // namespace assay

namespace assay::cuda {

/// Throws std::runtime_error with `what` was attempted, the runtime's words and the error's name when `error` (a
/// cudaError_t) is not success. A failure of hardware is an error, never a skip.
void check(int error, std::string_view what);

/// All GPUs the runtime shows, in its order. Throws Skip when there is no NVIDIA driver, the driver is too old for this
/// build, or it shows no GPU.
std::vector<Device> all_devices();

/// The GPUs that the parameter `device` names, ordered by PCI bus id. Throws Skip as all_devices and choose_devices do.
std::vector<Device> chosen_devices(const Parameters& given);

/// Has kernels loaded when a device is first used, not when each is first launched: loading waits for running kernels,
/// and behind a closed gate it would wait until the gate gives up. Call before anything else of CUDA.
void load_kernels_eagerly();

/// Makes `device` the current one of this thread; handles and memory made after belong to it.
void use(const Device& device);

/// Makes the GPU `uuid` the current one before anything of it is allocated. Throws Skip as chosen_devices().
Device entered(std::string_view uuid);

/// The version of the CUDA API that the driver supports, as "13.0"; not the driver's own version.
std::string cuda_driver_version();
/// The version of the CUDA runtime linked into this probe, as "13.0".
std::string cuda_runtime_version();

/// Longest wait for enqueued work: far above the seconds that any sample takes, below the deadline of every probe.
inline constexpr Seconds kLongestDeviceWait = {120};

struct DestroyStream {
  void operator()(CUstream_st* stream) const noexcept;
};
/// A stream of the current device; get() is a cudaStream_t.
using Stream = std::unique_ptr<CUstream_st, DestroyStream>;
/// A new stream that does not wait for the default stream.
Stream make_stream();
/// Waits until all work of `stream` is done. Throws std::runtime_error when it failed. When it is not done within
/// kLongestDeviceWait the device hangs, and the process leaves (poll_or_leave).
void wait(const Stream& stream);
/// Whether all work of `stream` is done. Throws std::runtime_error with `what` when it failed.
bool is_done(const Stream& stream, std::string_view what);

struct DestroyEvent {
  void operator()(CUevent_st* event) const noexcept;
};
/// A point in a stream's work; get() is a cudaEvent_t.
using Event = std::unique_ptr<CUevent_st, DestroyEvent>;
/// A new event that keeps time.
Event make_event();
/// Puts `event` behind all work enqueued in `stream` so far.
void mark(const Event& event, const Stream& stream);
/// Has the device do no work of `stream` that is enqueued from now on before `event`, which is marked.
void wait_for(const Stream& stream, const Event& event);
/// Waits for `event`, with the deadline of wait(stream).
void wait(const Event& event);
/// Device time from `begin` to `end`, both marked; waits for `end`. The resolution is about 0.5 us (CUDA Runtime API,
/// cudaEventElapsedTime).
Seconds elapsed(const Event& begin, const Event& end);

/// Owned memory of one kind.
template <class Kind>
class CudaBuffer {
 public:
  CudaBuffer() = default;
  /// Throws std::runtime_error with the size when there is not that much left.
  explicit CudaBuffer(Bytes size) : memory_(Kind::allocate(size)), size_(size) {}
  [[nodiscard]] std::byte* data() const { return memory_.get(); }
  [[nodiscard]] Bytes size() const { return size_; }
  /// The memory as an array of Element.
  template <class Element>
  [[nodiscard]] Element* as() const {
    return reinterpret_cast<Element*>(memory_.get());
  }

 private:
  std::unique_ptr<std::byte, Kind> memory_;
  Bytes size_;
};

/// Allocates and frees memory of the current device.
struct DeviceMemory {
  static std::byte* allocate(Bytes size);
  void operator()(std::byte* memory) const noexcept;
};
/// Memory of the current device, uninitialised, aligned to 256 bytes or more.
using DeviceBuffer = CudaBuffer<DeviceMemory>;

/// Allocates and frees page-locked host memory, placed by the calling thread's memory policy.
struct PinnedMemory {
  static std::byte* allocate(Bytes size);
  void operator()(std::byte* memory) const noexcept;
};
/// Page-locked host memory that every device can reach, zeroed.
using PinnedBuffer = CudaBuffer<PinnedMemory>;

/// Free memory of the current device.
Bytes free_memory();

/// Sets every byte of `size` of memory of the current device to `value`, in order with the other work of `stream`.
void clear(std::byte* memory, Bytes size, const Stream& stream, int value = 0);

/// Enqueues a copy of `size` from memory of the host to that of the current device, or back, by a copy engine where the
/// host's memory is locked.
void copy_up(std::byte* target, const std::byte* host, Bytes size, const Stream& stream);
void copy_down(std::byte* host, const std::byte* source, Bytes size, const Stream& stream);
/// The same within the memory of the current device; which engine copies is the runtime's choice.
void copy_within(std::byte* target, const std::byte* source, Bytes size, const Stream& stream);

/// Locks pages of the host and maps them into every device, until unlocked; where the current device finds them.
void lock_pages(std::span<std::byte> memory);
void unlock_pages(std::span<std::byte> memory) noexcept;
std::byte* place_on_device(std::byte* locked);

/// Copies from the current device to the host and waits; `source` holds target.size() bytes.
void copy_to_host(std::span<std::byte> target, const std::byte* source);

}  // namespace assay::cuda
