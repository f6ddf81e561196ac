// fake_verbs: a libibverbs for tests. Queue pairs of one process move memory at once, so that both ranks of a loopback can be
// played without an adapter. ASSAY_FAKE_VERBS names one fault: corrupt, lose, fail, small, locked, locked_memory.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include <infiniband/verbs.h>

#undef ibv_get_device_list
#undef ibv_query_port
#undef ibv_reg_mr

namespace {

bool fault(std::string_view name) {
  const char* const wanted = std::getenv("ASSAY_FAKE_VERBS");
  return wanted != nullptr && name == wanted;
}

struct FakeQueue : ibv_cq {
  std::deque<ibv_wc> done;
};

struct FakePair : ibv_qp {
  std::uint32_t peer = 0;
  std::deque<ibv_recv_wr> rooms;
  std::deque<ibv_sge> room_pieces;
  std::deque<std::vector<std::byte>> waiting;  // sends that found no room
};

struct World {
  std::mutex lock;
  std::map<std::uint32_t, FakePair*> pairs;
  std::uint32_t next_pair = 17;
};
World world;  // what a machine has one of

/// The last byte last, as adapters write without relaxed ordering, and as one access that a reader may race with.
void move(void* target, const void* source, std::size_t bytes) {
  if (bytes == 0) return;
  auto* const to = static_cast<std::byte*>(target);
  const auto* const from = static_cast<const std::byte*>(source);
  std::memcpy(to, from, bytes - 1);
  if (fault("corrupt") && bytes > 8) to[0] ^= std::byte{0x40};  // a bit that sticks
  std::atomic_ref<std::byte>(to[bytes - 1]).store(from[bytes - 1], std::memory_order_release);
}

void complete(ibv_cq* queue, std::uint64_t id, ibv_wc_status status) {
  ibv_wc completion = {};
  completion.wr_id = id;
  completion.status = status;
  completion.vendor_err = status == IBV_WC_SUCCESS ? 0 : 0x81;
  static_cast<FakeQueue*>(queue)->done.push_back(completion);
}

/// Puts sends that wait into the room that there is.
void deliver(FakePair& pair) {
  while (!pair.waiting.empty() && !pair.rooms.empty()) {
    const auto& payload = pair.waiting.front();
    move(reinterpret_cast<void*>(pair.room_pieces.front().addr), payload.data(), payload.size());
    complete(pair.recv_cq, pair.rooms.front().wr_id, IBV_WC_SUCCESS);
    pair.waiting.pop_front();
    pair.rooms.pop_front();
    pair.room_pieces.pop_front();
  }
}

/// Whether the peer was there to take it.
bool carry_out(FakePair& pair, const ibv_send_wr& request) {
  const auto found = world.pairs.find(pair.peer);
  if (found == world.pairs.end()) return false;
  FakePair* const peer = found->second;
  const ibv_sge& piece = *request.sg_list;
  void* const here = reinterpret_cast<void*>(piece.addr);
  if (request.opcode == IBV_WR_RDMA_WRITE) move(reinterpret_cast<void*>(request.wr.rdma.remote_addr), here, piece.length);
  if (request.opcode == IBV_WR_RDMA_READ) move(here, reinterpret_cast<const void*>(request.wr.rdma.remote_addr), piece.length);
  if (request.opcode == IBV_WR_SEND) {
    const auto* const bytes = static_cast<const std::byte*>(here);
    peer->waiting.emplace_back(bytes, bytes + piece.length);
    deliver(*peer);
  }
  return true;
}

int post_send(ibv_qp* queue_pair, ibv_send_wr* request, ibv_send_wr** refused) {
  const std::lock_guard guard(world.lock);
  auto& pair = *static_cast<FakePair*>(queue_pair);
  *refused = nullptr;
  for (; request != nullptr; request = request->next) {
    if (fault("lose")) continue;
    const bool fails = fault("fail") || !carry_out(pair, *request);
    if (fails || (request->send_flags & IBV_SEND_SIGNALED) != 0) complete(pair.send_cq, request->wr_id, fails ? IBV_WC_RETRY_EXC_ERR : IBV_WC_SUCCESS);
  }
  return 0;
}

int post_recv(ibv_qp* queue_pair, ibv_recv_wr* request, ibv_recv_wr** refused) {
  const std::lock_guard guard(world.lock);
  auto& pair = *static_cast<FakePair*>(queue_pair);
  *refused = nullptr;
  for (; request != nullptr; request = request->next) {
    pair.rooms.push_back(*request);
    pair.room_pieces.push_back(*request->sg_list);
  }
  deliver(pair);
  return 0;
}

int poll_cq(ibv_cq* queue, int most, ibv_wc* taken) {
  const std::lock_guard guard(world.lock);
  auto& done = static_cast<FakeQueue*>(queue)->done;
  int count = 0;
  for (; count < most && !done.empty(); ++count) {
    taken[count] = done.front();
    done.pop_front();
  }
  return count;
}

ibv_device device = {};
ibv_device* devices[] = {&device, nullptr};

}  // namespace

