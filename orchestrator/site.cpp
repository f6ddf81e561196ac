// site: reading, checking and writing the inventory.
#include "orchestrator/site.h"

#include <algorithm>
#include <set>

#include <unistd.h>

#include <fmt/format.h>

#include "orchestrator/schema.h"

namespace assay {
namespace {

using nlohmann::json;

constexpr const char* kSchema = "assay.site/1";

Node node_from(const json& entry) {
  Node node{.name = entry.at("name"),
            .launcher = entry.at("launcher") == "ssh" ? Launcher::ssh : Launcher::local,
            .address = entry.value("address", ""),
            .port = entry.value("port", 22),
            .user = entry.value("user", ""),
            .identity_file = entry.value("identity_file", ""),
            .host_key = entry.value("host_key", ""),
            .directory = entry.value("directory", kDefaultDirectory),
            .rack = entry.value("rack", ""),
            .leaf = entry.value("leaf", ""),
            .rendezvous = entry.value("rendezvous", "")};
  if (node.address.empty()) node.address = node.name;
  if (node.rendezvous.empty()) node.rendezvous = node.launcher == Launcher::local ? "127.0.0.1" : node.address;
  return node;
}

}  // namespace

const Node* Site::node(std::string_view node_name) const {
  const auto found = std::ranges::find(nodes, node_name, &Node::name);
  return found == nodes.end() ? nullptr : &*found;
}

Site this_machine() {
  constexpr std::size_t kLongestName = 63;
  char buffer[256] = {};
  std::string name = gethostname(buffer, sizeof buffer - 1) == 0 ? buffer : "";
  std::erase_if(name, [](unsigned char c) { return std::isalnum(c) == 0 && c != '.' && c != '-'; });
  name = name.substr(0, kLongestName);
  if (name.empty() || std::isalnum(static_cast<unsigned char>(name.front())) == 0) name = "localhost";
  return Site{.name = name,
              .known_hosts = "",
              .nodes = {Node{.name = name, .launcher = Launcher::local, .address = name, .directory = kDefaultDirectory, .rendezvous = "127.0.0.1"}}};
}

std::expected<Site, InputError> read_site(std::string_view text, const std::string& where) {
  const auto document = parse_json(text, where);
  if (!document) return std::unexpected(document.error());
  if (auto problem = check_schema(*document, "site.schema", where)) return std::unexpected(*problem);
  Site site{.name = document->at("name"), .known_hosts = document->value("known_hosts", ""), .nodes = {}};
  if (document->contains("power_cap_w")) site.power_cap_w = document->at("power_cap_w").get<double>();
  std::set<std::string> names;
  std::set<std::string> machines;
  for (std::size_t i = 0; i < document->at("nodes").size(); ++i) {
    site.nodes.push_back(node_from(document->at("nodes")[i]));
    const Node& node = site.nodes.back();
    const std::string here = fmt::format("{}: nodes[{}]", where, i);
    if (!names.insert(node.name).second) {
      return std::unexpected(InputError{here + ".name", fmt::format("'{}' stands twice", node.name), "every node has a name of its own"});
    }
    const std::string machine = node.launcher == Launcher::local ? "this machine" : fmt::format("{} port {}", node.address, node.port);
    if (!machines.insert(machine).second) {
      return std::unexpected(InputError{here, fmt::format("{} stands twice, under two names", machine), "one machine measured twice would stand for two"});
    }
    if (node.directory.find("..") != std::string::npos) {
      return std::unexpected(InputError{here + ".directory", fmt::format("'{}' has a '..'", node.directory), "write the path without it"});
    }
  }
  return site;
}

json to_json(const Site& site) {
  json nodes = json::array();
  for (const auto& node : site.nodes) {
    nodes.push_back({{"name", node.name},
                     {"launcher", node.launcher == Launcher::ssh ? "ssh" : "local"},
                     {"address", node.address},
                     {"port", node.port},
                     {"user", node.user},
                     {"identity_file", node.identity_file},
                     {"host_key", node.host_key},
                     {"directory", node.directory},
                     {"rack", node.rack},
                     {"leaf", node.leaf},
                     {"rendezvous", node.rendezvous}});
  }
  json object = {{"schema", kSchema}, {"name", site.name}, {"known_hosts", site.known_hosts}, {"nodes", std::move(nodes)}};
  if (site.power_cap_w) object["power_cap_w"] = *site.power_cap_w;
  return object;
}

}  // namespace assay
