// ibnetdiscover: a strict reader of ibnetdiscover's topology file.
#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include <fmt/format.h>

#include "orchestrator/site/sources.h"
#include "orchestrator/site/topology.h"
#include "probes/core/text.h"

namespace assay::site {
namespace {

constexpr const char* kHint = "pass the output of `ibnetdiscover` without options, unchanged";

/// A switch, host adapter or router.
struct Element {
  std::string description;
  std::size_t ports = 0, line = 0;
};

/// One link, as one of its ends lists it.
struct Link {
  std::string from, to;
  std::string from_port, to_port;
  std::size_t line = 0;
  bool aggregates = false;  ///< to the aggregation node within a switch (SHARP), which some files list nowhere else
};

struct Fabric {
  std::map<std::string, Element> elements;  ///< by "S-…", "H-…" or "R-…"
  std::vector<Link> links;
  std::vector<std::string> warnings;  ///< of the tool, with their lines
};

/// Reads a line from left to right.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : rest_(text) {}

  bool take(char c) {
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void blanks() {
    while (!rest_.empty() && (rest_.front() == ' ' || rest_.front() == '\t')) rest_.remove_prefix(1);
  }
  /// The text between `open` and `close`; nothing when the line does not continue with it.
  std::optional<std::string> between(char open, char close) {
    const auto end = rest_.find(close, 1);
    if (!rest_.starts_with(open) || end == std::string_view::npos) return std::nullopt;
    std::string inside(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    return inside;
  }
  std::optional<std::string> number() {
    std::string digits;
    while (!rest_.empty() && std::isdigit(static_cast<unsigned char>(rest_.front())) != 0) {
      digits += rest_.front();
      rest_.remove_prefix(1);
    }
    return digits.empty() || digits.size() > 4 ? std::nullopt : std::optional(digits);
  }
  void skip(std::size_t count) { rest_.remove_prefix(std::min(count, rest_.size())); }

 private:
  std::string_view rest_;
};

bool is_identity(const std::string& text) {
  return text.size() > 2 && (text.starts_with("S-") || text.starts_with("H-") || text.starts_with("R-")) &&
         std::ranges::all_of(text.substr(2), [](unsigned char c) { return std::isxdigit(c) != 0; });
}

/// 'Switch 36 "S-…" # "description" …'
bool read_element(const std::string& line, std::size_t number, std::string& current, Fabric& fabric) {
  const auto word = line.find_first_of(" \t");
  Cursor cursor(line);
  cursor.skip(word);
  cursor.blanks();
  const auto ports = cursor.number();
  cursor.blanks();
  const auto identity = cursor.between('"', '"');
  cursor.blanks();
  if (!ports || !identity || !is_identity(*identity) || !cursor.take('#')) return false;
  cursor.blanks();
  const auto description = cursor.between('"', '"');
  if (!description) return false;
  current = *identity;
  return fabric.elements
      .emplace(current, Element{.description = *description, .ports = std::stoul(*ports), .line = number})
      .second;
}

/// '[1](guid) "S-…"[17](guid) # …'
bool read_link(const std::string& line, std::size_t number, const std::string& current, Fabric& fabric) {
  Cursor cursor(line);
  const auto port = cursor.between('[', ']');
  (void)cursor.between('[', ']');  // of a switch in a chassis, its external port
  (void)cursor.between('(', ')');  // a host's port GUID
  cursor.blanks();
  const auto identity = cursor.between('"', '"');
  const auto other = cursor.between('[', ']');
  if (current.empty() || !port || !Cursor(*port).number() || !identity || !is_identity(*identity) || !other ||
      !Cursor(*other).number())
    return false;
  fabric.links.push_back({.from = current,
                          .to = *identity,
                          .from_port = *port,
                          .to_port = *other,
                          .line = number,
                          .aggregates = line.contains("Aggregation Node\"")});
  return true;
}

/// A message of the libraries of infiniband-diags to the terminal: "ibwarn: [6931] …", "/build/…/ibnetdisc.c:813; …".
bool is_warning(std::string_view line) {
  if (line.starts_with("ibwarn: ")) return true;
  const auto source = line.find(".c:");
  if (source == std::string_view::npos || line.find_first_of(" \t\"") < source) return false;
  const auto rest = line.find_first_not_of("0123456789", source + 3);
  return rest != source + 3 && rest != std::string_view::npos && line[rest] == ';';
}

std::expected<Fabric, InputError> read_fabric(std::string_view text, const std::string& where) {
  constexpr std::array kIgnored = {
      "vendid=", "devid=", "sysimgguid=", "switchguid=", "caguid=", "rtguid=", "Non-Chassis Nodes", "Chassis "};
  Fabric fabric;
  const auto plain = plain_text(text, where);
  if (!plain) return std::unexpected(plain.error());
  std::string current, line;
  std::istringstream lines{std::string(*plain)};
  for (std::size_t number = 1; std::getline(lines, line); ++number) {
    while (!line.empty() && std::isspace(static_cast<unsigned char>(line.back())) != 0) line.pop_back();
    if (line.empty() || line.starts_with('#')) continue;
    if (is_warning(line)) {
      fabric.warnings.push_back(
          fmt::format("{}: line {} is a warning, of a part that may be missing: {}", where, number, printable(line)));
      continue;
    }
    if (std::ranges::any_of(kIgnored, [&](const char* head) { return line.starts_with(head); })) continue;
    const bool element = line.starts_with("Switch") || line.starts_with("Ca") || line.starts_with("Rt");
    if (element ? read_element(line, number, current, fabric) : read_link(line, number, current, fabric)) continue;
    return std::unexpected(
        InputError{fmt::format("{}: line {}", where, number),
                   fmt::format("'{}' cannot be read, or appears twice", printable(line.substr(0, 80))), kHint});
  }
  for (const auto& link : fabric.links) {
    if (link.aggregates || fabric.elements.contains(link.to)) continue;
    return std::unexpected(InputError{fmt::format("{}: line {}", where, link.line),
                                      fmt::format("links to {}, which is not in the file", link.to),
                                      "the file may be truncated"});
  }
  if (fabric.links.empty()) return std::unexpected(InputError{where, "contains no link", kHint});
  return fabric;
}

/// "MF0;leaf1:MQM9700/U1" as leaf1; characters that a name in a site cannot have become underscores.
std::string plain_name(std::string name) {
  const auto semicolon = name.find(';');
  if (const auto colon = name.find(':');
      semicolon != std::string::npos && colon != std::string::npos && semicolon < colon)
    name = name.substr(semicolon + 1, colon - semicolon - 1);
  constexpr std::size_t kLongest = 63;
  std::ranges::replace_if(
      name, [](unsigned char c) { return std::isalnum(c) == 0 && c != '.' && c != '-' && c != '_' && c != ' '; }, '_');
  return name.substr(0, kLongest);
}

/// Names of all switches by identity; the identity itself where two would have the same.
std::map<std::string, std::string> switch_names(const Fabric& fabric) {
  std::map<std::string, int> uses;
  for (const auto& [identity, element] : fabric.elements) {
    if (identity.starts_with("S-")) ++uses[plain_name(element.description)];
  }
  std::map<std::string, std::string> names;
  for (const auto& [identity, element] : fabric.elements) {
    if (!identity.starts_with("S-")) continue;
    const std::string name = plain_name(element.description);
    names[identity] = name.empty() || uses[name] > 1 ? identity : name;
  }
  return names;
}

bool is_device(const std::string& text) {
  return !text.empty() && !text.starts_with("HCA-") && std::ranges::all_of(text, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.';
  });
}

/// The host that a description begins with.
std::string host_of(const Element& adapter) { return adapter.description.substr(0, adapter.description.find(' ')); }

/// The site's node that a description begins with, with its domain or without; nullptr for an unknown host.
const Node* node_in(const Site& site, const std::string& host) {
  const Node* const node = site.node(host);
  return node != nullptr ? node : site.node(host.substr(0, host.find('.')));
}

}  // namespace

std::expected<Topology, InputError> topology_from_ibnetdiscover(std::string_view text, const std::string& where,
                                                                const Site& site) {
  const auto fabric = read_fabric(text, where);
  if (!fabric) return std::unexpected(fabric.error());
  const auto names = switch_names(*fabric);
  Topology topology{.by_device = true, .notes = fabric->warnings};
  std::set<std::string> leaves, unknown_hosts;
  std::map<std::string, int> cables;  // of each host
  for (const auto& link : fabric->links) {
    if (link.from.starts_with("H-")) ++cables[host_of(fabric->elements.at(link.from))];
  }
  for (const auto& link : fabric->links) {
    if (!link.from.starts_with("H-") || !link.to.starts_with("S-")) continue;
    const Element& adapter = fabric->elements.at(link.from);
    const std::string host = host_of(adapter);
    const Node* const node = node_in(site, host);
    if (node == nullptr) {
      unknown_hosts.insert(printable(adapter.description));
      continue;
    }
    leaves.insert(link.to);
    std::string device = host.size() < adapter.description.size() ? adapter.description.substr(host.size() + 1) : "";
    if (!is_device(device)) {
      if (cables.at(host) > 1)
        return std::unexpected(InputError{
            fmt::format("{}: line {}", where, adapter.line),
            fmt::format("'{}' names no RDMA device, and {} has {} cables", printable(adapter.description), node->name,
                        cables.at(host)),
            "rdma-ndd sets the description to the names of host and device; start it on the nodes, or remove the host "
            "from the site"});
      device.clear();
    } else if (adapter.ports > 1) {
      device += "/" + link.from_port;
    }
    topology.cables.push_back({.node = node->name,
                               .port = device,
                               .leaf = names.at(link.to),
                               .switch_port = link.to_port,
                               .where = fmt::format("{}: line {}", where, link.line)});
  }
  for (const auto& link : fabric->links) {
    if (leaves.contains(link.from) && link.to.starts_with("S-"))
      topology.spines[names.at(link.from)].push_back(names.at(link.to));
  }
  for (auto& [leaf, spines] : topology.spines) {
    std::ranges::sort(spines);
    spines.erase(std::unique(spines.begin(), spines.end()), spines.end());
  }
  for (const auto& stranger : unknown_hosts)
    topology.notes.push_back(fmt::format("'{}' is in the fabric, but not in the site", stranger));
  return topology;
}

}  // namespace assay::site
