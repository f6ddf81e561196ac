// rank_process: one GPU's part of every request. A failure is an answer; only the leader decides what it means.
#include "probes/nccl/rank_process.h"

#include <array>
#include <cerrno>
#include <cstdlib>
#include <iostream>
#include <span>
#include <stdexcept>
#include <system_error>

#include <sys/mman.h>
#include <unistd.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "probes/collective/limits.h"
#include "probes/collective/rank_loop.h"
#include "probes/core/rendezvous_link.h"
#include "probes/cuda/device.h"
#include "probes/cuda/gate.h"
#include "probes/nccl/check.h"
#include "probes/nccl/communicator.h"
#include "probes/nccl/environment.h"
#include "probes/nccl/log.h"

namespace assay::nccl {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxLog = 64 << 20;  // a rank of a thousand logs a few MiB

/// NCCL's log in memory, which no other user can read and which needs no removal.
class LogFile {
 public:
  /// NCCL opens its log at the first thing it says, so this comes before the library.
  LogFile() : file_(memfd_create("nccl-log", MFD_CLOEXEC)) {
    if (file_.number() < 0) throw std::system_error(errno, std::generic_category(), "memfd_create");
    if (setenv("NCCL_DEBUG_FILE", fmt::format("/proc/self/fd/{}", file_.number()).c_str(), 1) != 0)
      throw std::bad_alloc();
  }
  [[nodiscard]] std::string text() const {
    std::string all;
    std::array<char, 1 << 16> chunk;
    ssize_t got = 0;
    while (all.size() < kMaxLog &&
           (got = pread(file_.number(), chunk.data(), chunk.size(), static_cast<off_t>(all.size()))) > 0) {
      all.append(chunk.data(), static_cast<std::size_t>(got));
    }
    return all;
  }

 private:
  rendezvous::Descriptor file_;
};

/// The GPU of this rank, made current before anything of it is allocated.
cuda::Device enter_device(const std::string& uuid) {
  cuda::Device device = cuda::choose_devices(cuda::all_devices(), uuid).front();
  cuda::use(device);
  return device;
}

/// The state of one rank between requests.
class Session {
 public:
  explicit Session(const RankPlace& place)
      : place_(place),
        operation_(collective::operation_named(place.operation)),
        element_(collective::element_named(place.type)),
        device_(enter_device(place.gpu)),
        stream_(cuda::make_stream()) {}

  json answer(const json& request) {
    const std::string what = request.at("do");
    if (what == "hello") return {{"free", cuda::free_memory().count}, {"version", nccl_.version()}};
    if (what == "introduce") return {{"word", place_.rank == 0 ? nccl_.unique_id() : ""}};
    if (what == "enter") return enter(request.at("words").at(0));
    if (what == "allocate") return allocate(request);
    if (what == "check") return check_once(request);
    if (what == "time") return time(request);
    if (what == "facts") return facts();
    throw std::runtime_error(fmt::format("'{}' is no request", what));
  }

 private:
  json enter(const std::string& id) {
    communicator_ = std::make_unique<Communicator>(nccl_, id, place_.ranks, place_.rank, collective::kEnterLimit);
    return json::object();
  }

  json allocate(const json& request) {
    source_ = CollectiveBuffer(nccl_, {request.at("sent").get<std::uint64_t>()});
    target_ = CollectiveBuffer(nccl_, {request.at("received").get<std::uint64_t>()});
    mismatches_ = cuda::DeviceBuffer({sizeof(std::uint64_t)});
    return json::object();
  }

  [[nodiscard]] collective::Shape shape(const json& request) const {
    const collective::Shape shape = collective::shape_of(operation_, request.at("size").get<std::size_t>(),
                                                         collective::size_of(element_), place_.ranks);
    if (shape.sent * collective::size_of(element_) > source_.size().count ||
        shape.received * collective::size_of(element_) > target_.size().count) {
      throw std::logic_error("a size is larger than the buffers");
    }
    return shape;
  }

  /// The places of both buffers in iteration `number`.
  struct Places {
    std::byte* source;
    std::byte* target;
  };
  [[nodiscard]] Places places(const collective::Shape& shape, std::uint64_t number) const {
    return {
        .source = source_.data() +
                  collective::rotated_offset(number, shape.sent * collective::size_of(element_), source_.size().count),
        .target = target_.data() + collective::rotated_offset(number, shape.received * collective::size_of(element_),
                                                              target_.size().count)};
  }

