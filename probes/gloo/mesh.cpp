// mesh: the only file that knows Gloo. Out of place; a root sends from its send buffer and has its share in its receive
// buffer, too.
#include "probes/gloo/mesh.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <mutex>
#include <set>
#include <stdexcept>
#include <utility>

#include <dlfcn.h>

#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/context.h>
#include <gloo/math.h>
#include <gloo/scatter.h>
#include <gloo/transport/address.h>
#include <gloo/transport/context.h>
#include <gloo/transport/device.h>
#include <gloo/transport/pair.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>

#include "probes/collective/limits.h"
#include "probes/gloo/addresses.h"

namespace assay::gloo {
namespace {

using Milliseconds = std::chrono::milliseconds;
using ::gloo::transport::UnboundBuffer;

constexpr Milliseconds kOperationLimit(static_cast<std::int64_t>(collective::kBatchLimit.count * 1000));
// Gloo 0.5 waits five times its timeout for a connection (tcp::Pair::waitUntil); a rank enters within kEnterLimit all
// the same.
constexpr Milliseconds kConnectLimit(static_cast<std::int64_t>(collective::kEnterLimit.count * 1000 / 5));
// Gloo's own collectives use slots with a prefix in the highest byte; these have none.
constexpr std::uint64_t kReduceScatterSlot = 1, kSendReceiveSlot = 2, kWindowSlots = 16;

/// Gloo takes buffers to send from as writable and does not write to them.
template <class Number>
Number* writable(const std::byte* source) {
  return const_cast<Number*>(reinterpret_cast<const Number*>(source));
}
template <class Number>
Number* writable(std::byte* target) {
  return reinterpret_cast<Number*>(target);
}

/// The pieces of one rank's share in a ring: at least two, so that one is on its way while another is added up, and
/// none over 1 MiB, which stays in a cache: both as in gloo::allreduce.
struct Pieces {
  Pieces(std::size_t chunk, std::size_t element_size)
      : elements(chunk),
        count(std::max<std::size_t>(2, (chunk * element_size + kMost - 1) / kMost)),
        each((chunk + count - 1) / count) {}
  [[nodiscard]] std::size_t begin(std::size_t piece) const { return std::min(elements, piece * each); }
  [[nodiscard]] std::size_t size(std::size_t piece) const { return begin(piece + 1) - begin(piece); }

  static constexpr std::size_t kMost = std::size_t{1} << 20;
  std::size_t elements, count, each;
};

}  // namespace

/// gloo::Context sets its members by inheritance only.
class Mesh::Context : public ::gloo::Context {
 public:
  Context(const std::string& address, int own, int ranks) : ::gloo::Context(own, ranks) {
    ::gloo::transport::tcp::attr wanted(address.c_str());
    std::memset(&wanted.ai_addr, 0, sizeof wanted.ai_addr);  // Gloo 0.5 compares more of it than it sets
    setTimeout(kOperationLimit);
    device_ = ::gloo::transport::tcp::CreateDevice(wanted);
    transportContext_ = device_->createContext(own, ranks);
    transportContext_->setTimeout(kConnectLimit);
    for (int other = 0; other < ranks; ++other) {
      if (other != own) (void)transportContext_->createPair(other);  // it is asked for by getPair
    }
  }
};

namespace {

/// One collective on elements of one type.
template <class Number>
struct Call {
  const std::shared_ptr<::gloo::Context>& context;
  std::size_t chunk;
  const std::byte* source;
  std::byte* target;

  [[nodiscard]] std::size_t ranks() const { return static_cast<std::size_t>(context->size); }
  [[nodiscard]] std::unique_ptr<UnboundBuffer> buffer(const std::byte* at, std::size_t elements) const {
    return context->createUnboundBuffer(writable<Number>(at), elements * sizeof(Number));
  }

  void all_reduce() const {
    ::gloo::AllreduceOptions options(context);
    options.setAlgorithm(::gloo::AllreduceOptions::Algorithm::RING);
    options.setInput(writable<Number>(source), chunk);
    options.setOutput(writable<Number>(target), chunk);
    options.setReduceFunction(
        static_cast<void (*)(void*, const void*, const void*, std::size_t)>(&::gloo::sum<Number>));
    ::gloo::allreduce(options);
  }

  void all_gather() const {
    ::gloo::AllgatherOptions options(context);
    options.setInput(writable<Number>(source), chunk);
    options.setOutput(writable<Number>(target), chunk * ranks());
    ::gloo::allgather(options);
  }

