// site: reading, checking and writing the inventory.
#include "orchestrator/site/site.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include <sys/utsname.h>
#include <unistd.h>

#include <fmt/format.h>

#include "orchestrator/site/site_file.h"
#include "profiles/schema.h"

namespace assay::site {
namespace {

using nlohmann::json;

constexpr const char* kSchema = "assay.site/1";

constexpr Seconds kSlurmWait{120};
constexpr const char* kBcastDirectory = "/tmp";

/// Fields of a node that only one launcher reads. With another launcher they are an error, because they would be
/// ignored.
constexpr std::array<std::pair<const char*, Launcher>, 9> kFieldsOf = {{{"port", Launcher::ssh},
                                                                        {"user", Launcher::ssh},
                                                                        {"identity_file", Launcher::ssh},
                                                                        {"host_key", Launcher::ssh},
                                                                        {"jump", Launcher::ssh},
                                                                        {"pod", Launcher::kubernetes},
                                                                        {"namespace", Launcher::kubernetes},
                                                                        {"container", Launcher::kubernetes},
                                                                        {"context", Launcher::kubernetes}}};

Launcher launcher_from(const json& word) {
  return from_word<Launcher>(word.get<std::string>()).value_or(Launcher::local);  // the schema allows no other word
}

JumpHost jump_from(const json& entry) {
  return {.address = entry.at("address"),
          .port = entry.value("port", 22),
          .user = entry.value("user", ""),
          .identity_file = entry.value("identity_file", ""),
          .host_key = entry.value("host_key", "")};
}

/// Parts by number, or by name.
void take_parts(const json& given, Node& node) {
  for (const auto& [kind, of_kind] : given.items()) {
    if (of_kind.is_array()) node.part_names[kind] = of_kind;
    node.parts[kind] = of_kind.is_array() ? static_cast<int>(of_kind.size()) : of_kind.get<int>();
  }
}

Node node_from(const json& entry) {
  Node node{.name = entry.at("name"),
            .launcher = launcher_from(entry.at("launcher")),
            .address = entry.value("address", ""),
            .port = entry.value("port", 22),
            .user = entry.value("user", ""),
            .identity_file = entry.value("identity_file", ""),
            .host_key = entry.value("host_key", ""),
            .directory = entry.value("directory", kDefaultDirectory),
            .machine = entry.value("machine", ""),
            .rack = entry.value("rack", ""),
            .leaf = entry.value("leaf", ""),
            .rendezvous = entry.value("rendezvous", ""),
            .pod = entry.value("pod", ""),
            .kube_namespace = entry.value("namespace", ""),
            .container = entry.value("container", ""),
            .context = entry.value("context", "")};
  take_parts(entry.value("parts", json::object()), node);
  if (entry.contains("jump")) node.jump = jump_from(entry.at("jump"));
  if (node.address.empty()) node.address = node.name;
  if (node.rendezvous.empty()) node.rendezvous = node.launcher == Launcher::local ? "127.0.0.1" : node.address;
  if (node.pod.empty() && node.launcher == Launcher::kubernetes) node.pod = node.name;
  return node;
}

SlurmOptions slurm_from(const json& entry) {
  return {.partition = entry.value("partition", ""),
          .account = entry.value("account", ""),
          .qos = entry.value("qos", ""),
          .reservation = entry.value("reservation", ""),
          .constraint = entry.value("constraint", ""),
          .time = entry.value("time", ""),
          .gres = entry.value("gres", ""),
          .gpus_per_node = entry.value("gpus_per_node", 0),
          .agent = entry.value("agent", ""),
          .bcast_directory = entry.value("bcast_directory", kBcastDirectory),
          .address = entry.value("address", ""),
          .port = entry.value("port", 0),
          .wait = {entry.value("wait_s", kSlurmWait.count)}};
}

json to_json(const SlurmOptions& slurm) {
  return {{"partition", slurm.partition},
          {"account", slurm.account},
          {"qos", slurm.qos},
          {"reservation", slurm.reservation},
          {"constraint", slurm.constraint},
          {"time", slurm.time},
          {"gres", slurm.gres},
          {"gpus_per_node", slurm.gpus_per_node},
          {"agent", slurm.agent},
          {"bcast_directory", slurm.bcast_directory},
          {"address", slurm.address},
          {"port", slurm.port},
          {"wait_s", slurm.wait.count}};
}

/// The machine of an entry, as far as the entry identifies it.
std::string machine_of(const Node& node) {
  switch (node.launcher) {
    case Launcher::local:
      return "this machine";
    case Launcher::slurm:
      return fmt::format("Slurm node {}", node.name);
    case Launcher::kubernetes:
      return fmt::format("pod {} of namespace '{}' of context '{}'", node.pod, node.kube_namespace, node.context);
    default:
      return fmt::format("{} port {}{}", node.address, node.port, node.jump ? " behind " + node.jump->address : "");
  }
}

/// Adds the addresses of the node's ports to `taken`, with their owners; an error when another port has one of them.
std::optional<InputError> take_addresses(const Node& node, const std::string& here,
                                         std::map<std::string, std::string>& taken) {
  for (const auto& [plane, ports] : node.planes) {
    for (std::size_t i = 0; i < ports.size(); ++i) {
      if (ports[i].address.empty()) continue;
      const auto [first, fresh] = taken.emplace(ports[i].address, fmt::format("node {}, plane {}", node.name, plane));
      if (!fresh)
        return InputError{fmt::format("{}.planes.{}[{}].address", here, plane, i),
                          fmt::format("'{}' is already the address of {}", ports[i].address, first->second),
                          "every port has an address of its own"};
    }
  }
  return std::nullopt;
}

/// Errors of an entry that the schema cannot find.
std::optional<InputError> check_node(const json& entry, const Node& node, const std::string& here) {
  for (const auto& [field, launcher] : kFieldsOf) {
    if (!entry.contains(field) || node.launcher == launcher) continue;
    // A document that assay wrote has these of a local node too, with their defaults.
    if (node.launcher == Launcher::local && launcher == Launcher::ssh && !node.jump) continue;
    return InputError{fmt::format("{}.{}", here, field), fmt::format("is not a field of launcher {}", node.launcher),
                      fmt::format("it belongs to nodes of launcher {}", launcher)};
  }
  if (node.directory.find("..") != std::string::npos) {
    return InputError{here + ".directory", fmt::format("'{}' has a '..'", node.directory), "write the path without it"};
  }
  return std::nullopt;
}

/// One srun copies one agent to all of its nodes.
std::optional<InputError> check_slurm_machines(const Site& site, const std::string& where) {
  const Node* first = nullptr;
  for (std::size_t i = 0; i < site.nodes.size(); ++i) {
    const Node& node = site.nodes[i];
    if (node.launcher != Launcher::slurm) continue;
    if (first == nullptr) first = &node;
    if (node.machine == first->machine) continue;
    const auto named = [](const Node& one) { return one.machine.empty() ? "no machine" : one.machine; };
    return InputError{fmt::format("{}: nodes[{}].machine", where, i),
                      fmt::format("{} has {} and {} has {}, and both are of launcher slurm", node.name, named(node),
                                  first->name, named(*first)),
                      "srun starts the same agent on all nodes: write a site for each kind, or use launcher ssh"};
  }
  return std::nullopt;
}

}  // namespace

std::string own_machine() {
  utsname name{};
  return ::uname(&name) == 0 ? name.machine : "";
}

const Node* Site::node(std::string_view node_name) const {
  // Most sites have their nodes in the order of their numbers, with or without leading zeros. Of a fleet each is looked
  // up many times, so that place is tried first.
  const auto order = [](std::string_view one) { return std::pair(one.size(), one); };
  std::size_t place = 0;
  for (std::size_t left = nodes.size(); left > 0;) {
    const std::size_t half = left / 2;
    const bool later = order(nodes[place + half].name) < order(node_name);
    if (later) place += half + 1;
    left = later ? left - half - 1 : half;
  }
  if (place < nodes.size() && nodes[place].name == node_name) return &nodes[place];
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
              .nodes = {Node{.name = name,
                             .launcher = Launcher::local,
                             .address = name,
                             .directory = default_directory(),
                             .rendezvous = "127.0.0.1"}}};
}

