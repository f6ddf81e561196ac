// rack_rank: one GPU's part of every request. Its memory has two halves: the payload, which others read and which it
// writes to others, and the landing place, which others write to and into which it reads. The requests, in order:
//   hello      the GPU, its place in the fabric and its kinds of handles; its links are looked at before the load
//   export     allocates by handles of `kind`; answers with the handle, or with a mailbox for descriptors
//   import     `handles` by rank: maps the memory of all others
//   move       `flows` of `size` B, each by its source (or its target, if `read`), all for lead, counted and lead s
//   check      counts wrong words in the landing place by source, and clears it
//   multicast  `step` make, join, bind, send, check: an object that all ranks' landing places are bound to
//   links      those at fault since hello
#include "probes/cuda/rack_rank.h"

#include <algorithm>
#include <chrono>
#include <iostream>
#include <span>
#include <stdexcept>

#include <unistd.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "probes/collective/limits.h"
#include "probes/collective/rank_loop.h"
#include "probes/core/probe.h"
#include "probes/core/text.h"
#include "probes/cuda/descriptor_mail.h"
#include "probes/cuda/gpu_memory.h"
#include "probes/cuda/patience.h"
#include "probes/cuda/rack_mover.h"
#include "probes/cuda/rack_plan.h"
#include "probes/cuda/shared_memory.h"
#include "probes/health/gpus.h"
#include "probes/nvml/nvlinks.h"
#include "probes/nvml/nvml.h"

