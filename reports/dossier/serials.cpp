// serials: a node that shows no serial number is not the expected machine.
#include "reports/dossier/serials.h"

#include <algorithm>
#include <set>
#include <variant>

#include <fmt/format.h>

#include "reports/dossier/sign.h"

namespace assay::dossier {
namespace {

constexpr const char* kSpaceOrTab = " \t";

InputError not_these(const std::string& what, const std::string& hint) {
  return {std::string(kEvidenceFolder), what, hint};
}

bool records_serials(const plan::Plan& plan, const plan::Step& step) {
  const auto probe = plan.probes.find(step.probe);
  return step.nodes.size() == 1 && probe != plan.probes.end() &&
         std::ranges::any_of(probe->second.description.conditions,
                             [](const auto& condition) { return condition.name == kSerialCondition; });
}

}  // namespace

std::map<std::string, std::set<std::string>> recorded_serials(const judge::Run& run,
                                                              const judge::EvidenceReader& evidence) {
  std::map<std::string, std::set<std::string>> all;
  for (const auto& attempt : run.journal.attempts) {
    const plan::Step* const step = run.plan.step(attempt.step);
    if (step == nullptr || !records_serials(run.plan, *step)) continue;
    const auto record = judge::record_of(run.plan, *step, attempt, evidence);
    if (!record) continue;  // a broken record shows nothing; the node then needs another one
    for (const auto& condition : record->conditions) {
      const auto* serial = std::get_if<std::string>(&condition.value);
      if (condition.name == kSerialCondition && condition.subject.kind == "node" && serial != nullptr)
        all[step->nodes.front()].insert(*serial);
    }
  }
  return all;
}

std::expected<Serials, InputError> read_serials(std::string_view text, const std::string& where,
                                                const std::string& what, const std::string& of) {
  Serials serials;
  std::set<std::string> seen;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const auto refused = [&](const std::string& problem) {
      return std::unexpected(InputError{fmt::format("{}: line {}", where, number), problem, "n01 7XK2H13"});
    };
    const auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const auto space = line.find_first_of(kSpaceOrTab);
    const auto begin = line.find_first_not_of(kSpaceOrTab, space);
    if (space == 0 || begin == std::string_view::npos || line.find('\r', begin) != std::string_view::npos ||
        line.back() == ' ' || line.back() == '\t')
      return refused(fmt::format("is not a {} and its {}", of, what));
    const std::string node(line.substr(0, space));
    const std::string serial(line.substr(begin));
    if (!serials.emplace(node, serial).second) return refused(fmt::format("has the {} {} twice", of, node));
    if (!seen.insert(serial).second) return refused(fmt::format("has the {} {} twice", what, serial));
  }
  if (serials.empty()) return std::unexpected(InputError{where, "lists nothing", "n01 7XK2H13"});
  return serials;
}

std::optional<InputError> check_serials(const judge::Run& run, const judge::EvidenceReader& evidence,
                                        const Serials& expected) {
  const auto found = recorded_serials(run, evidence);
  for (const auto& node : run.plan.site.nodes) {
    const auto wanted = expected.find(node.name);
    if (wanted == expected.end())
      return not_these(fmt::format("tests the node {}, which the list of serial numbers does not have", node.name),
                       "this is a dossier of other machines");
    const auto shown = found.find(node.name);
    if (shown == found.end())
      return not_these(fmt::format("has no serial number of the node {}, expected {}", node.name, wanted->second),
                       "health_inventory records it as root, where SMBIOS is shown; the profile must use that probe");
    for (const auto& serial : shown->second) {
      if (serial != wanted->second)
        return not_these(
            fmt::format("has the serial number {} of the node {}, expected {}", serial, node.name, wanted->second),
            "another machine was tested under that name");
    }
  }
  for (const auto& [node, serial] : expected) {
    if (run.plan.site.node(node) == nullptr)
      return not_these(fmt::format("does not test the node {} with the serial number {}", node, serial),
                       "this is a dossier of fewer machines");
  }
  return std::nullopt;
}

}  // namespace assay::dossier
