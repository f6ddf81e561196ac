// agreed_risk: reads the agreement of two parties from one option.
#include "orchestrator/plan/agreed_risk.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "orchestrator/plan/named_values.h"

namespace assay::plan {
namespace {

constexpr const char* kHint = "write shares in per cent, such as beyond=4,vendor=5,short=2,buyer=5";

/// One number of an agreement: its name in the option, and its range in per cent.
struct Part {
  std::string_view name;
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
  std::array<std::string_view, kParts.size()> names;
  std::ranges::transform(kParts, names.begin(), &Part::name);
  const auto values = named_values(text, names, where, kHint);
  if (!values) return std::unexpected(values.error());
  AgreedRisk risk;
  for (const Part& part : kParts) {
    const auto value = values->find(part.name);
    if (value == values->end() && part.needed)
      return std::unexpected(InputError{where, fmt::format("has no {}", part.name), kHint});
    if (value == values->end()) continue;
    const auto per_cent = named_number(part.name, value->second, where, kHint);
    if (!per_cent) return std::unexpected(per_cent.error());
    risk.*part.member = *per_cent / 100;
  }
  if (auto checked = check_agreed_risk(risk, where); !checked) return std::unexpected(checked.error());
  return risk;
}

}  // namespace assay::plan