namespace assay::cuda {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr Seconds kMailLimit = {20};    // ranks of one node, which were all asked at one time
constexpr Seconds kBatch = {0.01};      // of copies that are timed together
constexpr std::size_t kCopiesMax = 16;  // as nvloom has it
constexpr const char* kRankFlag = "--rack-rank";

double since_s(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

/// The payload of a rank; different for each, and no word of it is 0.
std::uint64_t seed_of(std::size_t rank) { return (rank + 1) << 48; }

class RackRank {
 public:
  explicit RackRank(const RackPlace& place) : place_(place), gpu_(gpu_named(driver_.gpus(), place.gpu)) {}

  json answer(const json& request) {
    const std::string what = request.at("do");
    if (what == "hello" || what == "links") return done(what, request);  // they wait for no GPU
    const auto due = deadline_.set(fmt::format("{} on {}", what, gpu_.uuid), limit_of(request));
    return done(what, request);
  }

 private:
  /// The longest that a request may take: the time that its work shall last, and memory that is filled, cleared, moved
  /// or compared at rates far below those of PCIe.
  [[nodiscard]] Seconds limit_of(const json& request) const {
    constexpr double kSlowest = 2e8;  // B/s; by engine ce the host compares
    const double work_s = 2 * request.value("lead_s", 0.0) + request.value("counted_s", 0.0);
    const double bytes = 4.0 * static_cast<double>(place_.size.count);
    return {collective::Pace::kLeast.count + kMailLimit.count * static_cast<double>(request.contains("handles")) +
            work_s + bytes / kSlowest};
  }

  json done(const std::string& what, const json& request) {
    if (what == "hello") return hello();
    if (what == "export") return give(request);
    if (what == "import") return take(request);
    if (what == "move") return move(request);
    if (what == "check") return check_landing(request);
    if (what == "multicast") return multicast(request);
    if (what == "links") return links();
    throw std::runtime_error(fmt::format("'{}' is no request", what));
  }

  json hello() {
    json facts = {{"uuid", gpu_.uuid},
                  {"state", "unknown"},
                  {"fabric_handles", gpu_.fabric_handles},
                  {"posix_handles", gpu_.posix_handles},
                  {"free", free_memory_of(driver_, gpu_).count},
                  {"multicast", gpu_.multicast && driver_.functions().multicast_create != nullptr}};
    try {
      const nvml::Nvml nvml;
      const auto gpu = nvml.gpu_at(gpu_.pci_bus_id);
      if (!gpu.value) return facts;
      if (const auto seen = nvml::read_nvlink_facts(*gpu.value); seen.value) links_ = seen.value->links;
      const auto fabric = gpu.value->fabric();
      if (!fabric.value) return facts;
      facts["state"] = health::fabric_state_word(*fabric.value);
      facts["cluster"] = health::fabric_uuid(*fabric.value);
      facts["clique"] = fabric.value->clique;
    } catch (const Skip&) {
      return facts;  // without NVML the state is unknown, which the leader judges
    }
    return facts;
  }

  json give(const json& request) {
    on_.emplace(driver_, gpu_, from_word<HandleKind>(request.at("kind").get<std::string>()).value());
    const bool kernels = place_.engine == "sm";
    auto mover = kernels ? kernel_mover(gpu_.uuid) : std::optional(copy_engine_mover(*on_));
    if (!mover)
      throw std::runtime_error("this build has no kernels; hint: --engine ce, or a build with the CUDA Toolkit");
    mover_ = std::move(*mover);
    half_ =
        on_->whole(place_.size.count, request.at("multicast").get<bool>() ? static_cast<unsigned>(place_.ranks) : 0);
    own_.emplace(SharedMemory::made(*on_, 2 * half_));
    own_->map();
    mover_.fill(own_->address(), place_.size.count, seed_of(rank()));
    mover_.clear(own_->address() + half_, half_);
    if (on_->kind() == HandleKind::posix) return {{"handle", mail_.emplace().address()}};
    return {{"handle", to_hexadecimal(own_->handle().fabric)}};
  }

  /// Hands a descriptor to all ranks but this one, which are all of this node.
  void post(const SharedMemory& memory) {
    const MemoryHandle handle = memory.handle();
    for (std::size_t to = 0; to < ranks(); ++to) {
      if (to != rank()) mail_->send(addresses_.at(to), place_.rank, handle.posix, kMailLimit);
    }
  }

  json take(const json& request) {
    addresses_ = request.at("handles").get<std::vector<std::string>>();
    const auto names = request.at("names").get<std::vector<std::string>>();
    const bool posix = on_->kind() == HandleKind::posix;
    if (posix) post(*own_);
    std::vector<MemoryHandle> handles(ranks());
    for (std::size_t i = 0; i < ranks(); ++i) {
      if (i == rank()) continue;
      if (!posix) {
        handles[i].fabric = from_hexadecimal(addresses_.at(i)).value_or("");
        continue;
      }
      auto [from, descriptor] = mail_->take(kMailLimit);
      handles.at(static_cast<std::size_t>(from)).posix = std::move(descriptor);
    }
    peers_.resize(ranks());
    for (std::size_t i = 0; i < ranks(); ++i) {
      if (i == rank()) continue;
      peers_[i].emplace(
          SharedMemory::imported(*on_, handles[i], 2 * half_, fmt::format("rank {} ({})", i, names.at(i))));
      peers_[i]->map();
    }
    return json::object();
  }

  [[nodiscard]] std::uint64_t payload_of(std::size_t which) const {
    return which == rank() ? own_->address() : peers_.at(which)->address();
  }

  /// Where data from `source` land: each at a place of its own if `slots`.
  [[nodiscard]] std::uint64_t landing_of(std::size_t target, std::size_t source, const json& request) const {
    const std::size_t slot = source > target ? source - 1 : source;
    const std::size_t offset = request.at("slots").get<bool>() ? slot * request.at("size").get<std::size_t>() : 0;
    return payload_of(target) + half_ + offset;
  }

  json move(const json& request) {
    const auto begin = Clock::now();
    const bool reads = request.at("read");
    json rates = json::array();
    for (const auto& flow : request.at("flows")) {
      const std::size_t source = flow.at(0), target = flow.at(1);
      if ((reads ? target : source) != rank()) continue;
      const auto size = request.at("size").get<std::size_t>();
      const std::uint64_t from = payload_of(source), to = landing_of(target, source, request);
      rates = run([&](std::size_t copies) { return mover_.copy(to, from, size, copies); }, size, request);
    }
    return {{"rates", rates}, {"spent_s", since_s(begin)}};
  }

  /// Copies for `lead_s`, then `counted_s`, then `lead_s` again; B/s of each batch that began in the middle part.
  template <class Copy>
  json run(Copy copy, std::size_t size, const json& request) const {
    const double lead_s = request.at("lead_s"), counted_s = request.at("counted_s");
    const auto begin = Clock::now();
    std::size_t copies = 1;
    while (since_s(begin) < lead_s || copies == 1) {
      const Seconds time = copy(copies);
      copies = std::max<std::size_t>(2, copies_for({time.count / static_cast<double>(copies)}, kBatch, kCopiesMax));
    }
    json rates = json::array();
    const auto counted = Clock::now();
    do {
      const Seconds time = copy(copies);
      rates.push_back((Bytes{size * copies} / time).count);
    } while (since_s(counted) < counted_s);
    for (const auto after = Clock::now(); since_s(after) < lead_s;) (void)copy(copies);  // not counted
    return rates;
  }

  json check_landing(const json& request) {
    json wrong = json::array();
    for (const auto& flow : request.at("flows")) {
      const std::size_t source = flow.at(0), target = flow.at(1);
      if (target != rank()) continue;
      const auto size = request.at("size").get<std::size_t>();
      wrong.push_back({source, mover_.mismatches(landing_of(target, source, request), size, seed_of(source))});
    }
    mover_.clear(own_->address() + half_, half_);
    return {{"mismatches", wrong}};
  }

  json multicast(const json& request) {
    const std::string step = request.at("step");
    if (step == "make") {
      if (mover_.multicast == nullptr) return {{"handle", ""}};
      if (rank() != 0) return {{"handle", "?"}};
      together_.emplace(SharedMemory::multicast(*on_, half_, static_cast<unsigned>(ranks())));
      if (on_->kind() == HandleKind::fabric) return {{"handle", to_hexadecimal(together_->handle().fabric)}};
      post(*together_);
      return {{"handle", "posted"}};
    }
    if (step == "join") {
      if (rank() != 0) {
        MemoryHandle handle;
        if (on_->kind() == HandleKind::posix)
          handle.posix = mail_->take(kMailLimit).second;
        else
          handle.fabric = from_hexadecimal(request.at("handle").get<std::string>()).value_or("");
        together_.emplace(SharedMemory::imported(*on_, handle, half_, "the multicast object"));
      }
      together_->add_gpu();
      return json::object();
    }
    const auto root = request.value("root", std::size_t{0});
    if (step == "bind") {
      together_->bind(*own_, half_, half_);
      together_->map();
      return json::object();
    }
    if (step == "send") {
      if (root != rank()) return {{"rates", json::array()}};
      const std::size_t size = place_.size.count;
      const auto copy = [&](std::size_t copies) {
        return mover_.multicast(together_->address(), own_->address(), size, copies);
      };
      return {{"rates", run(copy, size, request)}};
    }
    const std::uint64_t wrong = mover_.mismatches(own_->address() + half_, place_.size.count, seed_of(root));
    mover_.clear(own_->address() + half_, half_);
    return {{"mismatches", json::array({json::array({root, wrong})})}};
  }

  /// Every link that the driver knew in hello; one that it does not know any more is at fault.
  json links() {
    json all = json::array();
    if (links_.empty()) return {{"links", all}};
    const nvml::Nvml nvml;
    const auto gpu = nvml.gpu_at(gpu_.pci_bus_id);
    const auto now = gpu.value ? nvml::read_nvlink_facts(*gpu.value).value : std::nullopt;
    const auto links_now = now ? now->links : std::vector<nvml::NvLinkFacts>{};
    double fastest = 0;
    for (const auto& link : links_) fastest = std::max(fastest, link.speed.value_or(0));
    for (const auto& before : links_) {
      const auto after = std::ranges::find(links_now, before.number, &nvml::NvLinkFacts::number);
      const bool at_fault = after == links_now.end() || !after->active || (after->speed && *after->speed < fastest) ||
                            (after->recoveries && before.recoveries && *after->recoveries > *before.recoveries);
      all.push_back({before.number, at_fault});
    }
    return {{"links", all}};
  }

  [[nodiscard]] std::size_t rank() const { return static_cast<std::size_t>(place_.rank); }
  [[nodiscard]] std::size_t ranks() const { return static_cast<std::size_t>(place_.ranks); }

  RackPlace place_;
  CudaDriver driver_;
  DriverGpu gpu_;
  Deadline deadline_;
  std::vector<nvml::NvLinkFacts> links_;  ///< before the load
  std::optional<SharingGpu> on_;
  std::optional<DescriptorMail> mail_;
  std::vector<std::string> addresses_;
  std::size_t half_ = 0;
  std::optional<SharedMemory> own_;
  std::vector<std::optional<SharedMemory>> peers_;  ///< by rank
  std::optional<SharedMemory> together_;
  RackMover mover_;
};

void run(const RackPlace& place) {
  std::optional<RackRank> rank;  // made by the first request, so that a failure in it is an answer
  collective::answer_leader([&](const json& request) {
    if (!rank) rank.emplace(place);
    return rank->answer(request);
  });
}

}  // namespace

std::vector<std::string> rack_rank_arguments(const std::string& program, const RackPlace& place) {
  return {
      program,   kRankFlag,    std::to_string(getpid()),        std::to_string(place.rank), std::to_string(place.ranks),
      place.gpu, place.engine, std::to_string(place.size.count)};
}

std::optional<int> rack_rank_main(int argc, char** argv) {
  const std::span arguments(argv, static_cast<std::size_t>(argc));
  if (arguments.size() != 8 || std::string_view(arguments[1]) != kRankFlag) return std::nullopt;
  // The leader may be killed at any time, and no rank may keep a GPU busy after it.
  if (!collective::tie_to_leader(arguments[2])) return 1;
  try {
    run({.rank = std::stoi(arguments[3]),
         .ranks = std::stoi(arguments[4]),
         .gpu = arguments[5],
         .engine = arguments[6],
         .size = {std::stoull(arguments[7])}});
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "cuda_rack_bandwidth rank " << arguments[3] << ": " << error.what() << '\n';
    return 1;
  }
}

}  // namespace assay::cuda
