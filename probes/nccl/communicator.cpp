// communicator: the calls into the library.
#include "probes/nccl/communicator.h"

#include <array>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "probes/core/probe.h"
#include "probes/core/text.h"
#include "probes/nccl/nccl_api.h"

namespace assay::nccl {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kOldest = 21800;           // 2.18: non-blocking configuration with all fields that are set here
constexpr Seconds kEnqueueLimit = {60};  // enqueueing may connect peers, which takes seconds on a thousand ranks
constexpr std::chrono::microseconds kPoll{50};

int nccl_type(collective::Element element) {
  constexpr std::array kTypes = {api::kFloat32, api::kFloat64, api::kFloat16, api::kBfloat16};
  return kTypes.at(static_cast<std::size_t>(element));
}

/// "2.28.9" of 22809, NCCL_VERSION in nccl.h as it is since 2.9.
std::string version_text(int code) { return fmt::format("{}.{}.{}", code / 10000, code / 100 % 100, code % 100); }

}  // namespace

struct Nccl::Functions {
  explicit Functions(const Product& of) : product(of) {
    if (mem_free == nullptr) mem_alloc = nullptr;
  }

  Product product;
  Library library = Library::open(product.library, product.title, product.folders);
  api::Call<int*> get_version = library.function("ncclGetVersion");
  api::Call<api::UniqueId*> get_unique_id = library.function("ncclGetUniqueId");
  api::Call<api::Comm*, int, api::UniqueId, int, api::Config*> init = library.function("ncclCommInitRankConfig");
  api::Call<api::Comm> abort = library.function("ncclCommAbort");
  api::Call<api::Comm, api::Result*> async_error = library.function("ncclCommGetAsyncError");
  const char* (*error_string)(api::Result) = library.function("ncclGetErrorString");
  const char* (*last_error)(api::Comm) = library.function("ncclGetLastError");
  api::Call<const void*, void*, std::size_t, int, int, api::Comm, api::Stream> all_reduce =
      library.function("ncclAllReduce");
  api::Call<const void*, void*, std::size_t, int, api::Comm, api::Stream> all_gather =
      library.function("ncclAllGather");
  api::Call<const void*, void*, std::size_t, int, int, api::Comm, api::Stream> reduce_scatter =
      library.function("ncclReduceScatter");
  api::Call<const void*, void*, std::size_t, int, int, api::Comm, api::Stream> broadcast =
      library.function("ncclBroadcast");
  api::Call<const void*, std::size_t, int, int, api::Comm, api::Stream> send = library.function("ncclSend");
  api::Call<void*, std::size_t, int, int, api::Comm, api::Stream> receive = library.function("ncclRecv");
  api::Call<> group_start = library.function("ncclGroupStart");
  api::Call<> group_end = library.function("ncclGroupEnd");
  // 2.18 has none; the runtime's memory does as well, and the record says so.
  api::Call<void**, std::size_t> mem_alloc = library.optional_function("ncclMemAlloc");
  api::Call<void*> mem_free = library.optional_function("ncclMemFree");
  api::Call<api::Comm, void*, std::size_t, api::Window*, int> window_register =
      library.optional_function("ncclCommWindowRegister");  ///< since 2.28, as the next
  api::Team (*team_lsa)(api::Comm) = library.optional_function("ncclTeamLsa");

  [[nodiscard]] int version_code() const {
    int code = 0;
    if (get_version(&code) != api::kSuccess)
      throw std::runtime_error(fmt::format("{} does not report its version", product.title));
    return code;
  }
  [[nodiscard]] std::string version() const { return version_text(version_code()); }
  [[nodiscard]] std::string words(api::Result result) const {
    const char* const last = last_error(nullptr);
    const bool more = last != nullptr && *last != '\0';
    return fmt::format("{}{}{}", error_string(result), more ? ": " : "", more ? last : "");
  }
};

