// ibdiagnet: ports of a fabric as three files of NVIDIA's ibdiagnet 2 have them: net_dump (links of switches, with both
// ends), net_dump_ext (with bit error rates) and db_csv (tables between START_ and END_ lines, of which four are read).
// Columns are found by their names. Codes of widths, speeds and states, and the rates behind them, are those of the
// tool's own ibdm/Fabric.h: the speed is of one lane, in Gb/s.
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "orchestrator/import/import.h"
#include "orchestrator/import/reading.h"
#include "probes/core/whole_number.h"

namespace assay::imports {
namespace {

constexpr const char* kWholeHint = "import ibdiagnet2.net_dump, .net_dump_ext or .db_csv as the tool wrote it";

std::string unquoted(std::string_view text) {
  if (text.size() > 1 && text.starts_with('"') && text.ends_with('"')) text = text.substr(1, text.size() - 2);
  return std::string(trimmed(text));
}

/// The rest of `line` behind its first `count` separators, which it has.
std::string_view behind(std::string_view line, char separator, std::size_t count) {
  for (; count > 0; --count) line.remove_prefix(line.find(separator) + 1);
  return line;
}

/// A row by the names of its columns; one that the heading does not have is empty.
class Row {
 public:
  Row(const std::vector<std::string>& heading, const TextLine& line, char separator) : heading_(heading), line_(line) {
    cells_ = parts_of(line.text, separator);
    if (cells_.size() < heading.size())
      throw ImportRefusal{line.from(), fmt::format("{} columns, the heading has {}", cells_.size(), heading.size()),
                          kWholeHint};
    // The last column of a dump is a description, which may contain the separator.
    if (cells_.size() > heading.size() && separator == ':')
      cells_[heading.size() - 1] = trimmed(behind(line.text, separator, heading.size() - 1));
    else if (cells_.size() > heading.size())
      throw ImportRefusal{line.from(), fmt::format("{} columns, the heading has {}", cells_.size(), heading.size()),
                          kWholeHint};
  }

  [[nodiscard]] std::string_view at(std::string_view name) const {
    const auto found = std::ranges::find(heading_, name);
    return found == heading_.end() ? std::string_view() : cells_[static_cast<std::size_t>(found - heading_.begin())];
  }
  [[nodiscard]] std::int64_t whole(std::string_view name) const {
    const auto value = whole_from(at(name));
    if (!value || *value < 0)
      throw ImportRefusal{from(), fmt::format("'{}' is no number of the column {}", at(name), name), kWholeHint};
    return *value;
  }
  [[nodiscard]] std::string guid(std::string_view name) const {
    const std::string_view word = at(name);
    const auto value = word.starts_with("0x") ? whole_number<std::uint64_t>(word.substr(2), 16) : std::nullopt;
    if (!value) throw ImportRefusal{from(), fmt::format("'{}' is no GUID of the column {}", word, name), kWholeHint};
    return fmt::format("{:#018x}", *value);
  }
  [[nodiscard]] std::string from() const { return line_.from(); }

