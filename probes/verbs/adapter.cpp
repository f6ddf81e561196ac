// adapter: opens an RDMA device and queries it.
// A host's pages, a dma-buf, or the address of a GPU. A refusal is reported, never replaced in
// silence.
#include "probes/verbs/adapter.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <vector>

#include <sys/mman.h>

#include <fmt/format.h>

#include "probes/core/probe.h"
#include "probes/verbs/adapter_state.h"

namespace assay::verbs {
namespace {

constexpr unsigned kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

std::string words_of(int code) { return std::generic_category().message(code == 0 ? EIO : code); }

/// Plain registration of `size` bytes at `address`; null and errno when it is refused.
ibv_mr* register_plainly(const Adapter::State& adapter, std::uint64_t address, std::size_t size, bool relaxed) {
  const auto& verbs = adapter.verbs;
  auto* const data = reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr): of a GPU's memory, too
  errno = 0;
  return relaxed ? verbs.reg_mr_iova2(adapter.domain.get(), data, size, address, kAccess | IBV_ACCESS_RELAXED_ORDERING)
                 : verbs.reg_mr(adapter.domain.get(), data, size, static_cast<int>(kAccess));
}

/// Registers pages of this host as `memory`.
void register_host(const Adapter::State& adapter, std::span<std::byte> pages, Ordering ordering,
                   RegisteredMemory::State& memory) {
  memory.relaxed = ordering == Ordering::relaxed && adapter.verbs.reg_mr_iova2 != nullptr;
  memory.address = reinterpret_cast<std::uint64_t>(pages.data());
  ibv_mr* const region = register_plainly(adapter, memory.address, pages.size(), memory.relaxed);
  if (region == nullptr && errno == ENOMEM) {
    throw std::runtime_error(fmt::format(
        "ibv_reg_mr of {} B: not enough lockable memory; hint: raise the limit (ulimit -l, or memlock in limits.conf)",
        pages.size()));
  }
  memory.region = owned(region, adapter.verbs.dereg_mr, fmt::format("ibv_reg_mr of {} B", pages.size()));
}

/// Registers the GPU's memory as a dma-buf; why not, else empty.
std::string register_dma_buf(const Adapter::State& adapter, RegisteredMemory::State& memory) {
  const auto& verbs = adapter.verbs;
  if (verbs.reg_dmabuf_mr == nullptr) {
    return fmt::format("{} at {} has no ibv_reg_dmabuf_mr (rdma-core 34)", verbs.library.title(), verbs.library.path());
  }
  const int access = static_cast<int>(kAccess | (memory.relaxed ? unsigned{IBV_ACCESS_RELAXED_ORDERING} : 0U));
  std::string refused;
  const auto take = [&](int descriptor, std::uint64_t offset) {
    errno = 0;
    ibv_mr* const region = verbs.reg_dmabuf_mr(adapter.domain.get(), offset, memory.gpu->size(), memory.gpu->address(),
                                               descriptor, access);
    if (region == nullptr) refused = "ibv_reg_dmabuf_mr: " + words_of(errno);
    memory.region = VerbsHandle<ibv_mr>(region, VerbsDeleter<ibv_mr>{verbs.dereg_mr});
  };
  const std::string not_lent = memory.gpu->lend_dma_buf(take);
  return not_lent.empty() ? refused : not_lent;
}

constexpr std::uint32_t kMaxUint8 = 255;

std::uint8_t as_byte(int value) { return static_cast<std::uint8_t>(std::clamp(value, 0, static_cast<int>(kMaxUint8))); }

/// Size of an MTU code in bytes (InfiniBand Architecture Specification, vol. 1, 9.2: 1 is 256 B, each further one
/// doubles).
int mtu_bytes(ibv_mtu code) { return 128 << static_cast<int>(code); }

ibv_port_attr port_of(const VerbsFunctions& verbs, ibv_context* context, int number) {
  ibv_port_attr attributes = {};
  const auto port = static_cast<std::uint8_t>(number);
  // As verbs.h does it: the extended call fills the whole structure, the old function the part that it knows.
  if (auto* const extended = verbs_get_ctx_op(context, query_port)) {
    demand_verbs(extended->query_port(context, port, &attributes, sizeof attributes), "ibv_query_port");
  } else {
    demand_verbs(verbs.query_port(context, port, reinterpret_cast<_compat_ibv_port_attr*>(&attributes)),
                 "ibv_query_port");
  }
  return attributes;
}

bool stamps_completions(ibv_context* context) {
  auto* const extended = verbs_get_ctx_op(context, query_device_ex);
  ibv_device_attr_ex attributes = {};
  if (extended == nullptr || extended->query_device_ex(context, nullptr, &attributes, sizeof attributes) != 0)
    return false;
  return attributes.completion_timestamp_mask != 0;
}

AdapterLimits limits_of(const VerbsFunctions& verbs, ibv_context* context, int number) {
  ibv_device_attr device = {};
  demand_verbs(verbs.query_device(context, &device), "ibv_query_device");
  const ibv_port_attr port = port_of(verbs, context, number);
  return {.mtu = mtu_bytes(port.active_mtu),
          .mtu_max = mtu_bytes(port.max_mtu),
          .lid = port.lid,
          .work_requests = static_cast<std::uint32_t>(std::max(device.max_qp_wr, 0)),
          .completions = static_cast<std::uint32_t>(std::max(device.max_cqe, 0)),
          .reads_as_initiator = as_byte(device.max_qp_init_rd_atom),
          .reads_as_responder = as_byte(device.max_qp_rd_atom),
          .largest_message = port.max_msg_sz,
          .completion_timestamps = stamps_completions(context)};
}

VerbsHandle<ibv_context> open_named(const VerbsFunctions& verbs, const std::string& name) {
  int count = 0;
  ibv_device** const list = verbs.get_device_list(&count);
  if (list == nullptr)
    throw Skip(
        fmt::format("libibverbs lists no devices: {}; is ib_uverbs loaded?", std::generic_category().message(errno)));
  const auto release = [&](ibv_device** all) { verbs.free_device_list(all); };
  const std::unique_ptr<ibv_device*, decltype(release)> devices(list, release);
  for (int i = 0; i < count; ++i) {
    if (name != verbs.get_device_name(list[i])) continue;
    errno = 0;
    ibv_context* const context = verbs.open_device(list[i]);
    if (context != nullptr) return {context, VerbsDeleter<ibv_context>{verbs.close_device}};
    if (errno == EACCES || errno == EPERM)
      throw Skip(fmt::format("{} may not be opened: no access to /dev/infiniband/uverbs*", name));
    demand_verbs(errno == 0 ? EIO : errno, "ibv_open_device " + name);
  }
  throw Skip(
      fmt::format("the kernel has {}, but libibverbs at {} does not list it: its provider library or "
                  "/dev/infiniband/uverbs* is missing",
                  name, verbs.library.path()));
}

}  // namespace

