// sources: strict readers of other tools' lists. Text that cannot be read is an error with its line.
#include "orchestrator/site/sources.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include <fmt/format.h>

#include "probes/core/text.h"

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

std::optional<std::uint64_t> number_in(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// The document around `nodes`.
ordered_json site_of(const SourceOptions& options, ordered_json nodes) {
  ordered_json site = {{"schema", "assay.site/1"}, {"name", options.name}};
  if (!options.known_hosts.empty()) site["known_hosts"] = options.known_hosts;
  site["nodes"] = std::move(nodes);
  return site;
}

/// Adds "01-03" of a bracket to `tails`, keeping leading zeros. False when it is not a range.
bool add_range(std::string_view part, std::vector<std::string>& tails) {
  const auto dash = part.find('-');
  const std::string_view first = part.substr(0, dash);
  const std::string_view last = dash == std::string_view::npos ? first : part.substr(dash + 1);
  const auto begin = number_in(first), end = number_in(last);
  if (!begin || !end || *begin > *end || *end - *begin >= kMostNodes) return false;
  for (auto number = *begin; number <= *end; ++number) tails.push_back(fmt::format("{:0{}}", number, first.size()));
  return true;
}

/// One element of a list: "n[01-03]" or "n01".
std::expected<std::vector<std::string>, std::string> expand_one(std::string_view item) {
  const auto open = item.find('[');
  if (open == std::string_view::npos) return std::vector<std::string>{std::string(item)};
  const auto close = item.find(']', open);
  if (close == std::string_view::npos)
    return std::unexpected(fmt::format("'{}' has an unclosed bracket", printable(item)));
  std::vector<std::string> tails;
  std::istringstream parts{std::string(item.substr(open + 1, close - open - 1))};
  for (std::string part; std::getline(parts, part, ',');) {
    if (!add_range(part, tails))
      return std::unexpected(fmt::format("'{}' in '{}' is not a range of numbers", printable(part), printable(item)));
  }
  const std::string_view rest = item.substr(close + 1);
  if (tails.empty() || rest.find_first_of("[]") != std::string_view::npos)
    return std::unexpected(fmt::format("'{}' is not a list of hosts", printable(item)));
  for (auto& tail : tails) tail = fmt::format("{}{}{}", item.substr(0, open), tail, rest);
  return tails;
}

constexpr const char* kHostHint =
    "a line is HOST, USER@HOST or HOST:SLOTS, optionally followed by slots=N and address=A; ports and keys of ssh are "
    "read from an ssh configuration, with --from ssh-config";

/// The characters of host names, IPv4 and IPv6; the site's reader checks the rest.
bool could_be_address(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '.' || c == ':' || c == '-' || c == '_';
  });
}

/// A word after the host of a line: takes the address, ignores MPI's slots, and refuses what else there is.
std::optional<InputError> take_host_option(const std::string& word, std::string& address) {
  const auto equals = word.find('=');
  const std::string key = word.substr(0, equals);
  const std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
  if ((key == "slots" || key == "max_slots" || key == "max-slots") && number_in(value)) return std::nullopt;
  if ((key == "address" || key == "ansible_host") && could_be_address(value)) {
    address = value;
    return std::nullopt;
  }
  const bool address_alone = equals == std::string::npos && word.find_first_of(".:") != std::string::npos;
  return InputError{"", fmt::format("'{}' is not a known option", printable(word)),
                    address_alone && could_be_address(word)
                        ? fmt::format("if that is its address, write address={}", word)
                        : kHostHint};
}

}  // namespace

std::expected<std::vector<std::string>, std::string> expand_host_list(std::string_view list) {
  std::vector<std::string> all;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= list.size(); ++i) {
    const char c = i < list.size() ? list[i] : ',';
    depth += c == '[' ? 1 : c == ']' ? -1 : 0;
    if (c != ',' || (depth > 0 && i < list.size())) continue;
    const auto names = expand_one(list.substr(begin, i - begin));
    if (!names) return std::unexpected(names.error());
    for (const auto& name : *names) {
      if (!is_node_name(name)) return std::unexpected(fmt::format("'{}' is not a host name", printable(name)));
      all.push_back(name);
    }
    if (all.size() > kMostNodes) return std::unexpected(fmt::format("more than {} hosts", kMostNodes));
    begin = i + 1;
  }
  return all;
}

