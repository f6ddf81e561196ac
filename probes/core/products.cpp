// products: factors over parameters, and conditions on them.
#include "probes/core/products.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <system_error>

#include <fmt/format.h>

namespace assay {
namespace {

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

}  // namespace

std::vector<std::string_view> words_in(std::string_view text, char between) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const auto end = std::min(text.find(between), text.size());
    if (end > 0) words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

double product_of(std::string_view text, const Values& parameters, std::size_t ranks) {
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

std::string when_problem(std::string_view when, const std::vector<std::string>& parameters) {
  for (const auto clause : words_in(when, ' ')) {
    const auto sign = clause.find_first_of("=~");
    if (sign == std::string_view::npos || std::ranges::count(parameters, clause.substr(0, sign)) == 0)
      return fmt::format("'{}' does not begin with a parameter and = or ~", clause);
  }
  return "";
}

}  // namespace assay
