// sources: strict readers of other tools' lists. Text that cannot be read is an error with its line.
#include "orchestrator/site/sources.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include <fmt/ranges.h>

#include "orchestrator/site/slurm_nodes.h"
#include "probes/core/text.h"
#include "probes/core/whole_number.h"

namespace assay::site {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kMostNodes = 100'000;  // as the schema of a site

std::unexpected<InputError> wrong(const std::string& where, std::size_t line, std::string what, std::string hint) {
  return std::unexpected(InputError{fmt::format("{}: line {}", where, line), std::move(what), std::move(hint)});
}

std::vector<std::string> words_in(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(std::move(word));
  return words;
}

/// The document around `nodes`.
ordered_json site_of(const SourceOptions& options, ordered_json nodes) {
  ordered_json site = {{"schema", "assay.site/1"}, {"name", options.name}};
  if (!options.known_hosts.empty()) site["known_hosts"] = options.known_hosts;
  site["nodes"] = std::move(nodes);
  return site;
}

/// Adds "01-03" of a bracket, or "01:03" as Ansible writes it, to `tails`, keeping leading zeros. False when it is not
/// a range.
bool add_range(std::string_view part, std::vector<std::string>& tails) {
  const auto dash = part.find_first_of("-:");
  const std::string_view first = part.substr(0, dash);
  const std::string_view last = dash == std::string_view::npos ? first : part.substr(dash + 1);
  const auto begin = whole_number<std::uint64_t>(first), end = whole_number<std::uint64_t>(last);
  if (!begin || !end || *begin > *end || *end - *begin >= kMostNodes) return false;
  for (auto number = *begin; number <= *end; ++number) tails.push_back(fmt::format("{:0{}}", number, first.size()));
  return true;
}

/// The parts of a text between commas outside of brackets and parentheses; at least one.
std::vector<std::string_view> split(std::string_view list) {
  std::vector<std::string_view> parts;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= list.size(); ++i) {
    const char c = i < list.size() ? list[i] : ',';
    depth += c == '[' || c == '(' ? 1 : c == ']' || c == ')' ? -1 : 0;
    if (c != ',' || (depth > 0 && i < list.size())) continue;
    parts.push_back(list.substr(begin, i - begin));
    begin = i + 1;
  }
  return parts;
}

/// One element of a list: "n[01-03]", "rack[0-1]_blade[0-1]" or "n01". The last bracket runs fastest, as in Slurm.
std::expected<std::vector<std::string>, std::string> expand_one(std::string_view item) {
  std::vector<std::string> names = {""};
  for (std::string_view rest = item; !rest.empty();) {
    const auto open = rest.find_first_of("[]");
    for (auto& name : names) name += rest.substr(0, open);
    if (open == std::string_view::npos) break;
    const auto close = rest.find_first_of("[]", open + 1);
    if (rest[open] == ']' || close == std::string_view::npos || rest[close] == '[')
      return std::unexpected(fmt::format("'{}' has an unclosed bracket", printable(item)));
    std::vector<std::string> tails;
    for (const auto part : split(rest.substr(open + 1, close - open - 1))) {
      if (!add_range(part, tails))
        return std::unexpected(fmt::format("'{}' in '{}' is not a range of numbers", printable(part), printable(item)));
    }
    if (names.size() * tails.size() > kMostNodes) return std::unexpected(fmt::format("more than {} hosts", kMostNodes));
    std::vector<std::string> longer;
    for (const auto& name : names) {
      for (const auto& tail : tails) longer.push_back(name + tail);
    }
    names = std::move(longer);
    rest.remove_prefix(close + 1);
  }
  return names;
}

/// All GPUs of a node as srun asks for them, from its Gres: "gpu:h200:8" of one type, "gpu:4" of several or of a type
/// whose name a site cannot have; empty: none.
std::string gpus_of(std::string_view gres) {
  const std::string kGpu = "gpu";
  std::uint64_t count = 0;
  std::set<std::string> types;
  for (std::string_view part : split(gres)) {
    part = part.substr(0, part.find('('));  // sockets: "(S:0-1)"
    if (part != kGpu && !part.starts_with(kGpu + ":")) continue;
    part.remove_prefix(kGpu.size());
    const auto last = part.rfind(':');
    const auto number =
        last == std::string_view::npos ? std::nullopt : whole_number<std::uint64_t>(part.substr(last + 1));
    count += number.value_or(1);  // without a number it is one
    if (number) part = part.substr(0, last);
    types.emplace(part.substr(std::min<std::size_t>(1, part.size())));
  }
  if (count == 0) return "";
  const std::string& type = *types.begin();
  const bool one = types.size() == 1 && !type.empty() && has_only(type, "_.-");
  return one ? fmt::format("gpu:{}:{}", type, count) : fmt::format("gpu:{}", count);
}

