// device: calls of the CUDA runtime, with deadlines and owned handles.
#include "probes/cuda/device.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <stdexcept>

#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <stdlib.h>  // setenv is POSIX

#include "probes/core/library.h"
#include "probes/core/parameters.h"
#include "probes/core/probe.h"
#include "probes/cuda/driver.h"
#include "probes/cuda/patience.h"
#include "probes/cuda/progress.h"

namespace assay::cuda {
namespace {

std::string version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);  // CUDART_VERSION is 1000 major + 10 minor
}

[[noreturn]] void skip_for_driver() {
  int driver = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) {
    const Library library = Library::open(cuda_api::kLibrary, "the CUDA driver's library");  // or says where it looked
    throw Skip(fmt::format("no NVIDIA driver: {} knows of none; hint: install the driver, or run where it is",
                           library.path()));
  }
  throw Skip(words_for_old_driver(version_text(driver), version_text(CUDART_VERSION)));
}

/// Opens the driver's library where libraries of probes are looked for, before the runtime opens it by its name alone:
/// in containers it may lie in a folder that the loader does not search. Nothing where it is not found: the runtime
/// says so.
void load_driver() {
  try {
    (void)Library::open(cuda_api::kLibrary, "the CUDA driver's library");
  } catch (const Skip&) {
    return;
  }
}

/// The driver's handle of the GPU that the runtime numbers `ordinal`; the runtime does not distinguish an instance of a
/// partitioned GPU from a whole one. Nothing where the driver cannot be asked beside the runtime.
std::optional<std::string> uuid_of_driver(int ordinal) {
  static const std::vector<DriverGpu> gpus = [] {
    try {
      return CudaDriver().gpus();
    } catch (const std::exception&) {
      return std::vector<DriverGpu>{};  // the runtime's own answer is then taken, and its errors are reported
    }
  }();
  const auto found = std::ranges::find(gpus, ordinal, &DriverGpu::ordinal);
  return found == gpus.end() ? std::nullopt : std::optional(found->uuid);
}

Device describe_device(int ordinal) {
  cudaDeviceProp properties;
  check(cudaGetDeviceProperties(&properties, ordinal), fmt::format("reading the properties of GPU {}", ordinal));
  constexpr int kBusIdSize = 32;  // longer than "00000000:00:00.0"
  std::array<char, kBusIdSize> bus_id = {};
  check(cudaDeviceGetPCIBusId(bus_id.data(), kBusIdSize, ordinal),
        fmt::format("reading the PCI bus id of GPU {}", ordinal));
  std::array<std::byte, 16> uuid = {};
  std::memcpy(uuid.data(), properties.uuid.bytes, uuid.size());
  return {.ordinal = ordinal,
          .uuid = uuid_of_driver(ordinal).value_or(uuid_text(uuid)),
          .pci_bus_id = pci_bus_id_text(bus_id.data()),
          .name = properties.name,
          .sm_count = properties.multiProcessorCount,
          .memory = {properties.totalGlobalMem},
          .l2 = {static_cast<std::uint64_t>(properties.l2CacheSize)},
          .compute_major = properties.major,
          .compute_minor = properties.minor};
}

template <class Query>
void wait_until_done(Query query, std::string_view what) {
  cudaError_t state = cudaErrorNotReady;
  poll_or_leave(
      [&] {
        state = query();
        return state != cudaErrorNotReady;
      },
      kLongestDeviceWait, fmt::format("{}{}", what, of_current()));
  check(state, what);
}

}  // namespace

void check(int error, std::string_view what) {
  if (error == cudaSuccess) return;
  const auto code = static_cast<cudaError_t>(error);
  (void)cudaGetLastError();  // forgets an error that is not sticky, so that the next call does not report it again
  throw std::runtime_error(
      fmt::format("{}: {} ({}){}", what, cudaGetErrorString(code), cudaGetErrorName(code), of_current()));
}

std::vector<Device> all_devices() {
  load_driver();
  int count = 0;
  const cudaError_t state = cudaGetDeviceCount(&count);
  if (state == cudaErrorInsufficientDriver) skip_for_driver();
  if (state == cudaErrorNoDevice || (state == cudaSuccess && count == 0)) throw Skip("the NVIDIA driver shows no GPU");
  if (state == cudaErrorSystemNotReady) {
    check(state, "counting the GPUs; hint: is the NVIDIA Fabric Manager running?");
  }
  check(state, "counting the GPUs");
  std::vector<Device> devices;
  devices.reserve(static_cast<std::size_t>(count));
  for (int ordinal = 0; ordinal < count; ++ordinal) devices.push_back(describe_device(ordinal));
  return devices;
}

void load_kernels_eagerly() {
  // The only thread is this one: probe_main has started no other before it calls a probe.
  check(setenv("CUDA_MODULE_LOADING", "EAGER", 1) == 0 ? cudaSuccess : cudaErrorUnknown, "setting CUDA_MODULE_LOADING");
}