Mapping::Mapping(std::size_t size) : size_(size) {
  void* const memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::system_error(errno, std::generic_category(), fmt::format("mapping {} B", size));
  data_ = static_cast<std::byte*>(memory);
  (void)madvise(data_, size_, MADV_HUGEPAGE);  // fewer entries in the adapter's translation table; only a wish
  std::memset(data_, 0, size_);                // from the CPUs near the adapter, so that the memory is there, too
}

Mapping::~Mapping() { (void)munmap(data_, size_); }  // cannot fail: it is a mapping of ours

RegisteredMemory::RegisteredMemory(std::unique_ptr<State> state) : state_(std::move(state)) {}
RegisteredMemory::RegisteredMemory(RegisteredMemory&&) noexcept = default;
RegisteredMemory::~RegisteredMemory() = default;
std::span<std::byte> RegisteredMemory::bytes() const {
  return state_->mapping ? state_->mapping->bytes() : state_->lent;
}
std::uint64_t RegisteredMemory::address() const { return state_->address; }
std::uint32_t RegisteredMemory::remote_key() const { return state_->region->rkey; }
bool RegisteredMemory::relaxed() const { return state_->relaxed; }
Registration RegisteredMemory::registration() const { return state_->registration; }
const std::string& RegisteredMemory::dma_buf_refused() const { return state_->dma_buf_refused; }

void RegisteredMemory::write(std::size_t begin, std::size_t size,
                             const std::function<void(std::span<std::byte>)>& make) const {
  if (!state_->gpu) return make(bytes().subspan(begin, size));
  std::vector<std::byte> copy(size);
  make(copy);
  state_->gpu->write(begin, copy);
}

