// ssh_config: reads the address of each host from ssh_config(5), in the order in which ssh does: the blocks of the file
// and of those it includes from top to bottom, for each host those that cover it.
#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include <fmt/format.h>
#include <fnmatch.h>
#include <glob.h>

#include "orchestrator/site/sources.h"
#include "probes/core/text.h"

namespace assay::site {
namespace {

using nlohmann::ordered_json;

constexpr std::array<std::string_view, 7> kRead = {"hostname",  "user",         "port",        "identityfile",
                                                   "proxyjump", "proxycommand", "hostkeyalias"};
constexpr int kMostIncluded = 200;  // files, which may include each other; ssh knows 16 levels of them
constexpr const char* kResolved = "`ssh -G HOST` prints the values for a host: write those for each, without it";

struct Option {
  std::string value;
  std::string place;  ///< "config: line 3"
};

std::unexpected<InputError> wrong(const std::string& place, std::string what, std::string hint) {
  return std::unexpected(InputError{place, std::move(what), std::move(hint)});
}

/// The options from one Host or Match line to the next; those before the first apply to all hosts.
struct Block {
  std::vector<std::string> patterns = {"*"};
  bool of_target = false;    ///< the patterns are of the HostName, as far as it is known there
  bool of_nodes = false;     ///< a Host line: its names are nodes
  std::string refused = {};  ///< its line, if that cannot be evaluated; then it may only hold options of no interest
  std::string place = {};
  std::vector<std::pair<std::string, Option>> options = {};

  [[nodiscard]] bool covers(const std::string& host) const {
    bool found = false;
    for (const auto& pattern : patterns) {
      if (pattern.starts_with('!') && fnmatch(pattern.c_str() + 1, host.c_str(), 0) == 0) return false;
      found = found || fnmatch(pattern.c_str(), host.c_str(), 0) == 0;
    }
    return found;
  }
};

/// The options of a host from the blocks that cover it.
struct HostValues {
  std::map<std::string, Option> first;
  std::vector<Option> identities;

  [[nodiscard]] Option of(const std::string& keyword) const {
    const auto found = first.find(keyword);
    return found == first.end() ? Option{} : found->second;
  }
};

/// The words of a line as ssh splits them: quotes of both kinds, backslashes before quotes, backslashes and blanks, and
/// a comment at the end. Nothing if a quote is not closed.
std::optional<std::vector<std::string>> split_words(std::string_view text) {
  std::vector<std::string> words;
  std::optional<std::string> word;
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool blank = c == ' ' || c == '\t' || c == '\r';
    if (c == '#' && quote == 0 && !word) break;
    if (quote == 0 && blank) {
      if (word) words.push_back(*std::exchange(word, std::nullopt));
      continue;
    }
    if (!word) word.emplace();
    if (c == '\\' && i + 1 < text.size() && std::string_view("\"'\\ ").contains(text[i + 1])) {
      *word += text[++i];
    } else if (quote == 0 && (c == '"' || c == '\'')) {
      quote = c;
    } else if (c == quote) {
      quote = 0;
    } else {
      *word += c;
    }
  }
  if (quote != 0) return std::nullopt;
  if (word) words.push_back(*word);
  return words;
}

/// `text` with the values of its %-tokens; the error is the token that has none.
std::expected<std::string, std::string> expand(const std::string& text, const std::map<char, std::string>& tokens) {
  std::string expanded;
  if (text.contains("${")) return std::unexpected("a variable");
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      expanded += text[i];
      continue;
    }
    const char token = i + 1 < text.size() ? text[++i] : ' ';
    const auto value = tokens.find(token);
    if (token != '%' && (value == tokens.end() || value->second.empty()))
      return std::unexpected(fmt::format("the token %{}", printable({&token, 1})));
    expanded += token == '%' ? "%" : value->second;
  }
  return expanded;
}

std::optional<int> port_in(const std::string& text) {
  constexpr std::size_t kMostDigits = 5;
  if (text.empty() || text.size() > kMostDigits || text.find_first_not_of("0123456789") != std::string::npos)
    return std::nullopt;
  return std::stoi(text);
}

class Reader {
 public:
  explicit Reader(const SourceOptions& options) : home_(options.home), notes_(options.notes) {}

