// version: reads the numbers and the suffix of each version, then compares numbers, then suffixes; see version.h.
#include "orchestrator/plan/version.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

#include <fmt/ranges.h>

namespace assay::plan {
namespace {

constexpr std::size_t kLongest = 100;  // of a whole version; those of packages with build and distribution have 50
constexpr std::size_t kMostNumbers = 16;
constexpr std::size_t kMostDigits = 9;  // so that a number fits 32 bits; a date has eight

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// Takes the characters at the begin of `text` that `fits`.
template <class Fits>
std::string_view taken(std::string_view& text, Fits fits) {
  const auto end = std::ranges::find_if_not(text, fits);
  const auto first = text.substr(0, static_cast<std::size_t>(end - text.begin()));
  text.remove_prefix(first.size());
  return first;
}

struct Parts {
  std::vector<std::uint32_t> numbers;
  std::string suffix;  ///< of a pre-release: begins with ~
};

/// "rc3" of "-rc3", if the first word is one of a pre-release; else empty.
std::string_view pre_release(std::string_view suffix) {
  constexpr std::string_view kWords[] = {"rc", "alpha", "beta", "pre", "preview", "dev"};
  if (!suffix.empty() && !is_letter(suffix.front())) suffix.remove_prefix(1);
  std::string_view rest = suffix;
  return std::ranges::find(kWords, taken(rest, is_letter)) == std::end(kWords) ? std::string_view{} : suffix;
}

/// Whether `text` is empty or a suffix. Letters directly behind a number are lower case, as in 1.1.1w and 1.0rc1, and
/// end there: 96.00.5C may be hexadecimal.
bool is_suffix(std::string_view text) {
  const auto allowed = [](char c) { return is_digit(c) || is_letter(c) || std::string_view(".-+~_").contains(c); };
  if (!std::ranges::all_of(text, allowed)) return false;
  if (text.empty() || !is_letter(text.front())) return text.empty() || text.front() != '.';
  if (text.front() <= 'Z') return false;
  (void)taken(text, is_letter);  // both only move on
  (void)taken(text, is_digit);
  return text.empty() || (text.front() != '.' && !is_letter(text.front()));
}

std::optional<Parts> parts_of(std::string_view text) {
  if (text.size() > kLongest) return std::nullopt;
  Parts parts;
  for (;;) {
    const auto digits = taken(text, is_digit);
    if (digits.empty() || digits.size() > kMostDigits || parts.numbers.size() == kMostNumbers) return std::nullopt;
    (void)std::from_chars(digits.data(), digits.data() + digits.size(), parts.numbers.emplace_back());  // only digits
    if (text.empty() || text.front() != '.') break;
    text.remove_prefix(1);
  }
  if (!is_suffix(text)) return std::nullopt;
  const auto before = pre_release(text);
  parts.suffix = before.empty() ? std::string(text) : fmt::format("~{}", before);
  return parts;
}

/// Place of a character among the non-digits of dpkg: ~ before the end, the end before letters, letters before others.
int rank_of(std::string_view text) {
  if (text.empty() || is_digit(text.front())) return 0;
  if (text.front() == '~') return -1;
  return is_letter(text.front()) ? text.front() : text.front() + 256;
}

/// dpkg's comparison: non-digits one by one, then the number behind them, and so on.
std::weak_ordering compare_suffixes(std::string_view a, std::string_view b) {
  const auto is_word = [](std::string_view text) { return !text.empty() && !is_digit(text.front()); };
  while (!a.empty() || !b.empty()) {
    while (is_word(a) || is_word(b)) {
      if (const auto order = rank_of(a) <=> rank_of(b); order != 0) return order;
      a.remove_prefix(1);
      b.remove_prefix(1);
    }
    const auto number = [](std::string_view& text) {
      (void)taken(text, [](char c) { return c == '0'; });  // a leading zero counts for nothing
      return taken(text, is_digit);
    };
    const auto of_a = number(a), of_b = number(b);
    if (const auto order = of_a.size() <=> of_b.size(); order != 0) return order;
    if (const auto order = of_a <=> of_b; order != 0) return order;
  }
  return std::weak_ordering::equivalent;
}

bool is_less(std::string_view a, std::string_view b) {
  const auto order = compare_versions(a, b);
  return order && *order < 0;
}
bool is_same(std::string_view a, std::string_view b) {
  const auto order = compare_versions(a, b);
  return order && *order == 0;
}
bool is_in(const VersionSpan& span, std::string_view text) {
  return (span.from.empty() || !is_less(text, span.from)) && is_less(text, span.below);
}
std::string words_of(const VersionSpan& span) {
  return span.from.empty() ? "below " + span.below : fmt::format("from {} and below {}", span.from, span.below);
}

/// Whether every one of `some` is among `all`.
template <class One>
bool has_all(const std::vector<One>& all, const std::vector<One>& some) {
  return std::ranges::all_of(some, [&](const One& one) { return std::ranges::find(all, one) != all.end(); });
}

}  // namespace

std::optional<std::weak_ordering> compare_versions(std::string_view a, std::string_view b) {
  auto of_a = parts_of(a), of_b = parts_of(b);
  if (!of_a || !of_b) return std::nullopt;
  const auto most = std::max(of_a->numbers.size(), of_b->numbers.size());
  of_a->numbers.resize(most);
  of_b->numbers.resize(most);
  if (const auto order = of_a->numbers <=> of_b->numbers; order != 0) return order;
  return compare_suffixes(of_a->suffix, of_b->suffix);
}

bool is_version(std::string_view text) { return parts_of(text).has_value(); }

std::string words_of(const VersionRange& range) {
  std::vector<std::string> all;
  if (!range.at_least.empty()) all.push_back("at least " + range.at_least);
  if (!range.below.empty()) all.push_back("below " + range.below);
  if (!range.one_of.empty()) all.push_back(fmt::format("one of {}", fmt::join(range.one_of, ", ")));
  for (const auto& span : range.outside) all.push_back("not " + words_of(span));
  if (!range.advisories.empty())
    all.push_back(fmt::format("outside the advisories on {} of {}", range.advisories, range.dated));
  return fmt::format("version {}", fmt::join(all, " and "));
}

std::string missed_of(const VersionRange& range, std::string_view text) {
  if (!range.at_least.empty() && is_less(text, range.at_least)) return "is below " + range.at_least;
  if (!range.below.empty() && !is_less(text, range.below)) return "is not below " + range.below;
  if (!range.one_of.empty() &&
      std::ranges::none_of(range.one_of, [&](const std::string& one) { return is_same(one, text); }))
    return fmt::format("is none of {}", fmt::join(range.one_of, ", "));
  for (const auto& span : range.outside) {
    if (is_in(span, text)) return fmt::format("is {}, which is ruled out", words_of(span));
  }
  for (const auto& one : range.known_bad) {
    if (is_in(one.span, text))
      return fmt::format("is known to be bad, {}: {} ({}; {}, {}, {})", words_of(one.span), one.what, one.severity,
                         one.document, one.date, one.address);
  }
  return "";
}

BranchRows rows_on_branch(const VersionRange& range, std::string_view text) {
  const auto parts = parts_of(text);
  if (!parts) return {};
  const std::string branch = std::to_string(parts->numbers.front()), next = std::to_string(parts->numbers.front() + 1);
  const auto rows = std::ranges::count_if(range.known_bad, [&](const Advisory& one) {
    return (one.span.from.empty() || is_less(one.span.from, next)) && is_less(branch, one.span.below);
  });
  return {.branch = branch, .rows = static_cast<std::size_t>(rows)};
}

bool is_looser(const VersionRange& before, const VersionRange& now) {
  const bool floor = !before.at_least.empty() && (now.at_least.empty() || is_less(now.at_least, before.at_least));
  const bool cap = !before.below.empty() && (now.below.empty() || is_less(before.below, now.below));
  const bool set = !before.one_of.empty() && (now.one_of.empty() || !has_all(before.one_of, now.one_of));
  return floor || cap || set || !has_all(now.outside, before.outside) || !has_all(now.known_bad, before.known_bad);
}

std::optional<OddVersion> odd_version(const VersionRange& range) {
  std::optional<OddVersion> odd;
  const auto look = [&](const std::string& member, const std::string& text, bool may_lack) {
    if (!odd && !(may_lack && text.empty()) && !is_version(text)) odd = OddVersion{.member = member, .text = text};
  };
  look("at_least", range.at_least, true);
  look("below", range.below, true);
  for (std::size_t i = 0; i < range.one_of.size(); ++i) look(fmt::format("one_of[{}]", i), range.one_of[i], false);
  const auto look_at = [&](const std::string& member, const VersionSpan& span) {
    look(member + ".from", span.from, true);
    look(member + ".below", span.below, false);
    if (!odd && !span.from.empty() && !is_less(span.from, span.below))
      odd = OddVersion{.member = member + ".from", .text = span.from};
  };
  for (std::size_t i = 0; i < range.outside.size(); ++i) look_at(fmt::format("outside[{}]", i), range.outside[i]);
  for (std::size_t i = 0; i < range.known_bad.size(); ++i)
    look_at(fmt::format("known_bad[{}]", i), range.known_bad[i].span);
  return odd;
}

}  // namespace assay::plan