 private:
  const std::vector<std::string>& heading_;
  TextLine line_;
  std::vector<std::string_view> cells_;
};

std::vector<std::string> heading_of(const TextLine& line, char separator) {
  std::vector<std::string> names;
  for (const auto part : parts_of(line.text, separator)) {
    if (std::ranges::find(names, part) != names.end())
      throw ImportRefusal{line.from(), fmt::format("the column '{}' is there twice", part), kWholeHint};
    names.emplace_back(part);
  }
  return names;
}

/// Takes the state of a port and, of an active one, its lanes and rate: `width` as "4x", `speed` of one lane as "100"
/// or "FDR10".
void take_port(Figures& figures, const Row& row, const Values& at, bool active, std::string_view width,
               std::string_view speed) {
  figures.count({.metric = "link_up", .unit = "1", .statistic = "now"}, at, active ? 1 : 0, row.from());
  if (!active) return;
  constexpr double kSpeeds[] = {2.5, 5, 10, 14, 25, 50, 100, 200};
  const auto lanes = width.ends_with('x') ? whole_from(width.substr(0, width.size() - 1)) : std::nullopt;
  auto lane = infiniband_lane(speed);
  if (const auto number = number_from(speed); number && std::ranges::find(kSpeeds, *number) != std::end(kSpeeds))
    lane = number;
  if (!lanes || *lanes < 1 || !lane)
    throw ImportRefusal{row.from(), fmt::format("speed '{}' with width '{}' is not known", speed, width),
                        "known are speeds of a lane as 100 and FDR10, and widths as 4x"};
  figures.count({.metric = "lanes", .unit = "1", .statistic = "now"}, at, static_cast<double>(*lanes), row.from());
  figures.positive({.metric = "link_rate", .unit = "B/s", .statistic = "now", .factor = kGigabitPerSecond}, at,
                   *lane * static_cast<double>(*lanes), row.from());
}

/// Takes a counter, in decimals or as 0x and hexadecimals. One at `ceiling` has stopped there: it is no count.
void take_count(Figures& figures, const Row& row, const Values& at, const char* metric, std::string_view word,
                std::uint64_t ceiling) {
  if (word.empty() || is_absent(word)) return figures.leave_out(row.from(), metric, "the tool has none");
  const bool hex = word.starts_with("0x");
  const auto value = whole_number<std::uint64_t>(word.substr(hex ? 2 : 0), hex ? 16 : 10);
  if (!value)
    throw ImportRefusal{row.from(), fmt::format("'{}' is not a number, expected the {}", word, metric), kWholeHint};
  if (*value >= ceiling)
    return figures.leave_out(row.from(), metric, "it has reached its highest value, and stays there");
  figures.count({.metric = metric, .unit = "1", .statistic = "since_clear"}, at, static_cast<double>(*value),
                row.from());
}

constexpr std::uint64_t kHighest = ~std::uint64_t{0};

/// net_dump: `"leaf1", Mellanox, 0x0c42…, LID 3`, a heading that begins with #, and a row for each port.
void read_net_dump(const std::vector<TextLine>& lines, Figures& figures) {
  std::vector<std::string> heading, block;
  for (const auto& line : lines) {
    if (line.text.starts_with('"')) {
      block.clear();
      for (const auto part : parts_of(line.text, ',')) block.emplace_back(part);
      if (block.size() != 4 || !block[2].starts_with("0x"))
        throw ImportRefusal{line.from(), "is not a switch as \"name\", vendor, GUID, LID", kWholeHint};
    } else if (line.text.starts_with('#') && line.text.find(" Sta ") != std::string_view::npos) {
      heading = heading_of(line, ':');
    } else if (heading.empty() || block.empty() || line.text.starts_with('#') || line.text.empty()) {
      if (!line.text.empty() && !line.text.starts_with('#')) figures.foreign(line, !heading.empty());
    } else {
      const Row row(heading, line, ':');
      Values at = {{"node", unquoted(block[0])}, {"guid", block[2]}, {"port", row.whole("IB#")}};
      const std::string peer = unquoted(row.at("Neighbor Description"));
      if (!peer.empty() && !is_absent(peer)) {
        at.emplace("peer", peer);
        at.emplace("peer_guid", row.guid("Neighbor Guid"));
        if (const auto port = whole_from(row.at("N#")))
          at.emplace("peer_port", *port);
        else
          at.emplace("peer_port", std::string(row.at("N#")));
      }
      take_port(figures, row, at, row.at("Sta") == "ACT", row.at("LWA"), row.at("LSA"));
    }
  }
}

/// net_dump_ext: one table of all ports; bit error rates are since the counters were cleared.
void read_net_dump_ext(const std::vector<TextLine>& lines, Figures& figures) {
  std::vector<std::string> heading;
  for (const auto& line : lines) {
    if (line.text.empty() || line.text.starts_with('#')) continue;
    if (heading.empty() && !line.text.starts_with("Ty")) {
      figures.foreign(line, false);
    } else if (heading.empty()) {
      heading = heading_of(line, ':');
    } else {
      const Row row(heading, line, ':');
      const Values at = {
          {"node", unquoted(row.at("Node Desc"))}, {"guid", row.guid("GUID")}, {"port", row.whole("#IB")}};
      const bool active = row.at("Sta") == "ACT";
      take_port(figures, row, at, active, row.at("LWA"), row.at("LSA"));
      if (!active) continue;
      for (const auto& [column, metric] : {std::pair("Raw BER", "raw_ber"), std::pair("Effective BER", "effective_ber"),
                                           std::pair("Symbol BER", "symbol_ber")})
        figures.word({.metric = metric, .unit = "1", .statistic = "since_clear"}, at, row.at(column), row.from());
      take_count(figures, row, at, "symbol_errors", row.at("Symbol Err"), kHighest);
      take_count(figures, row, at, "effective_errors", row.at("Effective Err"), kHighest);
    }
  }
}

/// A counter of PM_INFO: its column, the 64-bit one that newer devices have, and the highest value of the former, as
/// PortCounters of the InfiniBand Architecture has it.
struct PmCounter {
  const char* column;
  const char* wide;
  const char* metric;
  std::uint64_t ceiling;
};

constexpr PmCounter kPmCounters[] = {
    {"SymbolErrorCounter", "SymbolErrorCounterExt", "symbol_errors", 0xffff},
    {"LinkErrorRecoveryCounter", "LinkErrorRecoveryCounterExt", "link_recoveries", 0xff},
    {"LinkDownedCounter", "LinkDownedCounterExt", "link_downs", 0xff},
    {"PortRcvErrors", "PortRcvErrorsExt", "receive_errors", 0xffff},
    {"PortXmitDiscards", "PortXmitDiscardsExt", "transmit_discards", 0xffff}};

class DbReader {
 public:
  explicit DbReader(Figures& figures) : figures_(figures) {}

