// rank_mesh: introductions, connections and the kernel's facts of them.
#include "probes/gloo/rank_mesh.h"

#include <stdexcept>
#include <vector>

#include <fmt/format.h>

#include "probes/core/host_facts.h"
#include "probes/gloo/addresses.h"
#include "probes/gloo/connections.h"

namespace assay::gloo {

using nlohmann::json;

std::uint64_t available_memory() {
  constexpr std::string_view kLine = "MemAvailable:";
  constexpr std::uint64_t kKibi = 1024;
  const std::string all = read_fact("/proc/meminfo").value_or("");
  const auto at = all.find(kLine);
  if (at == std::string::npos) throw std::runtime_error("/proc/meminfo does not state the available memory");
  return std::stoull(all.substr(at + kLine.size())) * kKibi;
}

json RankMesh::introduce() {
  mesh_.emplace(address_, rank_, ranks_);
  return {{"word", pack_addresses(mesh_->ends())}};
}

json RankMesh::enter(const json& words) {
  std::vector<std::string> theirs;
  for (int other = 0; other < ranks_; ++other) {
    if (other != rank_)
      theirs.push_back(unpack_address(words.at(static_cast<std::size_t>(other)), end_towards(other, rank_)));
  }
  mesh_->connect(theirs);
  mesh_->barrier();
  const Connections now = own_connections();
  for (const auto& path : now.paths) {
    if (path.address == address_) continue;
    throw std::runtime_error(fmt::format("the way to {} leaves from {} ({}), not from {}, which the ranks are to use",
                                         path.peer_address, path.address,
                                         path.interface.empty() ? "no port's" : path.interface, address_));
  }
  json answer = {{"boot", read_fact("/proc/sys/kernel/random/boot_id").value_or("")},
                 {"within", now.within},
                 {"beyond", now.beyond}};
  if (now.paths.front().link_speed)
    answer["link_speed"] = now.paths.front().link_speed->count;  // all leave from one address
  return answer;
}

json RankMesh::facts(std::string_view algorithm) {
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
          {"algorithm", algorithm}};
}

}  // namespace assay::gloo