Nccl::Nccl(const Product& product) : functions_(std::make_unique<Functions>(product)) {
  if (functions_->version_code() < kOldest)
    throw Skip(fmt::format("{} {} at {} is older than 2.18; hint: install a newer one, or name its folder in {}",
                           product.title, functions_->version(), path(), kLibraryPathVariable));
}

Nccl::~Nccl() = default;
Nccl::Nccl(Nccl&&) noexcept = default;
std::string Nccl::version() const { return functions_->version(); }
const std::string& Nccl::path() const { return functions_->library.path(); }

std::string Nccl::unique_id() const {
  api::UniqueId id = {};
  if (const auto result = functions_->get_unique_id(&id); result != api::kSuccess) {
    throw std::runtime_error("ncclGetUniqueId: " + functions_->words(result));
  }
  return to_hexadecimal({id.internal, sizeof id.internal});
}

CollectiveBuffer::CollectiveBuffer(const Nccl& nccl, Bytes size) : nccl_(&nccl), size_(size) {
  void* memory = nullptr;
  const auto* functions = nccl.functions_.get();
  if (functions->mem_alloc != nullptr && functions->mem_alloc(&memory, size.count) == api::kSuccess) {
    from_nccl_ = static_cast<std::byte*>(memory);
  } else {
    from_cuda_ = cuda::DeviceBuffer(size);
  }
}

const char* CollectiveBuffer::source() const {
  return from_nccl_ != nullptr ? "ncclMemAlloc" : nccl_->functions_->product.memory;
}

CollectiveBuffer::CollectiveBuffer(CollectiveBuffer&& other) noexcept
    : nccl_(other.nccl_),
      from_nccl_(std::exchange(other.from_nccl_, nullptr)),
      from_cuda_(std::move(other.from_cuda_)),
      size_(other.size_) {}

CollectiveBuffer& CollectiveBuffer::operator=(CollectiveBuffer&& other) noexcept {
  std::swap(nccl_, other.nccl_);
  std::swap(from_nccl_, other.from_nccl_);
  std::swap(from_cuda_, other.from_cuda_);
  std::swap(size_, other.size_);
  return *this;
}

CollectiveBuffer::~CollectiveBuffer() {
  if (from_nccl_ != nullptr) (void)nccl_->functions_->mem_free(from_nccl_);  // the process is about to end
}

Communicator::Communicator(const Nccl& nccl, std::string_view id, int ranks, int rank, Seconds limit)
    : nccl_(nccl), ranks_(ranks), rank_(rank) {
  api::UniqueId unique = {};
  const auto bytes = from_hexadecimal(id);
  if (!bytes || bytes->size() != sizeof unique.internal)
    throw std::runtime_error("the id of the communicator is damaged");
  bytes->copy(unique.internal, sizeof unique.internal);
  api::Config config{.blocking = 0};
  const auto result = nccl_.functions_->init(&comm_, ranks, unique, rank, &config);
  try {
    demand(result, "entering the communicator");
    settle("entering the communicator", limit);
  } catch (...) {
    if (comm_ != nullptr) (void)nccl_.functions_->abort(comm_);  // the failure before is the one to report
    throw;
  }
}

Communicator::~Communicator() {
  // Abort and not destroy: destroying waits for peers, and this process ends next.
  if (comm_ != nullptr) (void)nccl_.functions_->abort(comm_);
}

void Communicator::demand(int result, std::string_view what) {
  if (result == api::kSuccess || result == api::kInProgress) return;
  throw std::runtime_error(fmt::format("{}: {}", what, nccl_.functions_->words(result)));
}

void Communicator::settle(std::string_view what, Seconds limit) {
  const auto begin = Clock::now();
  api::Result state = api::kInProgress;
  while (true) {
    demand(nccl_.functions_->async_error(comm_, &state), what);
    demand(state, what);
    if (state == api::kSuccess) return;
    if (std::chrono::duration<double>(Clock::now() - begin).count() > limit.count) {
      throw std::runtime_error(
          fmt::format("{}: not done after {:g} s; a rank is missing or cannot be reached", what, limit.count));
    }
    std::this_thread::sleep_for(kPoll);
  }
}

