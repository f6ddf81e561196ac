// endpoint: queue pairs from ibv_create_qp to ibv_poll_cq.
#include "probes/verbs/endpoint.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <random>
#include <stdexcept>

#include <arpa/inet.h>

#include <fmt/format.h>

#include "probes/verbs/adapter_state.h"

namespace assay::verbs {
namespace {

constexpr std::uint32_t kSequenceMask = 0xffffff;  // packet sequence numbers have 24 bits
constexpr std::uint8_t kHopLimit = 64;             // routers between leaf and leaf, with room
constexpr std::uint8_t kRnrTimer = 12;   // 0.64 ms until a sender that found no receive tries again (IBA table 45)
constexpr std::uint8_t kRnrRetries = 7;  // 7 means without end: the caller's own deadline ends it
constexpr std::size_t kPolled = 32;      // completions taken with one call

/// Code of an MTU of `bytes`, a power of two from 256 to 4096.
ibv_mtu mtu_code(int bytes) {
  for (const auto code : {IBV_MTU_256, IBV_MTU_512, IBV_MTU_1024, IBV_MTU_2048, IBV_MTU_4096}) {
    if (128 << static_cast<int>(code) == bytes) return code;
  }
  throw std::runtime_error(fmt::format("mtu: {} B is none of 256, 512, 1024, 2048 and 4096", bytes));
}

ibv_wr_opcode opcode_of(VerbsOperation operation) {
  switch (operation) {
    case VerbsOperation::write:
      return IBV_WR_RDMA_WRITE;
    case VerbsOperation::read:
      return IBV_WR_RDMA_READ;
    case VerbsOperation::send:
      return IBV_WR_SEND;
  }
  return IBV_WR_SEND;
}

std::uint32_t random_sequence() { return std::random_device{}() & kSequenceMask; }

}  // namespace

struct VerbsEndpoint::State {
  const Adapter::State* adapter = nullptr;
  const RegisteredMemory::State* memory = nullptr;
  EndpointPlan plan;
  EndpointAddress peer;
  std::uint32_t sequence = random_sequence();
  std::uint32_t inlined = 0;
  VerbsHandle<ibv_cq> send_queue, receive_queue;
  std::vector<VerbsHandle<ibv_qp>> pairs;
  std::vector<ibv_send_wr> send_requests;
  std::vector<ibv_recv_wr> receive_requests;
  std::vector<ibv_sge> pieces;

  [[nodiscard]] VerbsHandle<ibv_cq> make_queue(std::uint32_t entries) const {
    if (adapter->limits.completions != 0 && entries > adapter->limits.completions) {
      throw std::runtime_error(
          fmt::format("a completion queue of {} entries is more than {} has ({}); lower depth or qps", entries,
                      adapter->port.name(), adapter->limits.completions));
    }
    return owned(adapter->verbs.create_cq(adapter->context.get(), static_cast<int>(entries), nullptr, nullptr, 0),
                 adapter->verbs.destroy_cq, "ibv_create_cq");
  }

