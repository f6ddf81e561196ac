// link_tools: links of a fabric as iblinkinfo lists them, and one port as mlxlink shows it. No figure of theirs has a
// counterpart in a run: each belongs to the link that its coordinates name, and to no other.
#include <array>
#include <optional>

#include <fmt/ranges.h>

#include "orchestrator/import/import.h"
#include "orchestrator/import/reading.h"

namespace assay::imports {
namespace {

using nlohmann::json;

constexpr const char* kLinesHint = "import what iblinkinfo prints, with or without --line, unchanged";

/// The number before the first '[' of `text`: "  12   3[  ]" is 3.
std::optional<std::int64_t> port_in(std::string_view text) {
  const auto words = words_of(text.substr(0, text.find('[')));
  return text.find('[') == std::string_view::npos || words.empty() ? std::nullopt : whole_from(words.back());
}

/// The text between the first two quotation marks, without white space around it; nothing if there are none.
std::optional<std::string> quoted(std::string_view text) {
  const auto begin = text.find('"'), end = text.find('"', begin + 1);
  if (begin == std::string_view::npos || end == std::string_view::npos) return std::nullopt;
  return std::string(trimmed(text.substr(begin + 1, end - begin - 1)));
}

class IblinkinfoReader {
 public:
  explicit IblinkinfoReader(Figures& figures) : figures_(figures) {}

  void line(const TextLine& line) {
    const auto begin = line.text.find("==("), end = line.text.find(")==>");
    if (begin != std::string_view::npos && end != std::string_view::npos && begin < end) {
      port(line, line.text.substr(0, begin), line.text.substr(begin + 3, end - begin - 3), line.text.substr(end + 4));
    } else if (line.text.starts_with("CA: ") || line.text.starts_with("Switch: ") ||
               line.text.starts_with("Router: ")) {
      header(line.text);
    } else if (!line.text.empty()) {
      figures_.foreign(line, begun_);
    }
  }

 private:
  /// "CA: n01 mlx5_0:" or "Switch: 0x0c42a103005a2f60 leaf1:".
  void header(std::string_view text) {
    begun_ = true;
    std::string_view name = trimmed(text.substr(text.find(": ") + 2));
    if (name.ends_with(':')) name.remove_suffix(1);
    if (name.starts_with("0x")) name = trimmed(name.substr(std::min(name.find(' '), name.size())));
    node_ = std::string(name);
  }

  void port(const TextLine& line, std::string_view left, std::string_view link, std::string_view right) {
    begun_ = true;
    const std::string node = quoted(left).value_or(node_);
    const auto behind = left.rfind('"');
    const auto own = port_in(behind == std::string_view::npos ? left : left.substr(behind + 1));
    if (node.empty() || !own) throw ImportRefusal{line.from(), "names no node or no port before ==(", kLinesHint};
    Values at = {{"node", node}, {"port", *own}};
    if (const auto peer = quoted(right); peer && !peer->empty()) {
      at.emplace("peer", *peer);
      if (const auto number = port_in(right.substr(0, right.find('"')))) at.emplace("peer_port", *number);
    }
    const auto words = words_of(link);
    const auto slash = link.find('/');
    if (words.empty() || slash == std::string_view::npos)
      throw ImportRefusal{line.from(), fmt::format("'{}' is no state of a link", link), kLinesHint};
    const auto states = words_of(link.substr(0, slash));
    const bool up = !states.empty() && states.back() == "Active";
    figures_.count({.metric = "link_up", .unit = "1", .statistic = "now"}, at, up ? 1 : 0, line.from());
    if (states.size() > 1) rate(line, words, at);
    const auto doubt = right.find("Could be");
    if (doubt != std::string_view::npos)
      figures_.leave_out(line.from(), std::string(right.substr(doubt, right.rfind(')') - doubt)),
                         "the tool says that the link could have more, and gives no figure");
  }