void Communicator::enqueue(collective::Operation operation, collective::Element element, std::size_t chunk,
                           const std::byte* source, std::byte* target, const cuda::Stream& stream) {
  const auto& call = *nccl_.functions_;
  const auto type = nccl_type(element);
  const std::size_t share = chunk * collective::size_of(element);
  const auto send = [&](std::size_t place, int peer) {
    demand(call.send(source + place * share, chunk, type, peer, comm_, stream.get()), "ncclSend");
  };
  const auto receive = [&](std::size_t place, int peer) {
    demand(call.receive(target + place * share, chunk, type, peer, comm_, stream.get()), "ncclRecv");
  };
  const auto grouped = [&](const auto& calls) {
    demand(call.group_start(), "ncclGroupStart");
    calls();
    demand(call.group_end(), "ncclGroupEnd");
  };
  switch (operation) {
    case collective::Operation::all_reduce:
      demand(call.all_reduce(source, target, chunk, type, api::kSum, comm_, stream.get()), "ncclAllReduce");
      break;
    case collective::Operation::all_gather:
      demand(call.all_gather(source, target, chunk, type, comm_, stream.get()), "ncclAllGather");
      break;
    case collective::Operation::reduce_scatter:
      demand(call.reduce_scatter(source, target, chunk, type, api::kSum, comm_, stream.get()), "ncclReduceScatter");
      break;
    case collective::Operation::broadcast:
      demand(call.broadcast(source, target, chunk, type, 0, comm_, stream.get()), "ncclBroadcast");
      break;
    case collective::Operation::all_to_all:
      grouped([&] {
        for (int peer = 0; peer < ranks_; ++peer) {
          send(static_cast<std::size_t>(peer), peer);
          receive(static_cast<std::size_t>(peer), peer);
        }
      });
      break;
    case collective::Operation::scatter:
      grouped([&] {
        for (int peer = 0; rank_ == 0 && peer < ranks_; ++peer) send(static_cast<std::size_t>(peer), peer);
        receive(0, 0);
      });
      break;
    case collective::Operation::send_recv:
      grouped([&] {
        send(0, (rank_ + 1) % ranks_);
        receive(0, (rank_ + ranks_ - 1) % ranks_);
      });
      break;
  }
  settle("enqueueing", kEnqueueLimit);
}

