// adapter: opens an RDMA device and queries it.
#include "probes/verbs/adapter.h"

#include <algorithm>
#include <cerrno>
#include <system_error>

#include <fmt/format.h>

#include "probes/core/probe.h"
#include "probes/verbs/adapter_state.h"

namespace assay::verbs {
namespace {

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
