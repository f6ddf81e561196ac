// fake_verbs: a libibverbs for tests. Queue pairs of one process move memory at once, so that both ranks of a loopback
// can be played without an adapter. Memory is reached through regions alone; a GPU's is that of fake_cuda, as a dma-buf
// (a file that is mapped) or through what stands for nvidia-peermem. ASSAY_FAKE_VERBS names one fault: corrupt, lose,
// fail, small, locked, locked_memory, inlines, no_dmabuf, no_peermem, no_gpu_memory.
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

#include <dlfcn.h>
#include <sys/mman.h>

#include <infiniband/verbs.h>

#undef ibv_get_device_list
#undef ibv_query_port
#undef ibv_reg_mr

namespace {

bool fault(std::string_view name) {
  const char* const wanted = std::getenv("ASSAY_FAKE_VERBS");
  return wanted != nullptr && name == wanted;
}

/// A registered region: addresses as requests have them, and where the bytes are.
struct FakeRegion : ibv_mr {
  std::byte* content = nullptr;
  bool mapped = false;  // of a dma-buf
};

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
  std::map<std::uint32_t, FakeRegion*> regions;
  std::uint32_t next_pair = 17, next_key = 7;
};
World world;  // what a machine has one of

/// The `length` bytes at `address` of the region with this key; null outside of it.
std::byte* reach(std::uint32_t key, std::uint64_t address, std::size_t length) {
  const auto found = world.regions.find(key);
  if (found == world.regions.end()) return nullptr;
  const auto begin = reinterpret_cast<std::uint64_t>(found->second->addr);
  if (address < begin || address + length > begin + found->second->length) return nullptr;
  return found->second->content + (address - begin);
}

/// The last byte last, as adapters write without relaxed ordering, and as one access that a reader may race with.
void bring(void* target, const void* source, std::size_t bytes) {
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
    const ibv_sge& room = pair.room_pieces.front();
    std::byte* const to = reach(room.lkey, room.addr, payload.size());
    if (to != nullptr) bring(to, payload.data(), payload.size());
    complete(pair.recv_cq, pair.rooms.front().wr_id, to == nullptr ? IBV_WC_LOC_PROT_ERR : IBV_WC_SUCCESS);
    pair.waiting.pop_front();
    pair.rooms.pop_front();
    pair.room_pieces.pop_front();
  }
}

/// Whether the peer was there to take it, and the memory of both.
bool carry_out(FakePair& pair, const ibv_send_wr& request) {
  const auto found = world.pairs.find(pair.peer);
  if (found == world.pairs.end()) return false;
  FakePair* const peer = found->second;
  const ibv_sge& piece = *request.sg_list;
  const bool inlined = (request.send_flags & IBV_SEND_INLINE) != 0;  // then the processor reads it, whatever the key
  std::byte* const here =
      inlined ? reinterpret_cast<std::byte*>(piece.addr) : reach(piece.lkey, piece.addr, piece.length);
  if (here == nullptr) return false;
  if (request.opcode == IBV_WR_SEND) {
    peer->waiting.emplace_back(here, here + piece.length);
    deliver(*peer);
    return true;
  }
  std::byte* const there = reach(request.wr.rdma.rkey, request.wr.rdma.remote_addr, piece.length);
  if (there == nullptr) return false;
  if (request.opcode == IBV_WR_RDMA_WRITE) bring(there, here, piece.length);
  if (request.opcode == IBV_WR_RDMA_READ) bring(here, there, piece.length);
  return true;
}

int post_send(ibv_qp* queue_pair, ibv_send_wr* request, ibv_send_wr** refused) {
  const std::lock_guard guard(world.lock);
  auto& pair = *static_cast<FakePair*>(queue_pair);
  *refused = nullptr;
  for (; request != nullptr; request = request->next) {
    if (fault("lose")) continue;
    const bool fails = fault("fail") || !carry_out(pair, *request);
    if (fails || (request->send_flags & IBV_SEND_SIGNALED) != 0)
      complete(pair.send_cq, request->wr_id, fails ? IBV_WC_RETRY_EXC_ERR : IBV_WC_SUCCESS);
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

/// The bytes of a GPU's memory behind `address`, by the fake driver that is loaded beside this; null where there are
/// none.
void* behind_peermem(void* address, std::size_t length) {
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (driver == nullptr) return nullptr;
  const auto find = reinterpret_cast<void* (*)(unsigned long long, std::size_t)>(dlsym(driver, "fake_cuda_peermem"));
  return find == nullptr ? nullptr : find(reinterpret_cast<unsigned long long>(address), length);
}

ibv_mr* region_at(ibv_pd* domain, void* address, std::size_t length, std::byte* content, bool mapped) {
  const std::lock_guard guard(world.lock);
  auto region = std::make_unique<FakeRegion>();
  region->context = domain->context;
  region->pd = domain;
  region->addr = address;
  region->length = length;
  region->lkey = region->rkey = world.next_key++;
  region->content = content;
  region->mapped = mapped;
  world.regions[region->rkey] = region.get();
  return region.release();
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
  port->active_mtu = port->max_mtu = IBV_MTU_4096;
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
  void* const of_gpu = behind_peermem(address, length);
  if (of_gpu != nullptr && (fault("no_peermem") || fault("no_gpu_memory"))) {
    errno = EFAULT;  // as the kernel, which finds no page there
    return nullptr;
  }
  return region_at(domain, address, length, static_cast<std::byte*>(of_gpu != nullptr ? of_gpu : address), false);
}
ibv_mr* ibv_reg_mr_iova2(ibv_pd* domain, void* address, std::size_t length, std::uint64_t, unsigned) {
  return ibv_reg_mr(domain, address, length, 0);
}
#ifndef ASSAY_WITHOUT_DMABUF
ibv_mr* ibv_reg_dmabuf_mr(ibv_pd* domain, std::uint64_t offset, std::size_t length, std::uint64_t address, int file,
                          int) {
  if (fault("no_dmabuf") || fault("no_gpu_memory")) {
    errno = EOPNOTSUPP;
    return nullptr;
  }
  if (offset != 0) {
    errno = EINVAL;
    return nullptr;
  }
  void* const content = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (content == MAP_FAILED) return nullptr;
  return region_at(domain, reinterpret_cast<void*>(address), length, static_cast<std::byte*>(content), true);
}
#endif
int ibv_dereg_mr(ibv_mr* region) {
  const std::lock_guard guard(world.lock);
  const std::unique_ptr<FakeRegion> owned(static_cast<FakeRegion*>(region));
  if (owned->mapped) munmap(owned->content, owned->length);
  world.regions.erase(region->rkey);
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
  if (wanted->cap.max_inline_data > 64 &&
      !fault("inlines")) {  // as a device that inlines less: it says no to the whole
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