  /// "4X 53.125 Gbps": lanes, and the signalling rate of one.
  void rate(const TextLine& line, const std::vector<std::string_view>& words, const Values& at) {
    const auto lanes = words[0].ends_with('X') ? whole_from(words[0].substr(0, words[0].size() - 1)) : std::nullopt;
    const auto speed = words.size() > 2 ? number_from(words[1]) : std::nullopt;
    if (!lanes || *lanes < 1 || !speed || words[2] != "Gbps")
      throw ImportRefusal{line.from(), "has no width and speed as 4X 53.125 Gbps: its unit is not known", kLinesHint};
    figures_.count({.metric = "lanes", .unit = "1", .statistic = "now"}, at, static_cast<double>(*lanes), line.from());
    figures_.positive({.metric = "signalling_rate", .unit = "B/s", .statistic = "now", .factor = kGigabitPerSecond}, at,
                      static_cast<double>(*lanes) * *speed, line.from());
  }

  Figures& figures_;
  std::string node_;
  bool begun_ = false;
};

/// A number of mlxlink's output: its name there, ours, and whether it has one for each lane.
struct LinkNumber {
  std::string_view key;
  FigureName name;
  bool count, per_lane;
};

class MlxlinkReader {
 public:
  MlxlinkReader(judge::ImportSource& source, Figures& figures) : source_(source), figures_(figures) {
    const auto words = words_of(source.command);
    for (std::size_t i = 0; i + 1 < words.size(); ++i) {
      if (words[i] == "-d" || words[i] == "--device") at_["device"] = std::string(words[i + 1]);
      if (words[i] == "-p" || words[i] == "--port") at_["port"] = std::string(words[i + 1]);
    }
    if (!at_.contains("device"))
      throw ImportRefusal{"", "does not say of which port it is: mlxlink prints no name of a device",
                          "give the command with --command 'mlxlink -d mlx5_0 -p 1 -c'"};
  }

  /// `values`: one, or one a lane.
  void take(const std::string& key, const std::vector<std::string_view>& values, const std::string& from) {
    static const std::array kNumbers = {
        LinkNumber{"Effective Physical Errors", counted("effective_errors"), true, false},
        LinkNumber{"Symbol Errors", counted("symbol_errors"), true, false},
        LinkNumber{"Link Down Counter", counted("link_downs"), true, false},
        LinkNumber{"Link Error Recovery Counter", counted("link_recoveries"), true, false},
        LinkNumber{"Raw Physical Errors Per Lane", counted("raw_errors"), true, true},
        LinkNumber{"Effective Physical BER", counted("effective_ber"), false, false},
        LinkNumber{"Symbol BER", counted("symbol_ber"), false, false},
        LinkNumber{"Raw Physical BER", counted("raw_ber"), false, false},
        LinkNumber{"Raw Physical BER Per Lane", counted("raw_ber"), false, true},
        LinkNumber{"Time Since Last Clear [Min]",
                   {.metric = "time_since_clear", .unit = "s", .statistic = "now", .factor = 60},
                   false,
                   false}};
    if (key == "Speed") speed_ = std::pair(std::string(first(values)), from);
    if (key == "Width") width_ = std::pair(std::string(first(values)), from);
    if (key == "State" || key == "Physical state" || key == "FEC" || key == "Loopback Mode")
      source_.facts[key] = fmt::format("{}", fmt::join(values, ","));
    for (const auto& one : kNumbers) {
      if (one.key != key) continue;
      if (!one.per_lane && values.size() > 1)
        throw ImportRefusal{from, fmt::format("{} numbers, expected one", values.size()),
                            "run it in the locale C: a comma separates lanes"};
      for (std::size_t i = 0; i < (one.per_lane ? values.size() : 1); ++i) {
        Values at = at_;
        if (one.per_lane) at["lane"] = static_cast<std::int64_t>(i);
        number(one, at, one.per_lane ? trimmed(values[i]) : first(values), from);
      }
    }
  }

