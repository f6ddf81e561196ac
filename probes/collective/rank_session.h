// rank_session: the requests of a leader that a rank of a collective answers, for every library.
//
// A Library has the rank's buffers and the calls that differ:
//   json hello(), introduce(), enter(words), facts(): the answers to these requests;
//   void allocate(Bytes sent, Bytes received): both buffers, before the first check;
//   std::span<std::byte> sent(), received(): these buffers;
//   std::uint64_t check(const Iteration&, const Pattern&): runs once from a filled buffer into one of ones, counts
//   mismatches; std::vector<double> time(std::int64_t lead, std::int64_t counted, iteration): of the counted
//   iterations, in s; iteration(i) gives Iteration i.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "probes/collective/operation.h"
#include "probes/collective/pattern.h"

namespace assay::collective {

/// One iteration: its shape and where its payload is in both buffers.
struct Iteration {
  Operation operation;
  Element element;
  Shape shape;  ///< in elements
  std::byte* source;
  std::byte* target;
};

/// The state of one rank between requests.
template <class Library>
class RankSession {
 public:
  /// The arguments after `operation` and `element`, the words of both, make the library.
  template <class... Arguments>
  RankSession(int rank, int ranks, const std::string& operation, const std::string& element, Arguments&&... arguments)
      : rank_(rank),
        ranks_(ranks),
        operation_(operation_named(operation)),
        element_(element_named(element)),
        library_(std::forward<Arguments>(arguments)...) {}

  /// Throws for a request that there is not, or that fails.
  nlohmann::json answer(const nlohmann::json& request) {
    const std::string what = request.at("do");
    if (what == "hello") return library_.hello();
    if (what == "introduce") return library_.introduce();
    if (what == "enter") return library_.enter(request.at("words"));
    if (what == "facts") return library_.facts();
    if (what == "allocate") {
      library_.allocate({request.at("sent").get<std::uint64_t>()}, {request.at("received").get<std::uint64_t>()});
      return nlohmann::json::object();
    }
    if (what != "check" && what != "time") throw std::runtime_error(fmt::format("'{}' is no request", what));
    const Shape shape = shape_of(operation_, request.at("size").get<std::size_t>(), size_of(element_), ranks_);
    const auto number = request.at("number").get<std::uint64_t>();
    if (what == "check") return {{"mismatches", library_.check(iteration(shape, number), pattern(shape, number))}};
    return {{"times", library_.time(request.at("lead"), request.at("counted"), [&](std::int64_t i) {
               return iteration(shape, number + static_cast<std::uint64_t>(i));
             })}};
  }

 private:
  [[nodiscard]] Iteration iteration(const Shape& shape, std::uint64_t number) {
    const std::size_t sent = shape.sent * size_of(element_), received = shape.received * size_of(element_);
    const auto source = library_.sent(), target = library_.received();
    if (sent > source.size() || received > target.size()) throw std::logic_error("a size is larger than the buffers");
    return {.operation = operation_,
            .element = element_,
            .shape = shape,
            .source = source.data() + rotated_offset(number, sent, source.size()),
            .target = target.data() + rotated_offset(number, received, target.size())};
  }
  [[nodiscard]] Pattern pattern(const Shape& shape, std::uint64_t seed) const {
    const auto ranks = static_cast<std::uint32_t>(ranks_);
    return {.operation = operation_,
            .rank = static_cast<std::uint32_t>(rank_),
            .ranks = ranks,
            .chunk = shape.chunk,
            .seed = seed,
            .modulus = sum_modulus(ranks, exact_limit(element_)),
            .sparse = sum_is_sparse(ranks, exact_limit(element_))};
  }

  int rank_, ranks_;
  Operation operation_;
  Element element_;
  Library library_;
};

}  // namespace assay::collective