  void all_to_all() const {
    ::gloo::AlltoallOptions options(context);
    options.setInput(writable<Number>(source), chunk * ranks());
    options.setOutput(writable<Number>(target), chunk * ranks());
    ::gloo::alltoall(options);
  }

  void broadcast() const {
    ::gloo::BroadcastOptions options(context);
    options.setRoot(0);
    if (context->rank == 0) options.setInput(writable<Number>(source), chunk);
    options.setOutput(writable<Number>(target), chunk);
    ::gloo::broadcast(options);
  }

  void scatter() const {
    ::gloo::ScatterOptions options(context);
    options.setRoot(0);
    if (context->rank == 0) {
      std::vector<Number*> shares;
      for (std::size_t i = 0; i < ranks(); ++i) shares.push_back(writable<Number>(source) + i * chunk);
      options.setInputs(shares, chunk);
    }
    options.setOutput(writable<Number>(target), chunk);
    ::gloo::scatter(options);
  }

  /// To the next rank, from the one before.
  void send_recv() const {
    const auto from = buffer(source, chunk), to = buffer(target, chunk);
    const int next = (context->rank + 1) % context->size, before = (context->rank + context->size - 1) % context->size;
    to->recv(before, kSendReceiveSlot);
    from->send(next, kSendReceiveSlot);
    (void)to->waitRecv(kOperationLimit);  // false only after an abort, which nothing here requests
    (void)from->waitSend(kOperationLimit);
  }

  /// The first half of a ring all-reduce (Patarasu & Yuan 2009): the sum of a share goes round once, each rank adding
  /// its own. The share that a rank gets in the last step is its own.
  void reduce_scatter() const {
    const Pieces pieces(chunk, sizeof(Number));
    std::vector<Number> sums(2 * chunk);  // the share being received and the one being sent, in turn
    const auto from = buffer(source, chunk * ranks()),
               through = context->createUnboundBuffer(sums.data(), sums.size() * sizeof(Number));
    const std::size_t rank = static_cast<std::size_t>(context->rank), n = ranks(), all = (n - 1) * pieces.count;
    const int next = static_cast<int>((rank + 1) % n), before = static_cast<int>((rank + n - 1) % n);
    const auto place = [&](std::size_t step, std::size_t piece) { return step % 2 * chunk + pieces.begin(piece); };
    const auto share_received = [&](std::size_t step) { return (rank + 2 * n - step - 2) % n; };
    for (std::size_t i = 0; i < all + 2; ++i) {
      if (i >= 2) {
        const std::size_t step = (i - 2) / pieces.count, piece = (i - 2) % pieces.count;
        if (pieces.size(piece) > 0) {
          (void)through->waitRecv(kOperationLimit);  // false only after an abort, as below
          Number* const sum = sums.data() + place(step, piece);
          Number* const into = step == n - 2 ? writable<Number>(target) + pieces.begin(piece) : sum;
          ::gloo::sum<Number>(into, sum, writable<Number>(source) + share_received(step) * chunk + pieces.begin(piece),
                              pieces.size(piece));
          (void)(step == 0 ? from : through)->waitSend(kOperationLimit);
        }
      }
      if (i == all || i == all + 1) continue;
      const std::size_t step = i / pieces.count, piece = i % pieces.count, bytes = pieces.size(piece) * sizeof(Number);
      if (bytes == 0) continue;
      through->recv(before, kReduceScatterSlot, place(step, piece) * sizeof(Number), bytes);
      if (step == 0)
        from->send(next, kReduceScatterSlot, ((rank + n - 1) % n * chunk + pieces.begin(piece)) * sizeof(Number),
                   bytes);
      else
        through->send(next, kReduceScatterSlot, place(step - 1, piece) * sizeof(Number), bytes);
    }
  }

