// device: probes/cuda/device.h by the HIP runtime. Code that measures through that header and is linked with this file
// measures AMD GPUs.
#include "probes/cuda/device.h"

#include <array>
#include <cstring>
#include <span>
#include <stdexcept>

#include <fmt/format.h>

#include "probes/amd/current.h"
#include "probes/amd/hip.h"
#include "probes/amd/rocm_library.h"
#include "probes/core/parameters.h"
#include "probes/core/probe.h"
#include "probes/cuda/patience.h"
#include "probes/cuda/progress.h"

namespace assay::amd {

namespace {
thread_local int chosen_device = 0;
}  // namespace

int current_device() { return chosen_device; }

}  // namespace assay::amd

namespace assay::cuda {
namespace {

namespace api = amd::hip_api;
using amd::hip;

int attribute(int ordinal, int which) {
  int value = 0;
  check(hip().attribute(&value, which, ordinal), fmt::format("reading attribute {} of GPU {}", which, ordinal));
  return value;
}

/// The GPU at `address` as AMD SMI lists it, so that all AMD probes name a GPU alike.
std::optional<amd::AmdGpu> known_to_smi(const std::string& address) {
  const amd::AmdSmi* smi = amd::smi_beside();
  return smi == nullptr ? std::nullopt : smi->gpu_at(address);
}

/// The runtime gives 16 characters where others give 16 bytes.
std::string uuid_of_runtime(int ordinal) {
  std::array<char, 16> text = {};
  check(hip().uuid(text.data(), ordinal), fmt::format("reading the UUID of GPU {}", ordinal));
  std::string words = "GPU-";
  for (const char c : text) words += std::isalnum(static_cast<unsigned char>(c)) != 0 ? std::string(1, c) : "";
  return words;
}

Device describe_device(int ordinal) {
  // Infinity Cache of CDNA 3 (AMD CDNA 3 white paper), which the runtime does not show: as long as AMD SMI does not
  // say otherwise, the last cache is taken to be no smaller.
  constexpr std::uint64_t kLastCache = std::uint64_t{256} << 20;
  constexpr int kText = 256;
  std::array<char, kText> name = {}, bus_id = {};
  std::size_t memory = 0;
  check(hip().name(name.data(), kText, ordinal), fmt::format("reading the name of GPU {}", ordinal));
  check(hip().bus_id(bus_id.data(), kText, ordinal), fmt::format("reading the PCI bus id of GPU {}", ordinal));
  check(hip().memory(&memory, ordinal), fmt::format("reading the memory of GPU {}", ordinal));
  const std::string address = pci_bus_id_text(bus_id.data());
  std::string uuid = uuid_of_runtime(ordinal);
  Bytes cache = {kLastCache};
  if (const auto gpu = known_to_smi(address)) {
    uuid = gpu->uuid().value.value_or(uuid);
    cache = {gpu->last_cache().value.value_or(kLastCache)};
  }
  return {.ordinal = ordinal,
          .uuid = uuid,
          .pci_bus_id = address,
          .name = name.data(),
          .sm_count = attribute(ordinal, api::kComputeUnits),
          .memory = {memory},
          .l2 = cache,
          .compute_major = attribute(ordinal, api::kMajor),
          .compute_minor = attribute(ordinal, api::kMinor)};
}

template <class Query>
void wait_until_done(Query query, std::string_view what) {
  int state = api::kNotReady;
  poll_or_leave(
      [&] {
        state = query();
        return state != api::kNotReady;
      },
      kLongestDeviceWait, fmt::format("{}{}", what, of_current()));
  check(state, what);
}

}  // namespace

void check(int error, std::string_view what) {
  if (error == api::kSuccess) return;
  (void)hip().last_error();  // forgets an error that is not sticky, so that the next call does not report it again
  throw std::runtime_error(
      fmt::format("{}: {} ({}){}", what, hip().words(error), hip().error_name(error), of_current()));
}

std::vector<Device> all_devices() {
  int count = 0;
  const int state = hip().count(&count);
  if (state == api::kNoDevice || state == api::kNotInitialised || state == api::kInsufficientDriver ||
      (state == api::kSuccess && count == 0)) {
    throw Skip(fmt::format("the HIP runtime shows no GPU: {}; {}", hip().words(state), amd::reach_hint()));
  }
  check(state, "counting the GPUs");
  std::vector<Device> devices;
  for (int ordinal = 0; ordinal < count; ++ordinal) devices.push_back(describe_device(ordinal));
  return devices;
}

void load_kernels_eagerly() {}  // kernels are loaded as one module, at the first launch, before any gate

std::vector<Device> chosen_devices(const Parameters& given) {
  return choose_devices(all_devices(), given.text("device"));
}

void use(const Device& device) {
  check(hip().set_device(device.ordinal), "choosing " + device.uuid);
  amd::chosen_device = device.ordinal;
  note_current(device);
}

Device entered(std::string_view uuid) {
  Device device = choose_devices(all_devices(), uuid).front();
  use(device);
  return device;
}

// A deleter reports nothing: the work before it was checked.
void DestroyStream::operator()(CUstream_st* stream) const noexcept { (void)hip().destroy_stream(stream); }
void DestroyEvent::operator()(CUevent_st* event) const noexcept { (void)hip().destroy_event(event); }
void DeviceMemory::operator()(std::byte* memory) const noexcept { (void)hip().release(memory); }
void PinnedMemory::operator()(std::byte* memory) const noexcept { (void)hip().release_host(memory); }

Stream make_stream() {
  api::Stream stream = nullptr;
  check(hip().make_stream(&stream, api::kNonBlocking), "making a stream");
  return Stream(stream);
}

void wait(const Stream& stream) {
  wait_until_done([&] { return hip().query_stream(stream.get()); }, "waiting for a stream");
}

bool is_done(const Stream& stream, std::string_view what) {
  const auto state = hip().query_stream(stream.get());
  if (state != api::kNotReady) check(state, what);
  return state != api::kNotReady;
}

Event make_event() {
  api::Event event = nullptr;
  check(hip().make_event(&event), "making an event");
  return Event(event);
}

void mark(const Event& event, const Stream& stream) {
  check(hip().record(event.get(), stream.get()), "marking an event");
}

void wait_for(const Stream& stream, const Event& event) {
  check(hip().wait_event(stream.get(), event.get(), 0), "having a stream wait for an event");
}

bool has_passed(const Event& event) { return hip().query_event(event.get()) != api::kNotReady; }

void wait(const Event& event) {
  wait_until_done([&] { return hip().query_event(event.get()); }, "waiting for an event");
}

Seconds elapsed(const Event& begin, const Event& end) {
  wait(end);
  float milliseconds = 0;
  check(hip().elapsed(&milliseconds, begin.get(), end.get()), "reading the time between two events");
  return {static_cast<double>(milliseconds) / 1e3};
}

std::byte* DeviceMemory::allocate(Bytes size) {
  void* memory = nullptr;
  check(hip().allocate(&memory, size.count), fmt::format("allocating {} B on the GPU", size.count));
  return static_cast<std::byte*>(memory);
}

std::byte* PinnedMemory::allocate(Bytes size) {
  void* memory = nullptr;
  check(hip().allocate_host(&memory, size.count, api::kPortable | api::kMapped | api::kCoherent),
        fmt::format("allocating {} B of pinned memory", size.count));
  std::memset(memory, 0, size.count);
  return static_cast<std::byte*>(memory);
}

Bytes free_memory() {
  std::size_t free = 0, total = 0;
  check(hip().memory_left(&free, &total), "reading how much memory is free");
  return {free};
}

void clear(std::byte* memory, Bytes size, const Stream& stream, int value) {
  check(hip().set(memory, value, size.count, stream.get()), "clearing memory of the GPU");
}

void copy_up(std::byte* target, const std::byte* host, Bytes size, const Stream& stream) {
  check(hip().copy_in_stream(target, host, size.count, api::kHostToDevice, stream.get()), "copying to the GPU");
}

void copy_down(std::byte* host, const std::byte* source, Bytes size, const Stream& stream) {
  check(hip().copy_in_stream(host, source, size.count, api::kDeviceToHost, stream.get()), "copying from the GPU");
}

void copy_within(std::byte* target, const std::byte* source, Bytes size, const Stream& stream) {
  check(hip().copy_in_stream(target, source, size.count, api::kDeviceToDevice, stream.get()), "copying on the GPU");
}

void lock_pages(std::span<std::byte> memory) {
  check(hip().lock_pages(memory.data(), memory.size(), api::kPortable | api::kMapped),
        fmt::format("locking {} B of host memory", memory.size()));
}

// A destructor reports nothing; the memory is freed anyway.
void unlock_pages(std::span<std::byte> memory) noexcept { (void)hip().unlock_pages(memory.data()); }

std::byte* place_on_device(std::byte* locked) {
  void* address = nullptr;
  check(hip().device_pointer(&address, locked, 0), "mapping host memory into a GPU");
  return static_cast<std::byte*>(address);
}

void copy_to_host(std::span<std::byte> target, const std::byte* source) {
  check(hip().copy(target.data(), source, target.size(), api::kDeviceToHost), "copying from the GPU");
}

}  // namespace assay::cuda