constexpr const char* kHostHint =
    "a line is HOST, USER@HOST or HOST:SLOTS, or such a list with commas, optionally followed by slots=N and "
    "address=A; ports and keys of ssh are read from an ssh configuration, with --from ssh-config";

/// A line's options for its hosts.
struct HostLine {
  std::string user, address;
  std::uint64_t port = 0;
  std::size_t line = 0;
};

/// Whether it is written as an IPv6 address, which no name of a node is.
bool is_ipv6(std::string_view text) {
  return std::ranges::count(text, ':') > (text.starts_with('[') ? 0 : 1) &&
         std::ranges::all_of(text.substr(0, text.find('%')), [](unsigned char c) {
           return std::isxdigit(c) != 0 || std::string_view("[]:.").contains(static_cast<char>(c));
         });
}

/// Takes a word after the host of a line: its address, user and port, also as Ansible calls them; slots are ignored.
std::optional<InputError> take_host_option(const std::string& word, HostLine& of) {
  constexpr std::array kSlots = {"slots", "max_slots", "max-slots", "cpu", "count"};
  const auto equals = word.find('=');
  std::string key = word.substr(0, equals);
  const std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
  const bool slots = std::ranges::find(kSlots, key) != kSlots.end();
  if (slots && whole_number<std::uint64_t>(value)) return std::nullopt;
  for (const char* prefix : {"ansible_ssh_", "ansible_"}) {
    if (key.starts_with(prefix)) key = key.substr(std::string_view(prefix).size());
  }
  if (key == "host") key = "address";
  if (key == "address" && value.contains('%'))
    return InputError{"", fmt::format("'{}' is a link-local address", printable(value)),
                      "it is only known together with an interface of this machine: write a name or a global address"};
  if (key == "address") of.address = value;
  if (key == "user") of.user = value;
  if (key == "port") of.port = whole_number<std::uint64_t>(value).value_or(0);
  const bool named = key == "address" || key == "user" || key == "port";
  // The site's reader checks the characters.
  if (named && (key == "port" ? of.port > 0 : !value.empty())) return std::nullopt;
  std::string hint = kHostHint;
  if (whole_number<std::uint64_t>(word)) hint = fmt::format("if it is a number of slots, write slots={}", word);
  if (equals == std::string::npos && word.find_first_of(".:") != std::string::npos)
    hint = fmt::format("if that is its address, write address={}", word);
  const char* const what = named || slots ? "has no such value" : "is not a known option";
  return InputError{"", fmt::format("'{}' {}", printable(word), what), hint};
}

using Hosts = std::vector<std::pair<std::string, HostLine>>;

/// The hosts of one element of a line, "bench@n[01-04]:8".
std::expected<Hosts, InputError> hosts_of(std::string_view item, HostLine of) {
  if (const auto at = item.find('@'); at != std::string_view::npos) {
    of.user = item.substr(0, at);
    item.remove_prefix(at + 1);
  }
  if (is_ipv6(item))
    return std::unexpected(InputError{"", fmt::format("'{}' is an address and no name", printable(item)),
                                      fmt::format("write NAME address={}", item)});
  const auto colon = item.rfind(':');
  if (colon != std::string_view::npos && whole_number<std::uint64_t>(item.substr(colon + 1)))
    item = item.substr(0, colon);
  const auto names = expand_host_list(item);
  if (!names) return std::unexpected(InputError{"", names.error(), kHostHint});
  Hosts hosts;
  for (const auto& name : *names) hosts.emplace_back(name, of);
  return hosts;
}