  void run(collective::Operation operation) const {
    switch (operation) {
      case collective::Operation::all_reduce:
        return all_reduce();
      case collective::Operation::all_gather:
        return all_gather();
      case collective::Operation::reduce_scatter:
        return reduce_scatter();
      case collective::Operation::all_to_all:
        return all_to_all();
      case collective::Operation::broadcast:
        return broadcast();
      case collective::Operation::scatter:
        return scatter();
      case collective::Operation::send_recv:
        return send_recv();
    }
  }
};

}  // namespace

std::string_view algorithm_of(collective::Operation operation) {
  switch (operation) {
    case collective::Operation::all_reduce:
    case collective::Operation::all_gather:
      return "gloo_ring";
    case collective::Operation::all_to_all:
      return "gloo_direct";
    case collective::Operation::broadcast:
      return "gloo_binomial_tree";
    case collective::Operation::scatter:
      return "gloo_root_to_each";
    case collective::Operation::reduce_scatter:
      return "own_ring";
    case collective::Operation::send_recv:
      return "own_point_to_point";
  }
  throw std::logic_error("an operation has no algorithm");
}

std::vector<std::string> Mesh::ends() const {
  std::vector<std::string> all;
  for (int other = 0; other < context_->size; ++other) {
    if (other == context_->rank) continue;
    const std::vector<char> bytes = context_->getPair(other)->address().bytes();
    all.emplace_back(bytes.begin(), bytes.end());
  }
  return all;
}

void Mesh::connect(const std::vector<std::string>& theirs) {
  for (int other = 0; other < context_->size; ++other) {
    if (other == context_->rank) continue;
    const std::string& end = theirs.at(end_towards(context_->rank, other));
    context_->getPair(other)->connect(std::vector<char>(end.begin(), end.end()));
  }
}

void Mesh::barrier() {
  const std::shared_ptr<::gloo::Context> context = context_;
  ::gloo::BarrierOptions options(context);
  ::gloo::barrier(options);
}

void Mesh::run(collective::Operation operation, collective::Element element, std::size_t chunk, const std::byte* source,
               std::byte* target) {
  const std::shared_ptr<::gloo::Context> context = context_;
  if (element == collective::Element::fp32) return Call<float>{context, chunk, source, target}.run(operation);
  if (element == collective::Element::fp64) return Call<double>{context, chunk, source, target}.run(operation);
  throw std::logic_error("hosts sum fp32 and fp64 only");
}

/// The buffers of a mesh that may be waited for, and whether all waiting is over.
struct Window::Waits {
  std::mutex mutex;
  std::set<UnboundBuffer*> buffers;
  std::atomic<bool> over = false;
};

struct Window::Registration {
  Registration(std::unique_ptr<UnboundBuffer> taken, std::shared_ptr<Waits> all)
      : buffer(std::move(taken)), waits(std::move(all)) {
    const std::lock_guard lock(waits->mutex);
    waits->buffers.insert(buffer.get());
  }
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;
  ~Registration() {
    const std::lock_guard lock(waits->mutex);
    waits->buffers.erase(buffer.get());
  }
  /// `done` is Gloo's result of a wait: false only after an abort.
  void demand(bool done) const {
    if (!done || waits->over) throw std::runtime_error("the group was given up");
  }

  std::unique_ptr<UnboundBuffer> buffer;
  std::shared_ptr<Waits> waits;
};

Window::Window(std::unique_ptr<Registration> registration) : registration_(std::move(registration)) {}
Window::Window(Window&&) noexcept = default;
Window::~Window() = default;
void Window::send(int rank, std::uint64_t tag, std::size_t offset, std::size_t bytes) {
  registration_->buffer->send(rank, kWindowSlots + tag, offset, bytes);
}
void Window::receive(int rank, std::uint64_t tag, std::size_t offset, std::size_t bytes) {
  registration_->buffer->recv(rank, kWindowSlots + tag, offset, bytes);
}
void Window::wait_sent() {
  registration_->demand(true);
  registration_->demand(registration_->buffer->waitSend(kOperationLimit));
}
void Window::wait_received() {
  registration_->demand(true);
  registration_->demand(registration_->buffer->waitRecv(kOperationLimit));
}

Mesh::Mesh(const std::string& address, int rank, int ranks)
    : context_(std::make_shared<Context>(address, rank, ranks)), waits_(std::make_shared<Window::Waits>()) {}
Mesh::~Mesh() = default;

Window Mesh::window(void* memory, std::size_t bytes) {
  return Window(std::make_unique<Window::Registration>(context_->createUnboundBuffer(memory, bytes), waits_));
}

// Gloo 0.5 does not wake a thread that waits for a message of which a part had come when its connection ended.
void Mesh::give_up() {
  waits_->over = true;
  const std::lock_guard lock(waits_->mutex);
  for (UnboundBuffer* buffer : waits_->buffers) {
    buffer->abortWaitRecv();
    buffer->abortWaitSend();
  }
}

std::string gloo_library() {
  Dl_info found = {};
  void (*const inside)(::gloo::BarrierOptions&) = &::gloo::barrier;
  if (dladdr(reinterpret_cast<void*>(inside), &found) == 0 || found.dli_fname == nullptr)
    throw std::runtime_error("the loader does not report the path of Gloo");
  return found.dli_fname;
}

}  // namespace assay::gloo
