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
#include "probes/gloo/mesh.h"
#include "probes/gloo/outcome.h"
#include "probes/gloo/rank_check.h"
#include "probes/gloo/rank_mesh.h"
#include "probes/host/buffer.h"

namespace assay::gloo {
namespace {

using nlohmann::json;

/// The state of one rank between requests.
class Session {
 public:
  explicit Session(RankPlace place)
      : place_(std::move(place)),
        operation_(collective::operation_named(place_.operation)),
        element_(collective::element_named(place_.type)),
        mesh_(place_.address, place_.rank, place_.ranks) {}

  json answer(const json& request) {
    const std::string what = request.at("do");
    if (what == "hello") return {{"free", available_memory()}};
    if (what == "introduce") return mesh_.introduce();
    if (what == "enter") return mesh_.enter(request.at("words"));
    if (what == "allocate") return allocate(request);
    if (what == "check") return check_once(request);
    if (what == "time") return time(request);
    if (what == "facts") return mesh_.facts(algorithm_of(operation_));
    throw std::runtime_error(fmt::format("'{}' is no request", what));
  }

 private:
  json allocate(const json& request) {
    for (auto [name, buffer] : {std::pair{"sent", &source_}, {"received", &target_}}) {
      const Bytes size{request.at(name).get<std::uint64_t>()};
      buffer->emplace(size, host::Pages::base);
      std::memset((*buffer)->as<std::byte>().data(), 0,
                  size.count);  // so that no page is missing while a time is taken
    }
    return json::object();
  }

  [[nodiscard]] collective::Shape shape(const json& request) const {
    const collective::Shape shape = collective::shape_of(operation_, request.at("size").get<std::size_t>(),
                                                         collective::size_of(element_), place_.ranks);
    if (shape.sent * collective::size_of(element_) > source_->as<std::byte>().size() ||
        shape.received * collective::size_of(element_) > target_->as<std::byte>().size()) {
      throw std::logic_error("a size is larger than the buffers");
    }
    return shape;
  }

  /// The place of both buffers in iteration `number`.
  struct Places {
    std::byte* source;
    std::byte* target;
  };
  [[nodiscard]] Places places(const collective::Shape& shape, std::uint64_t number) {
    const auto source = source_->as<std::byte>(), target = target_->as<std::byte>();
    return {.source = source.data() +
                      collective::rotated_offset(number, shape.sent * collective::size_of(element_), source.size()),
            .target = target.data() + collective::rotated_offset(number, shape.received * collective::size_of(element_),
                                                                 target.size())};
  }

  json check_once(const json& request) {
    constexpr int kAllOnes = 0xff;  // a NaN in every type, which no pattern holds
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
    fill(at.source, now.sent, element_, pattern);
    std::memset(at.target, kAllOnes,
                now.received * collective::size_of(element_));  // what the collective does not write cannot pass
    mesh_.mesh().run(operation_, element_, now.chunk, at.source, at.target);
    return {{"mismatches", count_mismatches(at.target, now.received, element_, pattern)}};
  }

  json time(const json& request) {
    const collective::Shape now = shape(request);
    const auto lead = request.at("lead").get<std::int64_t>(), counted = request.at("counted").get<std::int64_t>();
    auto number = request.at("number").get<std::uint64_t>();
    std::vector<double> times;
    for (std::int64_t i = 0; i < lead + counted; ++i, ++number) {
      const Places at = places(now, number);
      mesh_.mesh().barrier();
      const auto begin = std::chrono::steady_clock::now();
      mesh_.mesh().run(operation_, element_, now.chunk, at.source, at.target);
      const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
      if (i >= lead) times.push_back(taken.count());
    }
    return {{"times", times}};
  }

  RankPlace place_;
  collective::Operation operation_;
  collective::Element element_;
  std::optional<host::Buffer> source_, target_;  // before the mesh, which is closed first and may still use them
  RankMesh mesh_;
};

}  // namespace
}  // namespace assay::gloo

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv, argv + argc);
  const auto place = assay::gloo::rank_place(arguments);
  if (!place || !assay::collective::tie_to_leader(arguments.at(1))) {
    std::cerr << "host_collective_rank: host_collective starts this program; it is of no use by itself\n";
    return 1;
  }
  // Gloo 0.5 writes to connections that a peer has closed without MSG_NOSIGNAL; the rank would die of it and be blamed
  // for its peer.
  if (std::signal(SIGPIPE, SIG_IGN) == SIG_ERR) return 1;
  try {
    assay::gloo::Session session(*place);
    assay::collective::answer_leader([&](const nlohmann::json& request) { return session.answer(request); });
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "host_collective rank " << place->rank << ": " << error.what() << '\n';
    return 1;
  }
}