std::expected<Site, InputError> read_site(std::string_view text, const std::string& where) {
  const auto document = parse_json(text, where);
  if (!document) return std::unexpected(document.error());
  if (auto problem = profiles::check_schema(*document, "site.schema", where)) return std::unexpected(*problem);
  Site site{.name = document->at("name"),
            .known_hosts = document->value("known_hosts", ""),
            .slurm = slurm_from(document->value("slurm", json::object()))};
  if (const auto spines = document->find("spines"); spines != document->end()) site.spines = *spines;
  if (const auto load = document->find("load_test"); load != document->end())
    site.load_test = LoadTest{.consent = load->at("consent"), .limit_w = load->at("limit_w")};
  if (document->contains("power_cap_w")) site.power_cap_w = document->at("power_cap_w").get<double>();
  std::set<std::string> names;
  std::set<std::string> machines;
  std::map<std::string, std::string> addresses;
  for (std::size_t i = 0; i < document->at("nodes").size(); ++i) {
    site.nodes.push_back(node_from(document->at("nodes")[i]));
    const Node& node = site.nodes.back();
    const std::string here = fmt::format("{}: nodes[{}]", where, i);
    if (!names.insert(node.name).second) {
      return std::unexpected(
          InputError{here + ".name", fmt::format("'{}' appears twice", node.name), "every node has a name of its own"});
    }
    const std::string machine = machine_of(node);
    if (!machines.insert(machine).second) {
      return std::unexpected(InputError{here, fmt::format("{} appears twice, under two names", machine),
                                        "list each machine once: measured twice it would count as two"});
    }
    if (auto problem = check_node(document->at("nodes")[i], node, here)) return std::unexpected(std::move(*problem));
    auto planes = planes_from(document->at("nodes")[i].value("planes", json::object()), here);
    if (!planes) return std::unexpected(planes.error());
    site.nodes.back().planes = std::move(*planes);
    if (auto problem = take_addresses(node, here, addresses)) return std::unexpected(std::move(*problem));
  }
  if (auto problem = check_slurm_machines(site, where)) return std::unexpected(std::move(*problem));
  if (const auto list = document->find("meters"); list != document->end()) {
    auto meters = meters_from(*list, fmt::format("{}: meters", where), {names.begin(), names.end()});
    if (!meters) return std::unexpected(meters.error());
    site.meters = std::move(*meters);
  }
  if (const auto list = document->find("switches"); list != document->end()) {
    auto switches = switches_from(*list, fmt::format("{}: switches", where));
    if (!switches) return std::unexpected(switches.error());
    site.switches = std::move(*switches);
  }
  if (const auto given = document->find("crossings"); given != document->end()) {
    auto crossings = crossings_from(*given, fmt::format("{}: crossings", where), {names.begin(), names.end()});
    if (!crossings) return std::unexpected(crossings.error());
    site.crossings = std::move(*crossings);
  }
  return site;
}