  std::optional<InputError> read(std::string_view text, const std::string& where) {
    const auto plain = plain_text(text, where);
    if (!plain) return plain.error();
    blocks_.emplace_back();
    std::istringstream lines{std::string(*plain)};
    std::string line;
    for (std::size_t number = 1; std::getline(lines, line); ++number) {
      if (auto problem = take(line, fmt::format("{}: line {}", where, number))) return problem;
    }
    return std::nullopt;
  }

  /// The nodes, in the order of their Host lines.
  std::expected<ordered_json, InputError> nodes() {
    ordered_json nodes = ordered_json::array();
    std::set<std::string> seen;
    std::map<std::string, std::string> machines;  // the first name of each
    for (const auto& block : blocks_) {
      for (const auto& name : block.patterns) {
        if (!block.of_nodes || name.find_first_of("*?!") != std::string::npos || !seen.insert(name).second) continue;
        if (!is_node_name(name))
          return wrong(block.place, fmt::format("'{}' is not a node name", printable(name)),
                       "letters, digits, dots, hyphens and underscores");
        const auto fields = fields_of(name);
        if (!fields) return std::unexpected(fields.error());
        const auto jump = jump_of(name);
        if (!jump) return std::unexpected(jump.error());
        const std::string machine =
            fmt::format("{} port {}{}", fields->value("address", name), fields->value("port", 22),
                        *jump ? " behind " + (**jump).value("address", "") : "");
        if (const auto [first, fresh] = machines.emplace(machine, name); !fresh) {
          note(fmt::format("{}: {} is left out: it is the machine {}", block.place, name, first->second));
          continue;
        }
        ordered_json node = {{"name", name}, {"launcher", "ssh"}};
        node.update(*fields);
        if (*jump) node["jump"] = **jump;
        nodes.push_back(std::move(node));
      }
    }
    return nodes;
  }

 private:
  void note(const std::string& text) {
    if (noted_.insert(text).second && notes_ != nullptr) notes_->push_back(text);
  }

