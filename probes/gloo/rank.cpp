// host_collective_rank: one rank of host_collective, linked to Gloo. The leader of the node starts it and asks; it
// answers.
#include <chrono>
#include <csignal>
#include <cstring>
#include <iostream>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>

#include <fmt/format.h>

#include "probes/collective/operation.h"
#include "probes/collective/rank_loop.h"
#include "probes/core/host_facts.h"
#include "probes/gloo/addresses.h"
#include "probes/gloo/connections.h"
#include "probes/gloo/mesh.h"
#include "probes/gloo/outcome.h"
#include "probes/gloo/rank_check.h"
#include "probes/host/buffer.h"

namespace assay {
namespace {

using nlohmann::json;

/// Memory that the kernel would give without swapping, in B.
std::uint64_t available_memory() {
  constexpr std::string_view kLine = "MemAvailable:";
  constexpr std::uint64_t kKibi = 1024;
  const std::string all = read_fact("/proc/meminfo").value_or("");
  const auto at = all.find(kLine);
  if (at == std::string::npos) throw std::runtime_error("/proc/meminfo does not state the available memory");
  return std::stoull(all.substr(at + kLine.size())) * kKibi;
}

/// The state of one rank between requests.
class Session {
 public:
  explicit Session(RankPlace place)
      : place_(std::move(place)), operation_(operation_named(place_.operation)), element_(element_named(place_.type)) {}

  json answer(const json& request) {
    const std::string what = request.at("do");
    if (what == "hello") return {{"free", available_memory()}};
    if (what == "introduce") return introduce();
    if (what == "enter") return enter(request.at("words"));
    if (what == "allocate") return allocate(request);
    if (what == "check") return check_once(request);
    if (what == "time") return time(request);
    if (what == "facts") return facts();
    throw std::runtime_error(fmt::format("'{}' is no request", what));
  }

 private:
  json introduce() {
    mesh_.emplace(place_.address, place_.rank, place_.ranks);
    return {{"word", pack_addresses(mesh_->ends())}};
  }

  json enter(const json& words) {
    std::vector<std::string> theirs;
    for (int other = 0; other < place_.ranks; ++other) {
      if (other != place_.rank)
        theirs.push_back(unpack_address(words.at(static_cast<std::size_t>(other)), end_towards(other, place_.rank)));
    }
    mesh_->connect(theirs);
    mesh_->barrier();
    const Connections now = own_connections();
    for (const auto& path : now.paths) {
      if (path.address == place_.address) continue;
      throw std::runtime_error(fmt::format("the way to {} leaves from {} ({}), not from {}, which the ranks are to use",
                                           path.peer_address, path.address,
                                           path.interface.empty() ? "no port's" : path.interface, place_.address));
    }
    json answer = {{"boot", read_fact("/proc/sys/kernel/random/boot_id").value_or("")},
                   {"within", now.within},
                   {"beyond", now.beyond}};
    if (now.paths.front().link_speed)
      answer["link_speed"] = now.paths.front().link_speed->count;  // all leave from one address
    return answer;
  }

  json allocate(const json& request) {
    for (auto [name, buffer] : {std::pair{"sent", &source_}, {"received", &target_}}) {
      const Bytes size{request.at(name).get<std::uint64_t>()};
      buffer->emplace(size, Pages::base);
      std::memset((*buffer)->as<std::byte>().data(), 0,
                  size.count);  // so that no page is missing while a time is taken
    }
    return json::object();
  }

  [[nodiscard]] Shape shape(const json& request) const {
    const Shape shape = shape_of(operation_, request.at("size").get<std::size_t>(), size_of(element_), place_.ranks);
    if (shape.sent * size_of(element_) > source_->as<std::byte>().size() ||
        shape.received * size_of(element_) > target_->as<std::byte>().size()) {
      throw std::logic_error("a size is larger than the buffers");
    }
    return shape;
  }

  /// The place of both buffers in iteration `number`.
  struct Places {
    std::byte* source;
    std::byte* target;
  };
  [[nodiscard]] Places places(const Shape& shape, std::uint64_t number) {
    const auto source = source_->as<std::byte>(), target = target_->as<std::byte>();
    return {.source = source.data() + rotated_offset(number, shape.sent * size_of(element_), source.size()),
            .target = target.data() + rotated_offset(number, shape.received * size_of(element_), target.size())};
  }

  json check_once(const json& request) {
    constexpr int kAllOnes = 0xff;  // a NaN in every type, which no pattern holds
    const Shape now = shape(request);
    const auto number = request.at("number").get<std::uint64_t>();
    const auto ranks = static_cast<std::uint32_t>(place_.ranks);
    const Pattern pattern{.operation = operation_,
                          .rank = static_cast<std::uint32_t>(place_.rank),
                          .ranks = ranks,
                          .chunk = now.chunk,
                          .seed = number,
                          .modulus = sum_modulus(ranks, exact_limit(element_)),
                          .sparse = sum_is_sparse(ranks, exact_limit(element_))};
    const Places at = places(now, number);
    fill(at.source, now.sent, element_, pattern);
    std::memset(at.target, kAllOnes,
                now.received * size_of(element_));  // what the collective does not write cannot pass
    mesh_->run(operation_, element_, now.chunk, at.source, at.target);
    return {{"mismatches", count_mismatches(at.target, now.received, element_, pattern)}};
  }

  json time(const json& request) {
    const Shape now = shape(request);
    const auto lead = request.at("lead").get<std::int64_t>(), counted = request.at("counted").get<std::int64_t>();
    auto number = request.at("number").get<std::uint64_t>();
    std::vector<double> times;
    for (std::int64_t i = 0; i < lead + counted; ++i, ++number) {
      const Places at = places(now, number);
      mesh_->barrier();
      const auto begin = std::chrono::steady_clock::now();
      mesh_->run(operation_, element_, now.chunk, at.source, at.target);
      const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
      if (i >= lead) times.push_back(taken.count());
    }
    return {{"times", times}};
  }

  [[nodiscard]] json facts() const {
    const Connections now = own_connections();
    json paths = json::array();
    for (const auto& path : now.paths) {
      json one = {{"address", path.address},
                  {"interface", path.interface},
                  {"mss", path.mss},
                  {"congestion_control", path.congestion_control}};
      if (path.mtu) one["mtu"] = *path.mtu;
      if (path.link_speed) one["link_speed"] = path.link_speed->count;
      paths.push_back(std::move(one));
    }
    return {{"paths", paths},
            {"segments", now.counters.segments},
            {"retransmitted", now.counters.retransmitted},
            {"library", gloo_library()},
            {"algorithm", algorithm_of(operation_)}};
  }

  RankPlace place_;
  Operation operation_;
  Element element_;
  std::optional<Buffer> source_, target_;  // before the mesh, which is closed first and may still use them
  std::optional<Mesh> mesh_;
};

}  // namespace
}  // namespace assay

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv, argv + argc);
  const auto place = assay::rank_place(arguments);
  if (!place || !assay::tie_to_leader(arguments.at(1))) {
    std::cerr << "host_collective_rank: host_collective starts this program; it is of no use by itself\n";
    return 1;
  }
  // Gloo 0.5 writes to connections that a peer has closed without MSG_NOSIGNAL; the rank would die of it and be blamed
  // for its peer.
  if (std::signal(SIGPIPE, SIG_IGN) == SIG_ERR) return 1;
  try {
    assay::Session session(*place);
    assay::answer_leader([&](const nlohmann::json& request) { return session.answer(request); });
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "host_collective rank " << place->rank << ": " << error.what() << '\n';
    return 1;
  }
}