/// The hosts of a line of a host file: those of all its elements.
std::expected<Hosts, InputError> hosts_in(std::vector<std::string> words, HostLine of) {
  if (words.front().starts_with('[') && !is_ipv6(words.front()))
    return std::unexpected(
        InputError{"", fmt::format("'{}' is no host", printable(words.front())),
                   "write the hosts of an Ansible inventory only: `ansible all --list-hosts` prints them"});
  // A line of the Grid Engine: "n01 8 all.q@n01 UNDEFINED".
  if (words.size() == 4 && whole_number<std::uint64_t>(words[1]) && words[2].contains('@')) words.resize(1);
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (auto problem = take_host_option(words[i], of)) return std::unexpected(std::move(*problem));
  }
  Hosts all;
  for (const auto item : split(words.front())) {
    auto hosts = hosts_of(item, of);
    if (!hosts) return hosts;
    all.insert(all.end(), hosts->begin(), hosts->end());
  }
  if (!of.address.empty() && all.size() != 1)
    return std::unexpected(InputError{"", fmt::format("gives {} hosts one address", all.size()), kHostHint});
  return all;
}

/// Whether the line is a heading of an Ansible inventory, under which hosts follow: "[gpu]".
bool is_heading(const std::vector<std::string>& words) {
  const std::string& word = words.front();
  return words.size() == 1 && word.size() > 2 && word.starts_with('[') && word.find(']') == word.size() - 1 &&
         has_only(word.substr(1, word.size() - 2), "._-");
}

}  // namespace

std::expected<std::vector<std::string>, std::string> expand_host_list(std::string_view list) {
  std::vector<std::string> all;
  for (const auto item : split(list)) {
    const auto names = expand_one(item);
    if (!names) return std::unexpected(names.error());
    for (const auto& name : *names) {
      if (!is_node_name(name)) return std::unexpected(fmt::format("'{}' is not a host name", printable(name)));
      all.push_back(name);
    }
    if (all.size() > kMostNodes) return std::unexpected(fmt::format("more than {} hosts", kMostNodes));
  }
  return all;
}

std::expected<std::string_view, InputError> plain_text(std::string_view text, const std::string& where) {
  constexpr std::string_view kUtf8Mark = "\xEF\xBB\xBF";
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF"))
    return std::unexpected(InputError{where, "is UTF-16", "save it as UTF-8, without a byte order mark"});
  if (text.starts_with(kUtf8Mark)) text.remove_prefix(kUtf8Mark.size());
  return text;
}

std::expected<ordered_json, InputError> site_from_hostfile(std::string_view text, const std::string& where,
                                                           const SourceOptions& options) {
  const auto plain = plain_text(text, where);
  if (!plain) return std::unexpected(plain.error());
  ordered_json nodes = ordered_json::array();
  std::map<std::string, HostLine> seen;
  std::istringstream lines{std::string(*plain)};
  std::string line;
  for (std::size_t number = 1; std::getline(lines, line); ++number) {
    const auto words = words_in(line.substr(0, line.find('#')));
    if (words.empty() || is_heading(words)) continue;
    const auto hosts = hosts_in(words, {.line = number});
    if (!hosts) return wrong(where, number, hosts.error().what, hosts.error().hint);
    for (const auto& [name, of] : *hosts) {
      const auto [earlier, fresh] = seen.emplace(name, of);
      const HostLine& other = earlier->second;
      if (!fresh && other.user == of.user && other.address == of.address && other.port == of.port) continue;
      if (!fresh)
        return wrong(where, number,
                     fmt::format("'{}' is already in line {}, with another address or user", name, other.line),
                     "list each machine once; a machine that is named again in the same way is taken once");
      nodes.push_back({{"name", name}, {"launcher", "ssh"}});
      if (!of.address.empty()) nodes.back()["address"] = of.address;
      if (!of.user.empty()) nodes.back()["user"] = of.user;
      if (of.port > 0) nodes.back()["port"] = of.port;
    }
  }
  if (nodes.empty()) return std::unexpected(InputError{where, "contains no host", kHostHint});
  return site_of(options, std::move(nodes));
}