  std::optional<InputError> take(const std::string& text, const std::string& place) {
    // "User bench", "User=bench" and "User = bench" are the same.
    const auto begin = text.find_first_not_of(" \t\r");
    if (begin == std::string::npos || text[begin] == '#') return std::nullopt;
    const auto end = std::min(text.find_first_of(" \t\r=", begin), text.size());
    std::string keyword = text.substr(begin, end - begin), rest = text.substr(end);
    std::ranges::transform(keyword, keyword.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (const auto sign = rest.find_first_not_of(" \t"); sign != std::string::npos && rest[sign] == '=')
      rest = rest.substr(sign + 1);
    const bool is_block = keyword == "host" || keyword == "match";
    const bool is_read = std::ranges::find(kRead, keyword) != kRead.end();
    if (!is_block && !is_read && keyword != "include") return std::nullopt;
    auto values = split_words(rest);
    if (!values) return wrong(place, "has a quote that is not closed", "").error();
    if (values->empty()) return wrong(place, fmt::format("'{}' has no value", keyword), "").error();
    if (is_block) {
      blocks_.emplace_back();
      begin_block(keyword == "match", std::move(*values), place);
      return std::nullopt;
    }
    Block& block = blocks_.back();
    if (!block.refused.empty())
      return wrong(block.place, fmt::format("'{}' is not supported", printable(block.refused)), kResolved).error();
    if (keyword == "include") return include(*values, place);
    if (values->size() != 1 && keyword != "proxycommand")
      return wrong(place, fmt::format("'{}' needs exactly one value", keyword), "quote a value that has blanks")
          .error();
    block.options.emplace_back(keyword, Option{values->front(), place});
    return std::nullopt;
  }

  /// Match with `all`, or with one list of hosts; other criteria depend on the connection.
  void begin_block(bool match, std::vector<std::string> values, const std::string& place) {
    Block& block = blocks_.back();
    block.place = place;
    block.of_nodes = !match;
    if (!match) {
      block.patterns = std::move(values);
    } else if (values.size() == 2 && (values[0] == "host" || values[0] == "originalhost")) {
      block.of_target = values[0] == "host";
      block.patterns.clear();
      std::istringstream list(values[1]);
      for (std::string pattern; std::getline(list, pattern, ',');) block.patterns.push_back(pattern);
    } else if (values != std::vector<std::string>{"all"}) {
      block.refused = "Match";
      for (const auto& value : values) block.refused += " " + value;
    }
  }

  std::optional<InputError> include(const std::vector<std::string>& patterns, const std::string& place) {
    if (blocks_.back().of_target || blocks_.back().patterns != std::vector<std::string>{"*"})
      return wrong(place, "Include is not supported within Host or Match", "write it before the first Host").error();
    for (const auto& pattern : patterns) {
      auto path = path_of({pattern, place}, home_ + "/.ssh/", {});
      if (!path) return path.error();
      glob_t found{};
      const int failed = ::glob(path->c_str(), 0, nullptr, &found);
      std::vector<std::string> files(found.gl_pathv, found.gl_pathv + (failed == 0 ? found.gl_pathc : 0));
      ::globfree(&found);
      if (files.empty()) note(fmt::format("{}: Include {}: there is no such file", place, printable(*path)));
      for (const auto& file : files) {
        if (included_++ == kMostIncluded)
          return wrong(place, fmt::format("includes more than {} files", kMostIncluded), "look for a circle").error();
        const auto text = read_file(file);
        if (!text) return text.error();
        if (auto problem = read(*text, file)) return problem;
      }
    }
    blocks_.emplace_back();
    return std::nullopt;
  }

  /// A path with its tokens and ~; a relative one is below `folder`.
  std::expected<std::string, InputError> path_of(const Option& option, const std::string& folder,
                                                 const std::map<char, std::string>& tokens) const {
    const auto path = expand(option.value, tokens);
    if (!path)
      return wrong(option.place, fmt::format("'{}' has {}", printable(option.value), path.error()),
                   "write its value instead");
    if (path->starts_with('/')) return *path;
    if (!path->starts_with('~')) return folder + *path;
    if (!path->starts_with("~/") || home_.empty())
      return wrong(option.place, fmt::format("'{}' is in a home that is not known", printable(*path)),
                   "write the whole path");
    return home_ + path->substr(1);
  }

  [[nodiscard]] HostValues values_of(const std::string& host) const {
    HostValues values;
    for (const auto& block : blocks_) {
      const std::string named = values.of("hostname").value;
      const std::string target = expand(named, {{'h', host}}).value_or(named);
      if (!block.covers(block.of_target && !target.empty() ? target : host)) continue;
      for (const auto& [keyword, option] : block.options) {
        const char* const other = keyword == "proxyjump"      ? "proxycommand"
                                  : keyword == "proxycommand" ? "proxyjump"
                                                              : "";
        if (keyword == "identityfile") values.identities.push_back(option);
        if (!values.first.contains(other)) values.first.emplace(keyword, option);
      }
    }
    return values;
  }

  /// Fields of `host` in a site: address, user, port and identity_file, as far as the file has them.
  std::expected<ordered_json, InputError> fields_of(const std::string& host) {
    ordered_json fields = ordered_json::object();
    const HostValues values = values_of(host);
    for (const auto& [keyword, hint] : {std::pair("proxycommand", "write ProxyJump HOST instead"),
                                        {"hostkeyalias", "list the host's key under its address in known_hosts"}}) {
      if (const Option option = values.of(keyword); !option.value.empty() && option.value != "none")
        return wrong(option.place, fmt::format("'{}' is not supported", keyword), hint);
    }
    const Option named = values.of("hostname"), user = values.of("user"), port = values.of("port");
    const auto address = expand(named.value, {{'h', host}});
    if (!address || user.value.contains('%') || user.value.contains("${"))
      return wrong(address ? user.place : named.place,
                   fmt::format("'{}' has a %-token or a variable", printable(address ? user.value : named.value)),
                   "write its value instead");
    if (!address->empty() && *address != host) fields["address"] = *address;
    if (!user.value.empty()) fields["user"] = user.value;
    if (!port.value.empty()) {
      const auto number = port_in(port.value);
      if (!number) return wrong(port.place, fmt::format("'{}' is not a port number", printable(port.value)), "");
      fields["port"] = *number;
    }
    const auto identity = identity_of(values, {{'h', address->empty() ? host : *address},
                                               {'n', host},
                                               {'p', port.value.empty() ? "22" : port.value},
                                               {'r', user.value},
                                               {'d', home_}});
    if (!identity) return std::unexpected(identity.error());
    if (!identity->empty()) fields["identity_file"] = *identity;
    return fields;
  }

  /// The first key that is there; ssh would try them all.
  std::expected<std::string, InputError> identity_of(const HostValues& values,
                                                     const std::map<char, std::string>& tokens) {
    std::string chosen;
    for (const auto& option : values.identities) {
      if (option.value == "none") continue;
      std::error_code unknown;  // a folder that cannot be looked into has no key for us
      const auto path = path_of(option, std::filesystem::current_path(unknown).string() + "/", tokens);
      if (!path) return path;
      const bool there = std::filesystem::exists(*path, unknown);
      if (chosen.empty() && there) {
        chosen = *path;
      } else if (*path != chosen) {
        note(fmt::format("{}: IdentityFile {} is left out: {}", option.place, printable(*path),
                         there ? "a node has one key, the first that is there" : "there is no such file"));
      }
    }
    return chosen;
  }

  /// The jump host of `host`: by its own name in this file, or user@address:port. Nothing when there is none.
  std::expected<std::optional<ordered_json>, InputError> jump_of(const std::string& host) {
    const Option jump = values_of(host).of("proxyjump");
    if (jump.value.empty() || jump.value == "none") return std::nullopt;
    if (jump.value.find_first_of(",%$") != std::string::npos)
      return wrong(jump.place, "ProxyJump has more than one hop or a %-token", "assay supports one hop");
    std::string name = jump.value.starts_with("ssh://") ? jump.value.substr(6) : jump.value;
    const auto at = name.rfind('@');
    const std::string user = at == std::string::npos ? "" : name.substr(0, at);
    name = name.substr(at == std::string::npos ? 0 : at + 1);
    std::string port;
    const auto colon = name.rfind(':');
    const bool bracketed = name.starts_with('[') && colon != std::string::npos && name[colon - 1] == ']';
    if (bracketed || (colon != std::string::npos && name.find(':') == colon)) {  // else an IPv6 address
      port = name.substr(colon + 1);
      name = name.substr(0, colon);
    }
    if (name.starts_with('[') && name.ends_with(']')) name = name.substr(1, name.size() - 2);
    const Option further = values_of(name).of("proxyjump");
    if (!further.value.empty() && further.value != "none" && further.place != jump.place)
      return wrong(further.place, "the jump host has a jump host", "assay supports one hop");
    auto fields = fields_of(name);
    if (!fields) return std::unexpected(fields.error());
    ordered_json result = {{"address", fields->value("address", name)}};
    if (!user.empty()) (*fields)["user"] = user;
    if (!port.empty()) {
      const auto number = port_in(port);
      if (!number) return wrong(jump.place, fmt::format("'{}' is not a port number", printable(port)), "");
      (*fields)["port"] = *number;
    }
    for (const char* key : {"user", "port", "identity_file"}) {
      if (fields->contains(key)) result[key] = (*fields)[key];
    }
    return result;
  }

  std::string home_;
  std::vector<std::string>* notes_;
  int included_ = 0;
  std::set<std::string> noted_;
  std::vector<Block> blocks_;
};

}  // namespace

std::expected<ordered_json, InputError> site_from_ssh_config(std::string_view text, const std::string& where,
                                                             const SourceOptions& options) {
  Reader reader(options);
  if (auto problem = reader.read(text, where)) return std::unexpected(std::move(*problem));
  auto nodes = reader.nodes();
  if (!nodes) return nodes;
  if (nodes->empty())
    return std::unexpected(InputError{where, "has no Host without a wildcard", "every such Host becomes a node"});
  ordered_json site = {{"schema", "assay.site/1"}, {"name", options.name}};
  if (!options.known_hosts.empty()) site["known_hosts"] = options.known_hosts;
  site["nodes"] = std::move(*nodes);
  return site;
}

}  // namespace assay::site