json to_json(const Site& site) {
  json nodes = json::array();
  bool by_slurm = false;
  for (const auto& node : site.nodes) {
    json entry = {{"name", node.name},
                  {"launcher", word_of(node.launcher)},
                  {"address", node.address},
                  {"directory", node.directory},
                  {"rack", node.rack},
                  {"leaf", node.leaf},
                  {"rendezvous", node.rendezvous}};
    if (node.launcher == Launcher::ssh || node.launcher == Launcher::local) {
      entry.update({{"port", node.port},
                    {"user", node.user},
                    {"identity_file", node.identity_file},
                    {"host_key", node.host_key}});
    }
    if (!node.machine.empty()) entry["machine"] = node.machine;
    if (!node.planes.empty()) entry["planes"] = to_json(node.planes);
    if (!node.parts.empty()) entry["parts"] = node.parts;
    for (const auto& [kind, names] : node.part_names) entry["parts"][kind] = names;
    if (node.jump) {
      entry["jump"] = {{"address", node.jump->address},
                       {"port", node.jump->port},
                       {"user", node.jump->user},
                       {"identity_file", node.jump->identity_file},
                       {"host_key", node.jump->host_key}};
    }
    if (node.launcher == Launcher::kubernetes) {
      entry.update({{"pod", node.pod},
                    {"namespace", node.kube_namespace},
                    {"container", node.container},
                    {"context", node.context}});
    }
    by_slurm = by_slurm || node.launcher == Launcher::slurm;
    nodes.push_back(std::move(entry));
  }
  json document = {
      {"schema", kSchema}, {"name", site.name}, {"known_hosts", site.known_hosts}, {"nodes", std::move(nodes)}};
  // Of nodes that are reached otherwise they are the options of worker jobs: `assay sweep --slurm`.
  const json slurm = to_json(site.slurm);
  const bool given = slurm != to_json(slurm_from(json::object())) && slurm != to_json(SlurmOptions{});
  if (by_slurm || given) document["slurm"] = slurm;
  if (!site.spines.empty()) document["spines"] = site.spines;
  if (site.load_test)
    document["load_test"] = {{"consent", site.load_test->consent}, {"limit_w", site.load_test->limit_w}};
  if (site.power_cap_w) document["power_cap_w"] = *site.power_cap_w;
  if (!site.meters.empty()) document["meters"] = assay::to_json(site.meters);
  if (!site.switches.empty()) document["switches"] = assay::to_json(site.switches);
  if (site.crossings) document["crossings"] = to_json(*site.crossings);
  return document;
}

}  // namespace assay::site