extern "C" {

ibv_device** ibv_get_device_list(int* count) {
  *count = 1;
  return devices;
}
void ibv_free_device_list(ibv_device**) {}
const char* ibv_get_device_name(ibv_device*) { return "fake0"; }

ibv_context* ibv_open_device(ibv_device*) {
  if (fault("locked")) {
    errno = EACCES;
    return nullptr;
  }
  auto context = std::make_unique<ibv_context>();
  context->ops.post_send = post_send;
  context->ops.post_recv = post_recv;
  context->ops.poll_cq = poll_cq;
  return context.release();
}
int ibv_close_device(ibv_context* context) {
  const std::unique_ptr<ibv_context> owned(context);
  return 0;
}

int ibv_query_device(ibv_context*, ibv_device_attr* attributes) {
  attributes->max_qp_wr = fault("small") ? 16 : 8192;
  attributes->max_cqe = 1 << 20;
  attributes->max_qp_rd_atom = attributes->max_qp_init_rd_atom = 16;
  return 0;
}
int ibv_query_port(ibv_context*, std::uint8_t, _compat_ibv_port_attr* attributes) {
  auto* const port = reinterpret_cast<ibv_port_attr*>(attributes);
  port->state = IBV_PORT_ACTIVE;
  port->active_mtu = IBV_MTU_4096;
  return 0;
}

ibv_pd* ibv_alloc_pd(ibv_context* context) {
  auto domain = std::make_unique<ibv_pd>();
  domain->context = context;
  return domain.release();
}
int ibv_dealloc_pd(ibv_pd* domain) {
  const std::unique_ptr<ibv_pd> owned(domain);
  return 0;
}

ibv_mr* ibv_reg_mr(ibv_pd* domain, void* address, std::size_t length, int) {
  if (fault("locked_memory")) {
    errno = ENOMEM;
    return nullptr;
  }
  auto region = std::make_unique<ibv_mr>();
  region->context = domain->context;
  region->pd = domain;
  region->addr = address;
  region->length = length;
  region->lkey = region->rkey = 7;
  return region.release();
}
ibv_mr* ibv_reg_mr_iova2(ibv_pd* domain, void* address, std::size_t length, std::uint64_t, unsigned) { return ibv_reg_mr(domain, address, length, 0); }
int ibv_dereg_mr(ibv_mr* region) {
  const std::unique_ptr<ibv_mr> owned(region);
  return 0;
}

ibv_cq* ibv_create_cq(ibv_context* context, int, void*, ibv_comp_channel*, int) {
  auto queue = std::make_unique<FakeQueue>();
  queue->context = context;
  return queue.release();
}
int ibv_destroy_cq(ibv_cq* queue) {
  const std::unique_ptr<FakeQueue> owned(static_cast<FakeQueue*>(queue));
  return 0;
}

ibv_qp* ibv_create_qp(ibv_pd* domain, ibv_qp_init_attr* wanted) {
  if (wanted->cap.max_inline_data > 64) {  // as a device that inlines less: it says no to the whole
    errno = EINVAL;
    return nullptr;
  }
  const std::lock_guard guard(world.lock);
  auto pair = std::make_unique<FakePair>();
  pair->context = domain->context;
  pair->send_cq = wanted->send_cq;
  pair->recv_cq = wanted->recv_cq;
  pair->qp_num = world.next_pair++;
  world.pairs[pair->qp_num] = pair.get();
  return pair.release();
}
int ibv_modify_qp(ibv_qp* queue_pair, ibv_qp_attr* attributes, int mask) {
  const std::lock_guard guard(world.lock);
  if ((mask & IBV_QP_DEST_QPN) != 0) static_cast<FakePair*>(queue_pair)->peer = attributes->dest_qp_num;
  return 0;
}
int ibv_destroy_qp(ibv_qp* queue_pair) {
  const std::lock_guard guard(world.lock);
  world.pairs.erase(queue_pair->qp_num);
  const std::unique_ptr<FakePair> owned(static_cast<FakePair*>(queue_pair));
  return 0;
}

const char* ibv_wc_status_str(ibv_wc_status) { return "transport retry counter exceeded"; }

}  // extern "C"
