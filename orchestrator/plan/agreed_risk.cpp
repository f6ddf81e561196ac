// agreed_risk: reads the agreement of two parties from one option.
#include "orchestrator/plan/agreed_risk.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "probes/core/suggest.h"

namespace assay::plan {
namespace {

constexpr const char* kHint = "write shares in per cent, such as beyond=4,vendor=5,short=2,buyer=5";

/// One number of an agreement: its name in the option, and its range in per cent.
struct Part {
  const char* name;
  double AgreedRisk::*member;
  double least, most;
  bool needed;
};

constexpr std::array<Part, 7> kParts = {{{"beyond", &AgreedRisk::beyond, 0.01, 50, true},
                                         {"vendor", &AgreedRisk::vendor_risk, 0.01, 50, true},
                                         {"short", &AgreedRisk::short_by, 0.01, 50, true},
                                         {"buyer", &AgreedRisk::buyer_risk, 0.01, 50, true},
                                         {"bad", &AgreedRisk::bad_nodes, 0.001, 100, false},
                                         {"nodes", &AgreedRisk::between_nodes, 0, 50, false},
                                         {"runs", &AgreedRisk::between_runs, 0, 50, false}}};

}  // namespace

std::expected<void, InputError> check_agreed_risk(const AgreedRisk& risk, const std::string& where) {
  for (const Part& part : kParts) {
    const double share = risk.*part.member;
    if (share >= part.least / 100 && share <= part.most / 100) continue;
    return std::unexpected(
        InputError{fmt::format("{}: {}", where, part.name),
                   fmt::format("{:g} % is not between {:g} % and {:g} %", share * 100, part.least, part.most), kHint});
  }
  return {};
}

std::expected<AgreedRisk, InputError> read_agreed_risk(std::string_view text, const std::string& where) {
  AgreedRisk risk;
  std::set<std::string_view> seen;
  while (!text.empty()) {
    const std::string_view entry = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), entry.size() + 1));
    const std::size_t equals = entry.find('=');
    const std::string_view name = entry.substr(0, equals);
    const auto part = std::ranges::find(kParts, name, &Part::name);
    if (part == kParts.end()) {
      std::vector<std::string> names;
      for (const Part& one : kParts) names.emplace_back(one.name);
      return std::unexpected(
          InputError{where, fmt::format("'{}' is none of its numbers", name), suggestion(std::string(name), names)});
    }
    double per_cent = 0;
    const char* const end = entry.data() + entry.size();
    const char* const begin = equals == std::string_view::npos ? end : entry.data() + equals + 1;
    const auto read = std::from_chars(begin, end, per_cent);
    if (read.ec != std::errc{} || read.ptr != end)
      return std::unexpected(InputError{where, fmt::format("'{}' is not a number of {}", entry, name), kHint});
    if (!seen.insert(part->name).second)
      return std::unexpected(InputError{where, fmt::format("{} is given twice", name), kHint});
    risk.*part->member = per_cent / 100;
  }
  for (const Part& part : kParts) {
    if (part.needed && !seen.contains(part.name))
      return std::unexpected(InputError{where, fmt::format("has no {}", part.name), kHint});
  }
  if (auto checked = check_agreed_risk(risk, where); !checked) return std::unexpected(checked.error());
  return risk;
}

}  // namespace assay::plan
