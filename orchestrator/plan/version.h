// version: the order of versions, and demands on one.
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "probes/core/fields.h"

namespace assay::plan {

/// The order of two versions; nothing if one of them is not a version.
///
/// A version is up to 16 whole numbers with points between, of at most nine digits each, and then perhaps a suffix that
/// begins with -, +, ~, _ or a letter: 580.82.07, 28.43.1014, 5.15.0-113-generic, 1.17.8-1, 1.1.1w, 2.28.3+cuda12.9.
/// Anything else is none, and is never guessed at: "v1.2", "580 MHz", "N/A", more than 100 characters, and numbers with
/// letters within or capitals behind them (96.00.5C.00.01), which may be hexadecimal.
///
/// Numbers are compared part by part as numbers, and a missing one is 0 (PEP 440, "Version comparison"):
/// 580.82.07 = 580.82.7, 580.82 = 580.82.0 < 580.82.07. Where all are equal, suffixes are ordered as dpkg orders them
/// (deb-version(7), "Sorting algorithm"): 5.15.0 < 5.15.0-113-generic < 5.15.0-119-generic, -1ubuntu0.1 < -1ubuntu0.3.
/// One difference: rc, alpha, beta, pre, preview and dev stand before the release, as ~ does: 6.8.0-rc3 < 6.8.0.
std::optional<std::weak_ordering> compare_versions(std::string_view a, std::string_view b);

/// Whether compare_versions can order it.
bool is_version(std::string_view text);

/// Versions from one on and below another one.
struct VersionSpan {
  std::string from;  ///< empty: from the first one on
  std::string below;
  bool operator==(const VersionSpan&) const = default;
};

template <class Io, Of<VersionSpan> S>
void fields(Io& io, S& span) {
  io.sparse("from", span.from), io("below", span.below);
}

/// A span with a known fault, and its source.
struct Advisory {
  std::string component;  ///< of profiles/advisories.json; empty within a requirement, which names it
  VersionSpan span;
  std::string what;      ///< the fault, in one clause
  std::string severity;  ///< critical | high | medium | low
  std::string document, address, date;
  bool operator==(const Advisory&) const = default;
};

template <class Io, Of<Advisory> A>
void fields(Io& io, A& one) {
  io.sparse("component", one.component), fields(io, one.span), io("what", one.what), io("severity", one.severity);
  io("document", one.document), io("address", one.address), io("date", one.date);
}

/// Demands on a version; everything that is given must hold.
struct VersionRange {
  std::string at_least, below;  ///< empty: no bound
  std::vector<std::string> one_of;
  std::vector<VersionSpan> outside;
  std::string advisories;           ///< the component whose known_bad these are; empty: none
  std::string dated;                ///< the day of the table that known_bad are from
  std::vector<Advisory> known_bad;  ///< assay fills them in from profiles/advisories.json, so that a plan keeps them
  bool operator==(const VersionRange&) const = default;
};

template <class Io, Of<VersionRange> R>
void fields(Io& io, R& range) {
  io.sparse("at_least", range.at_least), io.sparse("below", range.below), io.sparse("one_of", range.one_of);
  io.sparse("outside", range.outside), io.sparse("advisories", range.advisories), io.sparse("dated", range.dated);
  io.sparse("known_bad", range.known_bad);
}

/// "at least 580.82 and outside the advisories on nvidia_driver".
std::string words_of(const VersionRange& range);

/// The first demand of `range` that the version `text`, which is one, misses: "is below 580.82"; of an advisory its own
/// words. Empty if it meets all.
std::string missed_of(const VersionRange& range, std::string_view text);

/// What the advisories of `range` say of the branch of the version `text`, which is one: its first number, and how many
/// rows have versions of it. A branch without a row is not known to be good.
struct BranchRows {
  std::string branch;
  std::size_t rows = 0;
};
BranchRows rows_on_branch(const VersionRange& range, std::string_view text);

/// Whether a version may meet `now` that did not meet `before`, as far as comparing their members shows.
bool is_looser(const VersionRange& before, const VersionRange& now);

/// The first text in `range` that is not a version, with the name of its member, "outside[0].from"; nothing if there is
/// none.
struct OddVersion {
  std::string member, text;
};
std::optional<OddVersion> odd_version(const VersionRange& range);

}  // namespace assay::plan