  void end() {
    if (width_.first.empty() && speed_.first.empty()) return;
    if (is_absent(speed_.first) || speed_.first.empty() || is_absent(width_.first)) {
      figures_.leave_out(speed_.second, "Speed", "the link is down");
      return;
    }
    const std::string& width = width_.first;
    const auto lanes = width.ends_with('x') ? whole_from(width.substr(0, width.size() - 1)) : std::nullopt;
    const auto of_lane =
        speed_.first.starts_with("IB-") ? infiniband_lane(std::string_view(speed_.first).substr(3)) : std::nullopt;
    const auto giga = speed_.first.find('G');
    const auto ethernet = number_from(std::string_view(speed_.first).substr(0, giga));
    if (!lanes || *lanes < 1 || (!of_lane && (giga == std::string::npos || !ethernet)))
      throw ImportRefusal{speed_.second, fmt::format("speed '{}' with width '{}' is not known", speed_.first, width),
                          "known are speeds as 200G and IB-NDR, and widths as 4x"};
    figures_.count({.metric = "lanes", .unit = "1", .statistic = "now"}, at_, static_cast<double>(*lanes),
                   width_.second);
    figures_.positive({.metric = "link_rate", .unit = "B/s", .statistic = "now", .factor = kGigabitPerSecond}, at_,
                      of_lane ? *of_lane * static_cast<double>(*lanes) : *ethernet, speed_.second);
  }

 private:
  static FigureName counted(const char* metric) { return {.metric = metric, .unit = "1", .statistic = "since_clear"}; }
  static std::string_view first(const std::vector<std::string_view>& values) {
    return values.empty() ? std::string_view() : trimmed(values.front());
  }
  void number(const LinkNumber& one, const Values& at, std::string_view word, const std::string& from) {
    if (!one.count) return figures_.word(one.name, at, word, from);
    if (is_absent(word)) return figures_.leave_out(from, std::string(one.key), "the tool has none");
    const auto value = number_from(word);
    if (!value) throw ImportRefusal{from, fmt::format("'{}' is not a number", word), "import the output unchanged"};
    figures_.count(one.name, at, *value, from);
  }

  judge::ImportSource& source_;
  Figures& figures_;
  Values at_;
  std::pair<std::string, std::string> speed_, width_;  // with their places
};

}  // namespace

void read_iblinkinfo(std::string_view text, judge::ImportSource&, Figures& figures) {
  IblinkinfoReader reader(figures);
  for (const auto& line : lines_of(text, &figures)) reader.line(line);
}

void read_mlxlink_text(std::string_view text, judge::ImportSource& source, Figures& figures) {
  if (text.find('\x1b') != std::string_view::npos)
    throw ImportRefusal{"", "has the colours of a terminal", "run it with --json, or with its output in a file"};
  MlxlinkReader reader(source, figures);
  for (const auto& line : lines_of(text)) {
    const auto colon = line.text.find(" : ");
    if (colon == std::string_view::npos) continue;  // titles of sections and the lines under them
    reader.take(std::string(trimmed(line.text.substr(0, colon))), parts_of(line.text.substr(colon + 3), ','),
                line.from());
  }
  reader.end();
}

void read_mlxlink_json(std::string_view text, judge::ImportSource& source, Figures& figures) {
  constexpr const char* kHint = "import what mlxlink --json prints";
  const json whole = document_of(text, figures, kHint);
  MlxlinkReader reader(source, figures);
  const auto status = whole.find("status");
  if (status == whole.end() || !status->is_object() || !status->contains("code") || status->at("code") != 0)
    throw ImportRefusal{"status.code", "is not 0: the tool failed", "correct the cause and run it again"};
  const json output = whole.value("/result/output"_json_pointer, json());
  if (!output.is_object()) throw ImportRefusal{"result.output", "is not an object", kHint};
  for (const auto& [title, group] : output.items()) {
    if (!group.is_object()) throw ImportRefusal{"result.output." + title, "is not an object", kHint};
    for (const auto& [key, value] : group.items()) {
      const std::string from = fmt::format("result.output.{}.{}", title, key);
      const json list = value.is_object() ? value.value("values", json()) : json::array({value});
      std::vector<std::string> texts;
      for (const auto& one : list) texts.push_back(one.is_string() ? one.get<std::string>() : one.dump());
      reader.take(key, {texts.begin(), texts.end()}, from);
    }
  }
  reader.end();
}

}  // namespace assay::imports