  [[nodiscard]] VerbsHandle<ibv_qp> make_pair() {
    ibv_qp_init_attr attributes = {};
    attributes.send_cq = send_queue.get();
    attributes.recv_cq = receive_queue.get();
    attributes.qp_type = IBV_QPT_RC;
    attributes.cap.max_send_wr = plan.sends;
    attributes.cap.max_recv_wr = plan.receives;
    attributes.cap.max_send_sge = attributes.cap.max_recv_sge = 1;
    attributes.cap.max_inline_data = plan.inlined;
    errno = 0;
    ibv_qp* made = adapter->verbs.create_qp(adapter->domain.get(), &attributes);
    if (made == nullptr && plan.inlined > 0) {  // a device that inlines less says no to the whole
      attributes.cap.max_inline_data = 0;
      made = adapter->verbs.create_qp(adapter->domain.get(), &attributes);
    }
    auto pair = owned(made, adapter->verbs.destroy_qp, "ibv_create_qp");
    inlined = std::min(attributes.cap.max_inline_data, plan.inlined);
    ibv_qp_attr initial = {};
    initial.qp_state = IBV_QPS_INIT;
    initial.port_num = static_cast<std::uint8_t>(adapter->port.port);
    initial.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    demand_verbs(adapter->verbs.modify_qp(pair.get(), &initial,
                                          IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
                 "ibv_modify_qp to INIT");
    return pair;
  }

  std::size_t poll(ibv_cq* queue, std::span<Completed> done, std::string_view what) const {
    std::array<ibv_wc, kPolled> taken;
    const int most = static_cast<int>(std::min(done.size(), taken.size()));
    const int count = ibv_poll_cq(queue, most, taken.data());
    if (count < 0) throw std::runtime_error("ibv_poll_cq failed");
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
      const ibv_wc& completion = taken[i];
      const auto pair = static_cast<std::uint32_t>(completion.wr_id >> 32);
      if (completion.status != IBV_WC_SUCCESS) {
        const int status = completion.status;
        throw VerbsError(fmt::format("{}: a {} on queue pair {} ended with \"{}\" (status {}, vendor error {:#x})",
                                     adapter->port.name(), what, pairs.at(pair)->qp_num,
                                     adapter->verbs.wc_status_str(completion.status), status, completion.vendor_err),
                         0, status);
      }
      done[i] = {.pair = pair, .messages = static_cast<std::uint32_t>(completion.wr_id)};
    }
    return static_cast<std::size_t>(count);
  }
};

VerbsEndpoint::VerbsEndpoint(const Adapter& adapter, const RegisteredMemory& memory, const EndpointPlan& plan)
    : state_(std::make_unique<State>()) {
  state_->adapter = adapter.state_.get();
  state_->memory = memory.state_.get();
  state_->plan = plan;
  const std::uint32_t most = adapter.limits().work_requests;
  if (most != 0 && std::max(plan.sends, plan.receives) > most) {
    throw std::runtime_error(fmt::format("{} requests on a queue pair are more than {} has ({}); lower depth",
                                         std::max(plan.sends, plan.receives), adapter.port().name(), most));
  }
  state_->send_queue = state_->make_queue(plan.sends * plan.queue_pairs);
  state_->receive_queue = state_->make_queue(plan.receives * plan.queue_pairs);
  for (std::uint32_t i = 0; i < plan.queue_pairs; ++i) state_->pairs.push_back(state_->make_pair());
  const std::size_t requests = std::max(plan.sends, plan.receives);
  state_->send_requests.resize(requests);
  state_->receive_requests.resize(requests);
  state_->pieces.resize(requests);
}

VerbsEndpoint::~VerbsEndpoint() {
  state_->pairs.clear();  // before the completion queues that they hang on
}

EndpointAddress VerbsEndpoint::address() const {
  EndpointAddress address{.queue_pairs = {},
                          .packet_sequence = state_->sequence,
                          .memory = state_->memory->address,
                          .remote_key = state_->memory->region->rkey};
  for (const auto& pair : state_->pairs) address.queue_pairs.push_back(pair->qp_num);
  return address;
}

std::uint32_t VerbsEndpoint::inlined() const { return state_->inlined; }

void VerbsEndpoint::connect(const EndpointAddress& peer, const PathChoice& path) {
  if (peer.queue_pairs.size() != state_->pairs.size()) {
    throw std::runtime_error(
        fmt::format("the peer has {} queue pairs, this rank {}", peer.queue_pairs.size(), state_->pairs.size()));
  }
  state_->peer = peer;
  ibv_qp_attr ready = {};
  ready.qp_state = IBV_QPS_RTR;
  ready.path_mtu = mtu_code(path.mtu);
  ready.rq_psn = peer.packet_sequence & kSequenceMask;
  ready.max_dest_rd_atomic = path.reads_as_responder;
  ready.min_rnr_timer = kRnrTimer;
  ready.ah_attr.dlid = static_cast<std::uint16_t>(path.target_lid);
  ready.ah_attr.sl = static_cast<std::uint8_t>(path.service_level);
  ready.ah_attr.port_num = static_cast<std::uint8_t>(state_->adapter->port.port);
  ready.ah_attr.is_global = path.global ? 1 : 0;
  if (path.global) {
    if (inet_pton(AF_INET6, path.target_gid.c_str(), ready.ah_attr.grh.dgid.raw) != 1) {
      throw std::runtime_error(fmt::format("the peer's GID '{}' is none", path.target_gid));
    }
    ready.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(path.gid_index);
    ready.ah_attr.grh.hop_limit = kHopLimit;
    ready.ah_attr.grh.traffic_class = static_cast<std::uint8_t>(path.traffic_class);
  }
  for (std::size_t i = 0; i < state_->pairs.size(); ++i) {
    ready.dest_qp_num = peer.queue_pairs[i];
    demand_verbs(state_->adapter->verbs.modify_qp(state_->pairs[i].get(), &ready,
                                                  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                                      IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
                 fmt::format("ibv_modify_qp to RTR, towards {}",
                             path.global ? gid_words(path.target_gid) : fmt::format("LID {}", path.target_lid)));
    ibv_qp_attr sending = {};
    sending.qp_state = IBV_QPS_RTS;
    sending.timeout = path.ack_timeout;
    sending.retry_cnt = kRetries;
    sending.rnr_retry = kRnrRetries;
    sending.sq_psn = state_->sequence;
    sending.max_rd_atomic = path.reads_as_initiator;
    demand_verbs(state_->adapter->verbs.modify_qp(state_->pairs[i].get(), &sending,
                                                  IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                                      IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
                 "ibv_modify_qp to RTS");
  }
}

void VerbsEndpoint::post(VerbsOperation operation, std::uint32_t pair, std::span<const Transfer> transfers) {
  auto& state = *state_;
  const std::uint64_t base = state.memory->address;
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    const bool last = i + 1 == transfers.size();
    const bool inlines = operation != VerbsOperation::read && transfers[i].size <= state.inlined;
    state.pieces[i] = {
        .addr = base + transfers[i].here, .length = transfers[i].size, .lkey = state.memory->region->lkey};
    ibv_send_wr& request = state.send_requests[i];
    request = {};
    request.wr_id = std::uint64_t{pair} << 32 | transfers.size();
    request.next = last ? nullptr : &state.send_requests[i + 1];
    request.sg_list = &state.pieces[i];
    request.num_sge = 1;
    request.opcode = opcode_of(operation);
    request.send_flags = (last ? unsigned{IBV_SEND_SIGNALED} : 0U) | (inlines ? unsigned{IBV_SEND_INLINE} : 0U);
    request.wr.rdma.remote_addr = state.peer.memory + transfers[i].there;
    request.wr.rdma.rkey = state.peer.remote_key;
  }
  ibv_send_wr* refused = nullptr;
  demand_verbs(ibv_post_send(state.pairs[pair].get(), state.send_requests.data(), &refused), "ibv_post_send");
}

void VerbsEndpoint::post_receives(std::uint32_t pair, std::span<const Transfer> transfers) {
  auto& state = *state_;
  const std::uint64_t base = state.memory->address;
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    state.pieces[i] = {
        .addr = base + transfers[i].here, .length = transfers[i].size, .lkey = state.memory->region->lkey};
    state.receive_requests[i] = {.wr_id = std::uint64_t{pair} << 32 | 1,
                                 .next = i + 1 == transfers.size() ? nullptr : &state.receive_requests[i + 1],
                                 .sg_list = &state.pieces[i],
                                 .num_sge = 1};
  }
  ibv_recv_wr* refused = nullptr;
  demand_verbs(ibv_post_recv(state.pairs[pair].get(), state.receive_requests.data(), &refused), "ibv_post_recv");
}

std::size_t VerbsEndpoint::poll_sends(std::span<Completed> done) {
  return state_->poll(state_->send_queue.get(), done, "message");
}

std::size_t VerbsEndpoint::poll_receives(std::span<Completed> done) {
  return state_->poll(state_->receive_queue.get(), done, "receive");
}

}  // namespace assay::verbs