std::uint64_t RegisteredMemory::read(std::size_t begin, std::size_t size,
                                     const std::function<std::uint64_t(std::span<const std::byte>)>& look) const {
  if (!state_->gpu) return look(bytes().subspan(begin, size));
  std::vector<std::byte> copy(size);
  state_->gpu->read(begin, copy);
  return look(copy);
}

bool RegisteredMemory::is_staged() const { return state_->gpu && state_->mapping; }

void RegisteredMemory::stage_out(std::size_t size) const {
  if (is_staged()) state_->gpu->read(0, state_->mapping->bytes().first(size));
}

void RegisteredMemory::stage_in(std::size_t size) const {
  if (is_staged()) state_->gpu->write(0, state_->mapping->bytes().first(size));
}

RegisteredMemory Adapter::staged(cuda::GpuMemory of, Ordering ordering) const {
  auto memory = std::make_unique<RegisteredMemory::State>();
  memory->mapping.emplace(of.size());
  memory->gpu.emplace(std::move(of));
  register_host(*state_, memory->mapping->bytes(), ordering, *memory);
  return RegisteredMemory(std::move(memory));
}

RegisteredMemory Adapter::memory(std::size_t size, Ordering ordering) const {
  auto memory = std::make_unique<RegisteredMemory::State>();
  memory->mapping.emplace(size);
  register_host(*state_, memory->mapping->bytes(), ordering, *memory);
  return RegisteredMemory(std::move(memory));
}

RegisteredMemory Adapter::memory(std::span<std::byte> lent, Ordering ordering) const {
  auto memory = std::make_unique<RegisteredMemory::State>();
  memory->lent = lent;
  register_host(*state_, lent, ordering, *memory);
  return RegisteredMemory(std::move(memory));
}

RegisteredMemory Adapter::memory(cuda::GpuMemory of, Ordering ordering) const {
  auto memory = std::make_unique<RegisteredMemory::State>();
  memory->relaxed = ordering == Ordering::relaxed && state_->verbs.reg_mr_iova2 != nullptr;
  memory->gpu.emplace(std::move(of));
  memory->address = memory->gpu->address();
  const cuda::DriverGpu& gpu = memory->gpu->gpu();
  if (!gpu.dma_buf && !gpu.peermem) {
    throw Skip(fmt::format("{} ({} at {}) supports neither dma-buf nor GPUDirect RDMA according to its driver",
                           gpu.name, gpu.uuid, gpu.pci_bus_id));
  }
  memory->registration = Registration::dma_buf;
  memory->dma_buf_refused = register_dma_buf(*state_, *memory);
  if (memory->dma_buf_refused.empty()) return RegisteredMemory(std::move(memory));

  memory->registration = Registration::peermem;
  ibv_mr* const region = register_plainly(*state_, memory->address, memory->gpu->size(), memory->relaxed);
  if (region == nullptr) {
    throw std::runtime_error(fmt::format(
        "{} does not reach the memory of {} at {}: as dma-buf: {}; through nvidia-peermem: ibv_reg_mr of {} B: {}; "
        "hint: dma-buf needs the open GPU kernel modules, CUDA 11.7, Linux 5.12 and rdma-core 34; else modprobe "
        "nvidia-peermem",
        state_->port.name(), gpu.uuid, gpu.pci_bus_id, memory->dma_buf_refused, memory->gpu->size(), words_of(errno)));
  }
  memory->region = owned(region, state_->verbs.dereg_mr, "ibv_reg_mr");
  return RegisteredMemory(std::move(memory));
}

void demand_verbs(int code, std::string_view what) {
  const int error = code < 0 ? -code : code;
  if (code != 0) throw VerbsError(fmt::format("{}: {}", what, std::generic_category().message(error)), error, 0);
}

Adapter::Adapter(const PortFacts& port) : state_(std::make_unique<State>()) {
  const auto& verbs = state_->verbs;
  state_->port = port;
  state_->context = open_named(verbs, port.device);
  state_->limits = limits_of(verbs, state_->context.get(), port.port);
  state_->domain = owned(verbs.alloc_pd(state_->context.get()), verbs.dealloc_pd, "ibv_alloc_pd");
}

Adapter::Adapter(Adapter&&) noexcept = default;
Adapter::~Adapter() = default;
const PortFacts& Adapter::port() const { return state_->port; }
const AdapterLimits& Adapter::limits() const { return state_->limits; }
const std::string& Adapter::library() const { return state_->verbs.library.path(); }

}  // namespace assay::verbs