std::expected<ordered_json, InputError> site_from_scontrol(std::string_view text, const std::string& where,
                                                           const SourceOptions& options) {
  const auto read = read_slurm_nodes(text, where);
  if (!read) return std::unexpected(read.error());
  ordered_json nodes = ordered_json::array();
  std::map<std::string, std::string> gres;  // the GPUs of a node, and the first node that has them
  for (const auto& one : *read) {
    const auto value = [&](const char* field) {
      const auto found = one.fields.find(field);
      return found == one.fields.end() ? "" : found->second;
    };
    const std::string partitions = "," + value("Partitions") + ",";
    if (!options.partition.empty() && !partitions.contains("," + options.partition + ",")) continue;
    ordered_json node = {{"name", one.name}, {"launcher", "slurm"}};
    if (const std::string address = value("NodeAddr"); !address.empty() && address != one.name)
      node["address"] = address;
    nodes.push_back(std::move(node));
    gres.emplace(gpus_of(value("Gres")), one.name);
  }
  if (nodes.empty()) {
    return std::unexpected(InputError{where,
                                      options.partition.empty()
                                          ? "contains no node"
                                          : fmt::format("has no node in partition '{}'", printable(options.partition)),
                                      "`sinfo` lists partitions and nodes"});
  }
  ordered_json slurm = ordered_json::object();
  if (!options.partition.empty()) slurm["partition"] = options.partition;
  if (gres.size() == 1 && !gres.begin()->first.empty()) slurm["gres"] = gres.begin()->first;
  if (gres.size() > 1 && options.notes != nullptr) {
    std::vector<std::string> kinds;
    for (const auto& [gpus, node] : gres) kinds.push_back(fmt::format("{} has {}", node, gpus.empty() ? "none" : gpus));
    options.notes->push_back(
        fmt::format("slurm.gres is left out, a step will get no GPU: the nodes differ in their GPUs ({}); "
                    "choose those of one kind with --partition, or write a site for each kind",
                    printable(fmt::format("{}", fmt::join(kinds, ", ")))));
  }
  ordered_json site = site_of(options, std::move(nodes));
  if (!slurm.empty()) site["slurm"] = std::move(slurm);
  return site;
}

std::expected<ordered_json, InputError> site_from_pods(std::string_view text, const std::string& where,
                                                       const SourceOptions& options) {
  const auto document = parse_json(text, where, {.max_values = kMostValuesOfRun});
  if (!document) return std::unexpected(document.error());
  const auto text_at = [](const nlohmann::json& object, const char* pointer) {
    const nlohmann::json::json_pointer at(pointer);
    return object.contains(at) && object.at(at).is_string() ? object.at(at).get<std::string>() : std::string();
  };
  if (!document->is_object() || !document->contains("items") || !document->at("items").is_array()) {
    return std::unexpected(
        InputError{where, "is not a list of pods", "pass the output of `kubectl get pods --output=json`"});
  }
  ordered_json nodes = ordered_json::array();
  std::map<std::string, std::size_t> seen;
  for (std::size_t i = 0; i < document->at("items").size(); ++i) {
    const auto& pod = document->at("items")[i];
    const std::string here = fmt::format("{}: items[{}]", where, i);
    const bool leaving = !text_at(pod, "/metadata/deletionTimestamp").empty();
    const std::string node = text_at(pod, "/spec/nodeName"),
                      phase = leaving ? "Terminating" : text_at(pod, "/status/phase"),
                      name = text_at(pod, "/metadata/name");
    if (phase != "Running")
      return std::unexpected(
          InputError{here, fmt::format("pod '{}' is '{}' instead of running", printable(name), printable(phase)),
                     "wait for it, or delete it"});
    if (!is_node_name(node))
      return std::unexpected(
          InputError{here + ".spec.nodeName", fmt::format("'{}' is not a node name", printable(node)), ""});
    const auto [earlier, fresh] = seen.emplace(node, i);
    if (!fresh) {
      return std::unexpected(InputError{here, fmt::format("runs on '{}', as does items[{}]", node, earlier->second),
                                        "a DaemonSet, or a Job of ours, has one agent pod on each node"});
    }
    ordered_json entry = {
        {"name", node}, {"launcher", "kubernetes"}, {"pod", name}, {"namespace", text_at(pod, "/metadata/namespace")}};
    if (const auto address = text_at(pod, "/status/podIP"); !address.empty()) entry["address"] = address;
    if (const auto container = text_at(pod, "/spec/containers/0/name"); !container.empty())
      entry["container"] = container;
    nodes.push_back(std::move(entry));
  }
  if (nodes.empty())
    return std::unexpected(
        InputError{where, "contains no pod", "`assay site manifest` writes a manifest of agent pods"});
  std::ranges::sort(nodes.get_ref<ordered_json::array_t&>(), {},
                    [](const ordered_json& node) { return node.at("name").get<std::string>(); });
  return site_of(options, std::move(nodes));
}

}  // namespace assay::site
