// slurm_nodes: records by their first field, fields by blanks, the reason by Slurm's order of printing
// (src/api/node_info.c of Slurm 20.11 to 25.11).
#include "orchestrator/site/slurm_nodes.h"

#include <algorithm>
#include <array>
#include <sstream>

#include <fmt/format.h>

#include "probes/core/text.h"

namespace assay::site {
namespace {

constexpr std::string_view kName = "NodeName=", kReason = "Reason=";

/// Whether `rest`, the text after a reason, begins with another field of Slurm.
bool is_known_field(std::string_view rest) {
  constexpr std::array<std::string_view, 9> kAfter = {"Comment=",      "Extra=",           "InstanceId=",
                                                      "InstanceType=", "ReservationName=", "TLSCert",
                                                      "Topology=",     "Parameters=",      "NextState="};
  return std::ranges::any_of(kAfter, [&](std::string_view field) { return rest.starts_with(field); });
}

std::string_view without_blanks(std::string_view text) {
  while (!text.empty() && std::string_view(" \t\r\n").contains(text.front())) text.remove_prefix(1);
  while (!text.empty() && std::string_view(" \t\r\n").contains(text.back())) text.remove_suffix(1);
  return text;
}

/// "Word=…", with which every field begins.
bool is_field(std::string_view rest) {
  const auto equals = rest.find('=');
  return equals != std::string_view::npos && rest.front() >= 'A' && rest.front() <= 'Z' &&
         has_only(rest.substr(0, equals), "_");
}

/// Takes the reason off the front of `text`, which begins behind "Reason=" and ends with the record.
void take_reason(std::string_view text, SlurmNode& node) {
  std::vector<std::pair<std::size_t, std::string_view>> stamps;  // begin of "[USER@TIME]", and the text after it
  for (auto at = text.find(" ["); at != std::string_view::npos; at = text.find(" [", at + 1)) {
    const auto close = text.find_first_of("[]\n", at + 2);
    if (close != std::string_view::npos && text[close] == ']' && text.find('@', at) < close)
      stamps.emplace_back(at, without_blanks(text.substr(close + 1)));
  }
  const auto ends = std::ranges::find_if(
      stamps, [](const auto& stamp) { return stamp.second.empty() || is_known_field(stamp.second); });
  auto end = ends == stamps.end() ? std::string_view::npos : ends->first;
  if (ends == stamps.end() && stamps.size() == 1 && is_field(stamps[0].second)) end = stamps[0].first;  // a new field
  for (auto at = text.find_first_of(" \n"); stamps.empty() && end == std::string_view::npos && at < text.size();
       at = text.find_first_of(" \n", at + 1)) {
    if (is_known_field(text.substr(at + 1))) end = at;
  }
  node.reason = std::string(without_blanks(text.substr(0, end)));
  node.reason_ends_surely = stamps.size() == 1;
}

bool take_record(std::string_view record, SlurmNode& node) {
  std::string_view fields = record;
  for (auto at = record.find(kReason); at != std::string_view::npos; at = record.find(kReason, at + 1)) {
    if (at == 0 || !std::string_view(" \t\n").contains(record[at - 1])) continue;
    fields = record.substr(0, at);
    take_reason(record.substr(at + kReason.size()), node);
    break;
  }
  std::istringstream words{std::string(fields)};
  for (std::string word; words >> word;) {
    if (const auto equals = word.find('='); equals != std::string::npos)
      node.fields.emplace(word.substr(0, equals), word.substr(equals + 1));
  }
  node.name = node.fields["NodeName"];
  return is_node_name(node.name);
}

}  // namespace

std::expected<std::vector<SlurmNode>, InputError> read_slurm_nodes(std::string_view text, const std::string& where) {
  std::vector<SlurmNode> nodes;
  std::vector<std::string> records;
  std::istringstream lines{std::string(text)};
  std::string line;
  const auto wrong = [&](std::size_t number) {
    return std::unexpected(InputError{fmt::format("{}: line {}", where, number),
                                      "is not a node of `scontrol show node`",
                                      "pass the output of scontrol unchanged"});
  };
  for (std::size_t number = 1; std::getline(lines, line); ++number) {
    if (without_blanks(line).empty()) continue;
    if (line.starts_with(kName)) {
      nodes.push_back({.line = number});
      records.emplace_back();
    } else if (records.empty() || !std::string_view(" \t").contains(line.front())) {
      return wrong(number);  // the lines of a node after its first are indented
    }
    records.back() += line + "\n";
  }
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!take_record(records[i], nodes[i])) return wrong(nodes[i].line);
  }
  return nodes;
}

}  // namespace assay::site