  void read(const std::vector<TextLine>& lines) {
    std::string section;
    bool headed = false;
    for (const auto& line : lines) {
      if (line.text.starts_with("START_") && section.empty()) {
        section = line.text.substr(6);
        headed = false;
        if (!seen_.insert(section).second)
          throw ImportRefusal{line.from(), fmt::format("the table {} is there twice", section), kWholeHint};
        if (!read_table(section)) figures_.leave_out(line.from(), "table " + section, "it is not read");
      } else if (!section.empty() && line.text == "END_" + section) {
        section.clear();
      } else if (section.empty()) {
        if (!line.text.empty() && !line.text.starts_with('#')) figures_.foreign(line, false);
      } else if (read_table(section) && !line.text.empty()) {
        auto& table = tables_[section];
        if (headed)
          table.rows.push_back(line);
        else
          table.heading = heading_of(line, ',');
        headed = true;
      }
    }
    if (!section.empty())
      throw ImportRefusal{lines.back().from(), fmt::format("END_{} is missing: the file was cut off", section),
                          kWholeHint};
    each("NODES", [&](const Row& row) { names_[row.guid("NodeGUID")] = unquoted(row.at("NodeDesc")); });
    each("LINKS", [&](const Row& row) {
      const End one{row.guid("NodeGuid1"), row.whole("PortNum1")}, other{row.guid("NodeGuid2"), row.whole("PortNum2")};
      peers_[one] = other;
      peers_[other] = one;
    });
    each("PORTS", [&](const Row& row) { port(row); });
    each("PM_INFO", [&](const Row& row) { counters(row); });
  }

 private:
  using End = std::pair<std::string, std::int64_t>;  // GUID of the node, and the port
  struct Table {
    std::vector<std::string> heading;
    std::vector<TextLine> rows;
  };

  static bool read_table(std::string_view name) {
    return name == "NODES" || name == "LINKS" || name == "PORTS" || name == "PM_INFO";
  }
  void each(const char* name, const auto& take) {
    for (const auto& line : tables_[name].rows) take(Row(tables_[name].heading, line, ','));
  }

  Values at(const End& end) const {
    Values at = {{"guid", end.first}, {"port", end.second}};
    const auto name = names_.find(end.first);
    at.emplace("node", name == names_.end() ? end.first : name->second);
    if (const auto peer = peers_.find(end); peer != peers_.end()) {
      const auto other = names_.find(peer->second.first);
      at.emplace("peer", other == names_.end() ? peer->second.first : other->second);
      at.emplace("peer_guid", peer->second.first);
      at.emplace("peer_port", peer->second.second);
    }
    return at;
  }

  void port(const Row& row) {
    const End end{row.guid("NodeGuid"), row.whole("PortNum")};
    if (end.second == 0) return;  // a switch's own port for management, which is no link
    constexpr std::pair<std::int64_t, const char*> kWidths[] = {
        {1, "1x"}, {2, "4x"}, {4, "8x"}, {8, "12x"}, {16, "2x"}};
    constexpr std::pair<std::int64_t, const char*> kSpeeds[] = {{1, "2.5"},      {2, "5"},           {4, "10"},
                                                                {1 << 8, "14"},  {2 << 8, "25"},     {4 << 8, "50"},
                                                                {8 << 8, "100"}, {1 << 16, "FDR10"}, {1 << 24, "200"}};
    const auto word = [&](const auto& codes, const char* column) {
      const auto* known = std::ranges::find(codes, row.whole(column), [](const auto& one) { return one.first; });
      return known == std::end(codes) ? row.at(column) : std::string_view(known->second);
    };
    const bool active = row.whole("PortState") == 4;
    take_port(figures_, row, at(end), active, active ? word(kWidths, "LinkWidthActv") : "",
              active ? word(kSpeeds, "LinkSpeedActv") : "");
  }

  void counters(const Row& row) {
    const End end{row.guid("NodeGUID"), row.whole("PortNumber")};
    for (const auto& one : kPmCounters) {
      const std::string_view wide = row.at(one.wide), narrow = row.at(one.column);
      const bool is_wide = !wide.empty() && !is_absent(wide);
      if (is_wide || !narrow.empty())
        take_count(figures_, row, at(end), one.metric, is_wide ? wide : narrow, is_wide ? kHighest : one.ceiling);
    }
  }

  Figures& figures_;
  std::set<std::string> seen_;
  std::map<std::string, Table> tables_;
  std::map<std::string, std::string> names_;
  std::map<End, End> peers_;
};

}  // namespace

void read_ibdiagnet(std::string_view text, judge::ImportSource& source, Figures& figures) {
  const auto lines = lines_of(text);
  const auto begins = [&](std::string_view word) {
    return std::ranges::any_of(lines, [&](const TextLine& line) { return line.text.starts_with(word); });
  };
  const bool db = begins("START_"), ext = !db && begins("Ty ");
  source.facts["file"] = std::string(db ? "db_csv" : ext ? "net_dump_ext" : "net_dump");
  if (db)
    DbReader(figures).read(lines);
  else if (ext)
    read_net_dump_ext(lines, figures);
  else
    read_net_dump(lines, figures);
}

}  // namespace assay::imports