void Communicator::all_reduce(void* data, std::size_t count, const cuda::Stream& stream, Element element) {
  demand(nccl_.functions_->all_reduce(data, data, count, nccl_type(element), api::kSum, comm_, stream.get()),
         "ncclAllReduce");
  settle("enqueueing", kEnqueueLimit);
}
void Communicator::all_gather(void* data, std::size_t share, const cuda::Stream& stream, Element element) {
  const void* const own =
      static_cast<std::byte*>(data) + static_cast<std::size_t>(rank_) * share * collective::size_of(element);
  demand(nccl_.functions_->all_gather(own, data, share, nccl_type(element), comm_, stream.get()), "ncclAllGather");
  settle("enqueueing", kEnqueueLimit);
}
void Communicator::reduce_scatter(void* data, std::size_t share, const cuda::Stream& stream, Element element) {
  void* const own =
      static_cast<std::byte*>(data) + static_cast<std::size_t>(rank_) * share * collective::size_of(element);
  demand(nccl_.functions_->reduce_scatter(data, own, share, nccl_type(element), api::kSum, comm_, stream.get()),
         "ncclReduceScatter");
  settle("enqueueing", kEnqueueLimit);
}
void Communicator::all_to_all(const void* sent, const std::vector<std::size_t>& to, void* data,
                              const std::vector<std::size_t>& from, const cuda::Stream& stream, Element element) {
  const auto parts = [&](const std::vector<std::size_t>& counts) {
    std::vector<collective::Part> all;
    for (std::uint64_t at = 0; const std::size_t count : counts) {
      all.push_back({.offset = at, .bytes = count * collective::size_of(element)});
      at += all.back().bytes;
    }
    return all;
  };
  exchange(static_cast<const std::byte*>(sent), parts(to), static_cast<std::byte*>(data), parts(from), stream);
}
void Communicator::exchange(const std::byte* sent, std::span<const collective::Part> to, std::byte* received,
                            std::span<const collective::Part> from, const cuda::Stream& stream) {
  const auto& call = *nccl_.functions_;
  demand(call.group_start(), "ncclGroupStart");
  for (std::size_t i = 0; i < to.size(); ++i) {
    const int peer = static_cast<int>(i);
    if (to[i].bytes > 0)
      demand(call.send(sent + to[i].offset, to[i].bytes, api::kInt8, peer, comm_, stream.get()), "ncclSend");
    if (from[i].bytes > 0)
      demand(call.receive(received + from[i].offset, from[i].bytes, api::kInt8, peer, comm_, stream.get()), "ncclRecv");
  }
  demand(call.group_end(), "ncclGroupEnd");
  settle("enqueueing", kEnqueueLimit);
}
void Communicator::send(int peer, const void* data, std::size_t count, const cuda::Stream& stream, Element element) {
  demand(nccl_.functions_->send(data, count, nccl_type(element), peer, comm_, stream.get()), "ncclSend");
  settle("enqueueing", kEnqueueLimit);
}
void Communicator::receive(int peer, void* data, std::size_t count, const cuda::Stream& stream, Element element) {
  demand(nccl_.functions_->receive(data, count, nccl_type(element), peer, comm_, stream.get()), "ncclRecv");
  settle("enqueueing", kEnqueueLimit);
}

void Communicator::demand_reach(int built_with) const {
  const Nccl::Functions& call = *nccl_.functions_;
  if (built_with == 0) throw Skip("this program was built without nccl_device.h, which comes with NCCL 2.28");
  if (!reads_windows(built_with, call.version_code()) || call.team_lsa == nullptr || call.window_register == nullptr)
    throw Skip(fmt::format("kernels of this program read windows of {} {}, and {} is {}", call.product.title,
                           version_text(built_with), nccl_.path(), nccl_.version()));
  if (const int reached = call.team_lsa(comm_).ranks; reached < ranks_)
    throw Skip(
        fmt::format("{} of {} GPUs reach each other by loads and stores (NVLink); engine nccl needs none that do",
                    reached, ranks_));
}

api::Window Communicator::share(std::byte* memory, Bytes size) {
  api::Window window = nullptr;
  demand(nccl_.functions_->window_register(comm_, memory, size.count, &window, api::kSymmetricWindow),
         "ncclCommWindowRegister");
  settle("registering a window", kEnqueueLimit);
  if (window == nullptr) throw std::runtime_error("ncclCommWindowRegister: no window of this memory");
  return window;
}

void Communicator::check_alive() {
  api::Result state = api::kSuccess;
  demand(nccl_.functions_->async_error(comm_, &state), "the communicator");
  demand(state, "the communicator");
}

void Communicator::finish(const cuda::Stream& stream, Seconds limit) {
  const auto begin = Clock::now();
  while (!cuda::is_done(stream, "the collective")) {
    api::Result broken = api::kSuccess;
    demand(nccl_.functions_->async_error(comm_, &broken), "the collective");
    demand(broken, "the collective");
    if (std::chrono::duration<double>(Clock::now() - begin).count() > limit.count) {
      throw std::runtime_error(fmt::format("the collective is not done after {:g} s", limit.count));
    }
    std::this_thread::sleep_for(kPoll);
  }
}

}  // namespace assay::nccl
