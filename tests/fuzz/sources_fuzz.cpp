// The readers of other programs' lists of nodes and cables on hostile bytes: every reader sees every input.
#include <cstdint>
#include <cstdlib>

#include "orchestrator/site/sources.h"
#include "orchestrator/site/topology.h"
#include "probes/core/lldp.h"
#include "tests/fuzz/good_error.h"

namespace {

using namespace assay;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  constexpr std::size_t kMostNodes = 100'000;
  for (const auto read :
       {site::site_from_hostfile, site::site_from_ssh_config, site::site_from_scontrol, site::site_from_pods}) {
    if (const auto document = read(text, "fuzz", {}); is_good(document))
      (void)is_good(site::read_site(document->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), "fuzz"));
  }
  if (const auto names = site::expand_host_list(text.substr(0, text.find('\n'))); names && names->size() > kMostNodes)
    std::abort();
  static const site::Site kSite =
      site::read_site(
          R"({"schema": "assay.site/1", "name": "s", "nodes": [{"name": "n01", "launcher": "ssh"}, {"name": "n02", "launcher": "ssh"}]})",
          "seed")
          .value();
  (void)is_good(read_lldp(text, "fuzz"));
  if (const auto topology =
          site::topology_from_lldp({{"n01", std::string(text)}, {"n02", std::string(text)}}, "fuzz", kSite);
      is_good(topology))
    (void)site::with_cables(kSite, *topology, "parameter");
  if (const auto topology = site::topology_from_ibnetdiscover(text, "fuzz", kSite); is_good(topology))
    (void)site::with_cables(kSite, *topology, "parameter");
  return 0;
}