  json check_once(const json& request) {
    const collective::Shape now = shape(request);
    const auto number = request.at("number").get<std::uint64_t>();
    const auto ranks = static_cast<std::uint32_t>(place_.ranks);
    const collective::Pattern pattern{.operation = operation_,
                                      .rank = static_cast<std::uint32_t>(place_.rank),
                                      .ranks = ranks,
                                      .chunk = now.chunk,
                                      .seed = number,
                                      .modulus = collective::sum_modulus(ranks, collective::exact_limit(element_)),
                                      .sparse = collective::sum_is_sparse(ranks, collective::exact_limit(element_))};
    const Places at = places(now, number);
    clear(mismatches_.as<std::uint64_t>(), stream_);
    fill(at.source, now.sent, element_, pattern, stream_);
    overwrite(at.target, now.received * collective::size_of(element_),
              stream_);  // what the collective does not write cannot pass
    communicator_->enqueue(operation_, element_, now.chunk, at.source, at.target, stream_);
    count_mismatches(at.target, now.received, element_, pattern, mismatches_.as<std::uint64_t>(), stream_);
    communicator_->finish(stream_, collective::kBatchLimit);
    std::uint64_t found = 0;
    cuda::copy_to_host(std::as_writable_bytes(std::span(&found, 1)), mismatches_.data());
    return {{"mismatches", found}};
  }

  json time(const json& request) {
    const collective::Shape now = shape(request);
    const auto lead = request.at("lead").get<std::int64_t>(), counted = request.at("counted").get<std::int64_t>();
    auto number = request.at("number").get<std::uint64_t>();
    std::vector<std::pair<cuda::Event, cuda::Event>> marks;
    marks.reserve(static_cast<std::size_t>(counted));
    for (std::int64_t i = 0; i < counted; ++i) marks.emplace_back(cuda::make_event(), cuda::make_event());
    if (gated_) gate_.close(stream_);
    for (std::int64_t i = 0; i < lead + counted; ++i, ++number) {
      const Places at = places(now, number);
      if (i >= lead) cuda::mark(marks[static_cast<std::size_t>(i - lead)].first, stream_);
      communicator_->enqueue(operation_, element_, now.chunk, at.source, at.target, stream_);
      if (i >= lead) cuda::mark(marks[static_cast<std::size_t>(i - lead)].second, stream_);
    }
    gate_.open();
    communicator_->finish(stream_, collective::kBatchLimit);
    notice_gate();
    std::vector<double> times;
    times.reserve(marks.size());
    for (const auto& [begin, end] : marks) times.push_back(cuda::elapsed(begin, end).count);
    return {{"times", times}};
  }

  /// A gate that opened by itself means that enqueueing waits for the device: then it is done without, and said so.
  void notice_gate() {
    try {
      gate_.check_held();
    } catch (const std::runtime_error&) {
      gated_ = false;
    }
  }

  [[nodiscard]] json facts() const {
    const NcclLog log = read_nccl_log(log_.text());
    json result = {
        {"transports", log.transports}, {"warnings", log.warnings},   {"environment", words(nccl_variables(environ))},
        {"library", nccl_.path()},      {"version", nccl_.version()}, {"buffers", source_.source()},
        {"launch_excluded", gated_}};
    if (log.network) result["network"] = *log.network;
    if (log.multicast) result["multicast"] = *log.multicast;
    auto& choices = result["choices"] = json::array();
    for (const auto& choice : log.choices) {
      choices.push_back({{"function", choice.function},
                         {"bytes", choice.bytes},
                         {"algorithm", choice.algorithm},
                         {"protocol", choice.protocol},
                         {"channels", choice.channels}});
    }
    return result;
  }

  RankPlace place_;
  collective::Operation operation_;
  collective::Element element_;
  cuda::Device device_;
  LogFile log_;  // before the library, which reads where its log goes
  Nccl nccl_;
  cuda::Stream stream_;
  cuda::Gate gate_;
  bool gated_ = true;
  CollectiveBuffer source_, target_;  // before the communicator, which is aborted first and may still use them
  cuda::DeviceBuffer mismatches_;
  std::unique_ptr<Communicator> communicator_;
};

void run(const RankPlace& place) {
  std::optional<Session> session;  // made by the first request, so that what fails in it is an answer
  collective::answer_leader([&](const json& request) {
    if (!session) session.emplace(place);
    return session->answer(request);
  });
}

}  // namespace

std::optional<int> rank_main(int argc, char** argv) {
  const std::span arguments(argv, static_cast<std::size_t>(argc));
  if (arguments.size() != 8 || std::string_view(arguments[1]) != "--local-rank") return std::nullopt;
  // The leader may be killed at any time, and no rank may keep spinning on a GPU after it.
  if (!collective::tie_to_leader(arguments[2])) return 1;
  try {
    run({.rank = std::stoi(arguments[3]),
         .ranks = std::stoi(arguments[4]),
         .gpu = arguments[5],
         .operation = arguments[6],
         .type = arguments[7]});
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "nccl_collective rank " << arguments[3] << ": " << error.what() << '\n';
    return 1;
  }
}

}  // namespace assay::nccl
