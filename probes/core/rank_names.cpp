// rank_names: host names, numbered if ranks share a machine.
#include "probes/core/rank_names.h"

#include <set>

#include <fmt/format.h>

#include "probes/core/host_facts.h"

namespace assay {

std::vector<std::string> rank_names(Rendezvous& group) {
  auto names = group.all_gather(std::get<std::string>(host_facts().at("name")));
  if (std::set<std::string>(names.begin(), names.end()).size() < names.size()) {
    for (std::size_t rank = 0; rank < names.size(); ++rank) names[rank] += fmt::format("#{}", rank);
  }
  return names;
}

}  // namespace assay