std::vector<Device> chosen_devices(const Parameters& given) {
  return choose_devices(all_devices(), given.text("device"));
}

void use(const Device& device) {
  check(cudaSetDevice(device.ordinal), "choosing " + device.uuid);
  note_current(device);
}

std::string cuda_driver_version() {
  int version = 0;
  check(cudaDriverGetVersion(&version), "reading the driver's CUDA version");
  return version_text(version);
}

Device entered(std::string_view uuid) {
  Device device = choose_devices(all_devices(), uuid).front();
  use(device);
  return device;
}

std::string cuda_runtime_version() {
  int version = 0;
  check(cudaRuntimeGetVersion(&version), "reading the runtime's version");
  return version_text(version);
}

// A deleter reports nothing: the work before it was checked.
void DestroyStream::operator()(CUstream_st* stream) const noexcept { (void)cudaStreamDestroy(stream); }
void DestroyEvent::operator()(CUevent_st* event) const noexcept { (void)cudaEventDestroy(event); }
void DeviceMemory::operator()(std::byte* memory) const noexcept { (void)cudaFree(memory); }
void PinnedMemory::operator()(std::byte* memory) const noexcept { (void)cudaFreeHost(memory); }

Stream make_stream() {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "making a stream");
  return Stream(stream);
}

void wait(const Stream& stream) {
  wait_until_done([&] { return cudaStreamQuery(stream.get()); }, "waiting for a stream");
}

bool is_done(const Stream& stream, std::string_view what) {
  const auto state = cudaStreamQuery(stream.get());
  if (state != cudaErrorNotReady) check(state, what);
  return state != cudaErrorNotReady;
}

Event make_event() {
  cudaEvent_t event = nullptr;
  check(cudaEventCreate(&event), "making an event");
  return Event(event);
}

void mark(const Event& event, const Stream& stream) {
  check(cudaEventRecord(event.get(), stream.get()), "marking an event");
}

void wait_for(const Stream& stream, const Event& event) {
  check(cudaStreamWaitEvent(stream.get(), event.get(), 0), "having a stream wait for an event");
}

bool has_passed(const Event& event) { return cudaEventQuery(event.get()) != cudaErrorNotReady; }

void wait(const Event& event) {
  wait_until_done([&] { return cudaEventQuery(event.get()); }, "waiting for an event");
}

Seconds elapsed(const Event& begin, const Event& end) {
  wait(end);
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, begin.get(), end.get()), "reading the time between two events");
  return {static_cast<double>(milliseconds) / 1e3};
}

std::byte* DeviceMemory::allocate(Bytes size) {
  void* memory = nullptr;
  check(cudaMalloc(&memory, size.count), fmt::format("allocating {} B on the GPU", size.count));
  return static_cast<std::byte*>(memory);
}

std::byte* PinnedMemory::allocate(Bytes size) {
  void* memory = nullptr;
  check(cudaHostAlloc(&memory, size.count, cudaHostAllocPortable),
        fmt::format("allocating {} B of pinned memory", size.count));
  std::memset(memory, 0, size.count);
  return static_cast<std::byte*>(memory);
}

Bytes free_memory() {
  std::size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "reading how much memory is free");
  return {free};
}

void clear(std::byte* memory, Bytes size, const Stream& stream, int value) {
  check(cudaMemsetAsync(memory, value, size.count, stream.get()), "clearing memory of the GPU");
}

void copy_up(std::byte* target, const std::byte* host, Bytes size, const Stream& stream) {
  check(cudaMemcpyAsync(target, host, size.count, cudaMemcpyHostToDevice, stream.get()), "copying to the GPU");
}

void copy_down(std::byte* host, const std::byte* source, Bytes size, const Stream& stream) {
  check(cudaMemcpyAsync(host, source, size.count, cudaMemcpyDeviceToHost, stream.get()), "copying from the GPU");
}

void copy_within(std::byte* target, const std::byte* source, Bytes size, const Stream& stream) {
  check(cudaMemcpyAsync(target, source, size.count, cudaMemcpyDeviceToDevice, stream.get()), "copying on the GPU");
}

void lock_pages(std::span<std::byte> memory) {
  check(cudaHostRegister(memory.data(), memory.size(), cudaHostRegisterPortable | cudaHostRegisterMapped),
        fmt::format("locking {} B of host memory", memory.size()));
}

// A destructor reports nothing; the memory is freed anyway.
void unlock_pages(std::span<std::byte> memory) noexcept { (void)cudaHostUnregister(memory.data()); }

std::byte* place_on_device(std::byte* locked) {
  void* address = nullptr;
  check(cudaHostGetDevicePointer(&address, locked, 0), "mapping host memory into a GPU");
  return static_cast<std::byte*>(address);
}

void copy_to_host(std::span<std::byte> target, const std::byte* source) {
  check(cudaMemcpy(target.data(), source, target.size(), cudaMemcpyDeviceToHost), "copying from the GPU");
}

}  // namespace assay::cuda
