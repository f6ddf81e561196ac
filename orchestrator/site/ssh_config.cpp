// ssh_config: reads the address of each host from ssh_config(5).
#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <sstream>
#include <utility>

#include <fmt/format.h>
#include <fnmatch.h>

#include "orchestrator/site/sources.h"
#include "probes/core/text.h"

namespace assay::site {
namespace {

using nlohmann::ordered_json;

constexpr std::array<std::string_view, 5> kRead = {"hostname", "user", "port", "identityfile", "proxyjump"};
constexpr std::array<std::string_view, 4> kRefused = {"match", "include", "proxycommand", "hostkeyalias"};

struct Option {
  std::string value;
  std::size_t line = 0;
};

/// The options from one Host line to the next; those before the first apply to all hosts.
struct Block {
  std::vector<std::string> patterns = {"*"};
  std::size_t line = 0;
  std::map<std::string, Option> options;  // the first value of each

  [[nodiscard]] bool covers(const std::string& host) const {
    bool found = false;
    for (const auto& pattern : patterns) {
      if (pattern.starts_with('!') && fnmatch(pattern.c_str() + 1, host.c_str(), 0) == 0) return false;
      found = found || fnmatch(pattern.c_str(), host.c_str(), 0) == 0;
    }
    return found;
  }
};

struct Reader {
  const std::string& where;
  std::vector<Block> blocks = {Block{}};

  [[nodiscard]] std::unexpected<InputError> wrong(std::size_t line, std::string what, std::string hint) const {
    return std::unexpected(InputError{fmt::format("{}: line {}", where, line), std::move(what), std::move(hint)});
  }

