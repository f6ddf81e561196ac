// rank_start: environment, address, memory and path of a node's ranks.
#include "probes/gloo/rank_start.h"

#include <algorithm>
#include <filesystem>
#include <stdexcept>
#include <string_view>

#include <unistd.h>

#include <fmt/format.h>

#include "probes/core/rendezvous.h"
#include "probes/gloo/connection_path.h"
#include "probes/host/tcp_path.h"

namespace assay::gloo {

std::vector<std::string> rank_environment(const Library& library) {
  std::string folders = std::filesystem::path(library.path()).parent_path().string();
  std::vector<std::string> all = {"LD_BIND_NOW=1"};
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    constexpr std::string_view kFolders = "LD_LIBRARY_PATH=";
    if (!text.starts_with(kFolders))
      all.emplace_back(text);
    else if (text.size() > kFolders.size())
      folders += fmt::format(":{}", text.substr(kFolders.size()));
  }
  all.push_back("LD_LIBRARY_PATH=" + folders);
  return all;
}

std::string own_address(const std::string& interface, const Placement& placement) {
  if (interface != host::kRendezvousPort) return address_of_port(interface);
  return placement.world == 1 ? "127.0.0.1" : host::address_towards(parse_endpoint(placement.rendezvous));
}

Bytes admitted(const std::vector<nlohmann::json>& hellos, std::int64_t ranks_per_node) {
  std::uint64_t least = UINT64_MAX;
  for (const auto& hello : hellos) least = std::min(least, hello.at("free").get<std::uint64_t>());
  return {least / 2 / static_cast<std::uint64_t>(ranks_per_node)};
}

void demand_path(const std::string& path, const std::vector<nlohmann::json>& entered, std::int64_t ranks_per_node) {
  std::vector<Presence> ranks;
  for (const auto& one : entered)
    ranks.push_back({.boot = one.at("boot"), .within = one.at("within"), .beyond = one.at("beyond")});
  if (const auto problem = path_problem(path, ranks, static_cast<int>(ranks_per_node)); !problem.empty())
    throw std::runtime_error(problem);
}

}  // namespace assay::gloo