std::expected<ordered_json, InputError> site_from_hostfile(std::string_view text, const std::string& where,
                                                           const SourceOptions& options) {
  ordered_json nodes = ordered_json::array();
  std::map<std::string, std::size_t> seen;
  std::istringstream lines{std::string(text)};
  std::string line;
  for (std::size_t number = 1; std::getline(lines, line); ++number) {
    const auto words = words_in(line.substr(0, line.find('#')));
    if (words.empty()) continue;
    std::string address;
    for (std::size_t i = 1; i < words.size(); ++i) {
      if (auto problem = take_host_option(words[i], address))
        return wrong(where, number, std::move(problem->what), std::move(problem->hint));
    }
    std::string host = words.front();
    const auto at = host.find('@');
    const std::string user = at == std::string::npos ? "" : host.substr(0, at);
    if (at != std::string::npos) host = host.substr(at + 1);
    if (const auto colon = host.rfind(':'); colon != std::string::npos && number_in(host.substr(colon + 1)))
      host.resize(colon);
    const auto names = expand_host_list(host);
    if (!names) return wrong(where, number, names.error(), kHostHint);
    if (!address.empty() && names->size() != 1)
      return wrong(where, number, fmt::format("gives {} hosts one address", names->size()), kHostHint);
    for (const auto& name : *names) {
      const auto [earlier, fresh] = seen.emplace(name, number);
      if (!fresh)
        return wrong(where, number, fmt::format("'{}' is already in line {}", name, earlier->second),
                     "list each machine once; slots are ignored");
      nodes.push_back({{"name", name}, {"launcher", "ssh"}});
      if (!address.empty()) nodes.back()["address"] = address;
      if (!user.empty()) nodes.back()["user"] = user;
    }
  }
  if (nodes.empty()) return std::unexpected(InputError{where, "contains no host", kHostHint});
  return site_of(options, std::move(nodes));
}

std::expected<ordered_json, InputError> site_from_scontrol(std::string_view text, const std::string& where,
                                                           const SourceOptions& options) {
  ordered_json nodes = ordered_json::array();
  std::set<std::string> gres;
  std::istringstream lines{std::string(text)};
  std::string line;
  for (std::size_t number = 1; std::getline(lines, line); ++number) {
    if (words_in(line).empty()) continue;
    std::map<std::string, std::string>
        values;  // OS and Reason contain blanks; the words after them have no '=' or an unused key
    for (const auto& word : words_in(line)) {
      if (const auto equals = word.find('='); equals != std::string::npos)
        values.emplace(word.substr(0, equals), word.substr(equals + 1));
    }
    const std::string name = values["NodeName"];
    if (!line.starts_with("NodeName=") || !is_node_name(name))
      return wrong(where, number, "is not a node of `scontrol --oneliner show nodes`",
                   "pass the output of scontrol unchanged");
    if (!options.partition.empty()) {
      const std::string partitions = "," + values["Partitions"] + ",";
      if (partitions.find("," + options.partition + ",") == std::string::npos) continue;
    }
    ordered_json node = {{"name", name}, {"launcher", "slurm"}};
    if (!values["NodeAddr"].empty() && values["NodeAddr"] != name) node["address"] = values["NodeAddr"];
    nodes.push_back(std::move(node));
    const std::string all = values["Gres"];  // gpu:h200:8(S:0-1)
    gres.insert(all.starts_with("gpu") ? all.substr(0, all.find_first_of("(,")) : "");
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
  if (gres.size() == 1 && !gres.begin()->empty()) slurm["gres"] = *gres.begin();
  ordered_json site = site_of(options, std::move(nodes));
  if (!slurm.empty()) site["slurm"] = std::move(slurm);
  return site;
}

std::expected<ordered_json, InputError> site_from_pods(std::string_view text, const std::string& where,
                                                       const SourceOptions& options) {
  const auto document = parse_json(text, where);
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
    const std::string node = text_at(pod, "/spec/nodeName"), phase = text_at(pod, "/status/phase"),
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
                                        "a DaemonSet starts one agent pod on each node"});
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
        InputError{where, "contains no pod", "`assay site manifest` writes a DaemonSet of agent pods"});
  return site_of(options, std::move(nodes));
}

}  // namespace assay::site