  std::optional<InputError> take(const std::string& text, std::size_t line) {
    // "User bench", "User=bench" and "User = bench" are the same.
    std::string spaced = text;
    const auto begin = spaced.find_first_not_of(" \t");
    const auto after = begin == std::string::npos ? begin : spaced.find_first_of(" \t=", begin);
    if (const auto sign = after == std::string::npos ? after : spaced.find_first_not_of(" \t", after);
        sign != std::string::npos && spaced[sign] == '=')
      spaced[sign] = ' ';
    std::istringstream stream(spaced);
    std::string keyword;
    std::vector<std::string> values;
    stream >> keyword;
    for (std::string word; stream >> word;) values.push_back(std::move(word));
    if (keyword.empty() || keyword.starts_with('#')) return std::nullopt;
    std::ranges::transform(keyword, keyword.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (std::ranges::find(kRefused, keyword) != kRefused.end()) {
      return wrong(line, fmt::format("'{}' is not supported", keyword),
                   "write the nodes without it: HostName, User, Port, IdentityFile, ProxyJump")
          .error();
    }
    if (keyword == "host") {
      if (values.empty()) return wrong(line, "Host has no name", "").error();
      blocks.push_back(Block{.patterns = std::move(values), .line = line, .options = {}});
      return std::nullopt;
    }
    if (std::ranges::find(kRead, keyword) == kRead.end()) return std::nullopt;
    if (values.size() != 1)
      return wrong(line, fmt::format("'{}' needs exactly one value", keyword), "values with blanks are not supported")
          .error();
    std::string value = values.front();
    if (value.size() > 1 && value.starts_with('"') && value.ends_with('"')) value = value.substr(1, value.size() - 2);
    blocks.back().options.emplace(keyword, Option{std::move(value), line});
    return std::nullopt;
  }

  [[nodiscard]] Option value_of(const std::string& host, const std::string& keyword) const {
    for (const auto& block : blocks) {
      const auto found = block.options.find(keyword);
      if (found != block.options.end() && block.covers(host)) return found->second;
    }
    return {};
  }

  /// Fields of `host` in a site: address, user, port and identity_file, as far as the file has them.
  std::expected<ordered_json, InputError> fields_of(const std::string& host) const {
    ordered_json fields = ordered_json::object();
    Option address = value_of(host, "hostname");
    if (const auto token = address.value.find("%h"); token != std::string::npos) address.value.replace(token, 2, host);
    const Option user = value_of(host, "user"), port = value_of(host, "port"),
                 identity = value_of(host, "identityfile");
    for (const Option* option : {&std::as_const(address), &user, &identity}) {
      if (option->value.find('%') != std::string::npos)
        return wrong(option->line, fmt::format("'{}' has a %-token", printable(option->value)),
                     "write its value instead");
    }
    if (!address.value.empty() && address.value != host) fields["address"] = address.value;
    if (!user.value.empty()) fields["user"] = user.value;
    if (!port.value.empty()) {
      int number = 0;
      const auto [end, error] = std::from_chars(port.value.data(), port.value.data() + port.value.size(), number);
      if (error != std::errc() || end != port.value.data() + port.value.size())
        return wrong(port.line, fmt::format("'{}' is not a port number", printable(port.value)), "");
      fields["port"] = number;
    }
    if (!identity.value.empty()) fields["identity_file"] = identity.value;
    return fields;
  }

  /// The jump host of `host`: by its own name in this file, or user@address:port. Nothing when there is none.
  std::expected<std::optional<ordered_json>, InputError> jump_of(const std::string& host) const {
    const Option jump = value_of(host, "proxyjump");
    if (jump.value.empty() || jump.value == "none") return std::nullopt;
    if (jump.value.find(',') != std::string::npos)
      return wrong(jump.line, "ProxyJump has more than one hop", "assay supports one hop");
    std::string name = jump.value.substr(jump.value.find('@') == std::string::npos ? 0 : jump.value.find('@') + 1);
    const auto colon = name.rfind(':');
    const std::string port = colon == std::string::npos ? "" : name.substr(colon + 1);
    name = name.substr(0, colon);
    const Option further = value_of(name, "proxyjump");
    if (!further.value.empty() && further.value != "none" && further.line != jump.line)
      return wrong(further.line, "the jump host has a jump host", "assay supports one hop");
    auto fields = fields_of(name);
    if (!fields) return std::unexpected(fields.error());
    ordered_json result = {{"address", fields->value("address", name)}};
    if (name.size() < jump.value.size() && jump.value.find('@') != std::string::npos)
      (*fields)["user"] = jump.value.substr(0, jump.value.find('@'));
    if (!port.empty()) {
      if (port.size() > 5 || port.find_first_not_of("0123456789") != std::string::npos)
        return wrong(jump.line, fmt::format("'{}' is not a port number", printable(port)), "");
      (*fields)["port"] = std::stoi(port);
    }
    for (const char* key : {"user", "port", "identity_file"}) {
      if (fields->contains(key)) result[key] = (*fields)[key];
    }
    return result;
  }
};

}  // namespace

std::expected<ordered_json, InputError> site_from_ssh_config(std::string_view text, const std::string& where,
                                                             const SourceOptions& options) {
  Reader reader{.where = where};
  std::istringstream lines{std::string(text)};
  std::string line;
  for (std::size_t number = 1; std::getline(lines, line); ++number) {
    if (auto problem = reader.take(line, number)) return std::unexpected(std::move(*problem));
  }
  ordered_json nodes = ordered_json::array();
  std::map<std::string, std::size_t> seen;
  for (const auto& block : reader.blocks) {
    for (const auto& name : block.patterns) {
      if (name.find_first_of("*?!") != std::string::npos || !seen.emplace(name, block.line).second) continue;
      if (!is_node_name(name))
        return reader.wrong(block.line, fmt::format("'{}' is not a node name", printable(name)),
                            "letters, digits, dots, hyphens and underscores");
      const auto fields = reader.fields_of(name);
      if (!fields) return std::unexpected(fields.error());
      const auto jump = reader.jump_of(name);
      if (!jump) return std::unexpected(jump.error());
      ordered_json node = {{"name", name}, {"launcher", "ssh"}};
      node.update(*fields);
      if (*jump) node["jump"] = **jump;
      nodes.push_back(std::move(node));
    }
  }
  if (nodes.empty())
    return std::unexpected(InputError{where, "has no Host without a wildcard", "every such Host becomes a node"});
  ordered_json site = {{"schema", "assay.site/1"}, {"name", options.name}};
  if (!options.known_hosts.empty()) site["known_hosts"] = options.known_hosts;
  site["nodes"] = std::move(nodes);
  return site;
}

}  // namespace assay::site
