// space: products of parameters, and statvfs in a process that may be given up.
#include "probes/core/space.h"

#include <algorithm>
#include <system_error>

#include <fmt/format.h>

#include "probes/core/child.h"
#include "probes/core/products.h"
#include "probes/core/whole_number.h"

namespace assay {

std::vector<SpaceNeed> space_needs(const std::vector<OwnSpaceRule>& rules, const Values& parameters,
                                   std::size_t ranks) {
  std::vector<SpaceNeed> needs;
  std::vector<std::string> seen;
  for (const auto& rule : rules) {
    if (std::ranges::count(seen, rule.into) > 0 || !holds(rule.when, parameters)) continue;
    seen.push_back(rule.into);
    const auto directory = parameters.find(rule.into);
    if (directory == parameters.end()) continue;
    const double held = product_of(rule.held, parameters, ranks);
    if (!(held > 0)) continue;
    needs.push_back({.directory = std::get<std::string>(directory->second),
                     .shared = rule.shared,
                     .held = held,
                     .written = rule.times.empty() ? std::nullopt
                                                   : std::optional(held * product_of(rule.times, parameters, ranks))});
  }
  return needs;
}

std::string space_rule_problem(const OwnSpaceRule& rule, const std::vector<std::string>& parameters) {
  if (std::ranges::count(parameters, rule.into) == 0) return fmt::format("into: there is no parameter {}", rule.into);
  if (auto problem = when_problem(rule.when, parameters); !problem.empty()) return "when: " + problem;
  if (auto problem = product_problem(rule.held, parameters); !problem.empty()) return "held: " + problem;
  if (rule.times.empty()) return "";
  if (auto problem = product_problem(rule.times, parameters); !problem.empty()) return "times: " + problem;
  return "";
}

std::optional<std::uint64_t> free_space(const std::string& directory, Seconds patience) {
  const auto shell = find_program("sh");
  if (!shell) return std::nullopt;
  constexpr const char* kAsk = "exec stat -f -c '%b %a %S' -- \"$1\" 2>/dev/null";  // its complaints help no reader
  try {
    const auto said = run_child(*shell, {"-c", kAsk, "sh", directory}, patience);
    if (said.end != ChildEnd::exited || said.code != 0) return std::nullopt;
    const std::string_view line = std::string_view(said.output).substr(0, said.output.find('\n'));
    const auto words = words_in(line, ' ');
    if (words.size() != 3) return std::nullopt;
    const auto all = whole_number<std::uint64_t>(words[0]), blocks = whole_number<std::uint64_t>(words[1]),
               size = whole_number<std::uint64_t>(words[2]);
    if (!all || *all == 0 || !blocks || !size) return std::nullopt;
    return *blocks * *size;
  } catch (const std::system_error&) {  // no process can be started: the probe will find the free space
    return std::nullopt;
  }
}

}  // namespace assay
