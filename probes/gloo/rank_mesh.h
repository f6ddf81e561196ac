// rank_mesh: the requests of a leader by which a rank finds the others, and reports its connections.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "probes/gloo/mesh.h"

namespace assay::gloo {

/// Memory that the kernel would give without swapping, in B. Throws std::runtime_error if it does not say.
std::uint64_t available_memory();

/// The mesh of one rank, as its leader asks for it.
class RankMesh {
 public:
  /// `address` is this machine's, numeric; rank `rank` of `ranks`.
  RankMesh(std::string address, int rank, int ranks) : address_(std::move(address)), rank_(rank), ranks_(ranks) {}

  /// Answers "introduce": listens, and says where, as the word that every other rank must know.
  nlohmann::json introduce();
  /// Answers "enter": connects to all, `words` being theirs by rank. Throws std::runtime_error when a way leaves from
  /// another address.
  nlohmann::json enter(const nlohmann::json& words);
  /// Answers "facts" about the connections; `algorithm` is the one that they carried.
  [[nodiscard]] static nlohmann::json facts(std::string_view algorithm);
  /// After introduce().
  Mesh& mesh() { return *mesh_; }

 private:
  std::string address_;
  int rank_, ranks_;
  std::optional<Mesh> mesh_;
};

}  // namespace assay::gloo
