// space: products of parameters, and statvfs in a process that may be given up.
#include "probes/core/space.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "probes/core/child.h"

namespace assay {
namespace {

std::vector<std::string_view> words_in(std::string_view text, char between) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const auto end = std::min(text.find(between), text.size());
    if (end > 0) words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

std::optional<double> plain_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value) || value < 0)
    return std::nullopt;
  return value;
}

double term_of(std::string_view word, const Values& parameters, std::size_t ranks) {
  if (const auto number = plain_number(word)) return *number;
  if (word == "ranks") return static_cast<double>(ranks);
  const auto bar = word.find('|');
  const auto found = parameters.find(std::string(word.substr(0, bar)));
  const double own = found == parameters.end() ? 0 : number_in(found->second).value_or(0);
  return own != 0 || bar == std::string_view::npos ? own : plain_number(word.substr(bar + 1)).value_or(0);
}

double value_of(std::string_view factor, const Values& parameters, std::size_t ranks) {
  double sum = 0;
  for (const auto term : words_in(factor, '+')) sum += term_of(term, parameters, ranks);
  return sum;
}

double product(std::string_view text, const Values& parameters, std::size_t ranks) {
  double result = 1;
  for (const auto factor : words_in(text, ' ')) {
    const bool divides = factor.starts_with('/');
    const double value = value_of(factor.substr(divides ? 1 : 0), parameters, ranks);
    if (divides && value == 0) return 0;  // the probe refuses such a parameter
    result = divides ? result / value : result * value;
  }
  return result;
}

bool holds(std::string_view when, const Values& parameters) {
  return std::ranges::all_of(words_in(when, ' '), [&](std::string_view clause) {
    const auto sign = clause.find_first_of("=~");
    const auto found = parameters.find(std::string(clause.substr(0, sign)));
    if (found == parameters.end()) return false;
    const auto* text = std::get_if<std::string>(&found->second);
    if (text == nullptr) return false;
    const std::string_view wanted = clause.substr(sign + 1);
    if (clause[sign] == '=') return *text == wanted;
    return std::ranges::count(words_in(*text, ','), wanted) > 0;
  });
}

std::string product_problem(std::string_view text, const std::vector<std::string>& parameters) {
  const auto factors = words_in(text, ' ');
  if (factors.empty()) return "is empty";
  for (auto factor : factors) {
    if (factor.starts_with('/')) factor.remove_prefix(1);
    for (const auto term : words_in(factor, '+')) {
      const auto bar = term.find('|');
      const std::string_view name = term.substr(0, bar);
      const bool alternative = bar == std::string_view::npos || plain_number(term.substr(bar + 1));
      const bool known = name == "ranks" || plain_number(name) || std::ranges::count(parameters, name) > 0;
      if (!known || !alternative) return fmt::format("'{}' is neither a number nor a parameter of the probe", term);
    }
  }
  return "";
}

}  // namespace

std::vector<SpaceNeed> space_needs(const std::vector<OwnSpaceRule>& rules, const Values& parameters,
                                   std::size_t ranks) {
  std::vector<SpaceNeed> needs;
  std::vector<std::string> seen;
  for (const auto& rule : rules) {
    if (std::ranges::count(seen, rule.into) > 0 || !holds(rule.when, parameters)) continue;
    seen.push_back(rule.into);
    const auto directory = parameters.find(rule.into);
    if (directory == parameters.end()) continue;
    const double held = product(rule.held, parameters, ranks);
    if (!(held > 0)) continue;
    needs.push_back(
        {.directory = std::get<std::string>(directory->second),
         .shared = rule.shared,
         .held = held,
         .written = rule.times.empty() ? std::nullopt : std::optional(held * product(rule.times, parameters, ranks))});
  }
  return needs;
}

std::string space_rule_problem(const OwnSpaceRule& rule, const std::vector<std::string>& parameters) {
  if (std::ranges::count(parameters, rule.into) == 0) return fmt::format("into: there is no parameter {}", rule.into);
  for (const auto clause : words_in(rule.when, ' ')) {
    const auto sign = clause.find_first_of("=~");
    if (sign == std::string_view::npos || std::ranges::count(parameters, clause.substr(0, sign)) == 0)
      return fmt::format("when: '{}' does not begin with a parameter and = or ~", clause);
  }
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
    std::uint64_t all = 0, blocks = 0, size = 0;
    for (const auto& [word, into] :
         {std::pair{words[0], &all}, std::pair{words[1], &blocks}, std::pair{words[2], &size}}) {
      const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), *into);
      if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
    }
    return all == 0 ? std::nullopt : std::optional(blocks * size);
  } catch (const std::system_error&) {  // no process can be started: the probe will find out what is free
    return std::nullopt;
  }
}

}  // namespace assay
