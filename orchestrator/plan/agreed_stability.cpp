// agreed_stability: reads the agreement, finds its requirement in a plan, and refuses a plan that does not keep it.
#include "orchestrator/plan/agreed_stability.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/ranges.h>

#include "orchestrator/plan/metered.h"
#include "orchestrator/plan/named_values.h"
#include "orchestrator/plan/plan.h"
#include "probes/core/portable_math.h"

namespace assay::plan {
namespace {

constexpr const char* kStabilityHint =
    "write hours, and risks in per cent, such as hours=72,tolerated=3,refused=400,accepted=4000,vendor=5,buyer=5";
constexpr const char* kStabilityOption = "--stability";
constexpr double kHour_s = 3600;

/// One number of an agreement: its name in the option, and its range there.
struct StabilityPart {
  std::string_view name;
  double AgreedStability::*member;
  double least, most, unit;
};

constexpr std::array<StabilityPart, 5> kStabilityParts = {
    {{"hours", &AgreedStability::hours, 1e-3, 8760, 1},
     {"refused", &AgreedStability::refused_mtbf_h, 1e-4, 1e9, 1},
     {"accepted", &AgreedStability::accepted_mtbf_h, 1e-4, 1e9, 1},
     {"vendor", &AgreedStability::vendor_risk, 0.01, 50, 100},
     {"buyer", &AgreedStability::buyer_risk, 0.01, 50, 100}}};
constexpr std::array<std::string_view, 8> kStabilityNames = {"hours", "refused",   "accepted", "vendor",
                                                             "buyer", "tolerated", "stop",     "counts"};

InputError unkept(std::string what, std::string hint = "") {
  return {kStabilityOption, std::move(what), std::move(hint)};
}

/// The words of `text` between plus signs.
std::expected<std::vector<Interruption>, InputError> classes_in(std::string_view text, const std::string& where) {
  std::vector<Interruption> classes;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find('+'));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    const auto known = from_word<Interruption>(word);
    if (!known)
      return std::unexpected(InputError{where + ": counts", fmt::format("'{}' is no class of interruptions", word),
                                        "known are: " + words_listed<Interruption>()});
    classes.push_back(*known);
  }
  std::ranges::sort(classes);
  return classes;
}

std::string words_of_classes(const std::vector<Interruption>& classes) {
  return fmt::format("{}", fmt::join(classes, "+"));
}

/// Whether `requirement` judges exactly these classes.
bool judges_classes(const Requirement& requirement, const std::vector<Interruption>& classes) {
  if (requirement.at_every) return classes.size() == kInterruptions;
  return classes.size() == 1 && requirement.at == Values{{"class", std::string(word_of(classes.front()))}};
}

const Step* window_step(const Plan& plan, const Requirement& requirement) {
  const auto step = std::ranges::find_if(plan.steps, [&](const Step& one) {
    return std::ranges::find(one.requirements, requirement.id) != one.requirements.end();
  });
  return step == plan.steps.end() ? nullptr : &*step;
}

double load_hours(const Step& step) {
  const auto load = step.parameters.find("load_least");
  return load == step.parameters.end() ? 0 : number_in(load->second).value_or(0) / kHour_s;
}

/// The step of the one count of interruptions; refused without it, with several, and if a node lacks it.
std::expected<const Step*, InputError> measured_window(const Plan& plan) {
  const auto all = std::ranges::count_if(plan.profile.requirements, counts_interruptions);
  if (all != 1)
    return std::unexpected(
        unkept(fmt::format("the profile {} has {} required counts of interruptions of a node", plan.profile.name, all),
               "hours under load are judged by one, as in soak-host"));
  const Requirement& requirement = *window_requirement(plan);
  for (const auto& cell : plan.coverage) {
    if (cell.requirement == requirement.id && cell.step.empty())
      return std::unexpected(
          unkept(fmt::format("nothing measures {} on {}: {}", requirement.id, cell.subject.id, cell.reason)));
  }
  const Step* step = window_step(plan, requirement);
  if (step == nullptr) return std::unexpected(unkept(fmt::format("nothing measures {}", requirement.id)));
  return step;
}

/// The errors of hours and limits, before any risk is computed.
std::optional<InputError> check_window(const Plan& plan, const Requirement& requirement, const Step& step) {
  const AgreedStability& agreed = *plan.agreed_stability;
  if (plan.quick) return unkept("a rehearsal has no hours under load", "leave --quick out");
  const double each = load_hours(step);
  if (!(each > 0)) return unkept(fmt::format("{} does not say how long it loads a node", step.probe));
  if (agreed.hours < each)
    return unkept(fmt::format("a window of {:g} h is shorter than one attempt of {} of {:g} h", agreed.hours,
                              requirement.id, each),
                  "agree on more hours, or give `load_least` in the profile");
  constexpr double kRounding = 1e-9;
  if (looks_wanted(agreed, step) == 1 && agreed.hours > each * (1 + kRounding)) {
    const double whole = std::clamp(std::floor(agreed.hours / each), 1.0, static_cast<double>(kMostLooks));
    return unkept(fmt::format("{:g} h are not 1 to {} attempts of {:g} h", agreed.hours, kMostLooks, each),
                  fmt::format("agree on {:g} h, or give `load_least` in the profile", whole * each));
  }
  if (agreed.stop == StabilityStop::early && step.attempts == 1)
    return unkept(fmt::format("one attempt of {:g} h has nothing to stop", each),
                  "agree on more hours, or give less as `load_least` in the profile");
  if (step.more_attempts > 0)
    return unkept(fmt::format("{} may be measured again after its planned attempts", requirement.id),
                  "give more_attempts 0 to all requirements of this probe");
  if (*requirement.limit.at_most < agreed.tolerated)
    return unkept(fmt::format("{} tolerates {:g} of a node, and the agreement {} of all", requirement.id,
                              *requirement.limit.at_most, agreed.tolerated),
                  fmt::format("extend the profile {} with at_most {} there", plan.profile.name, agreed.tolerated));
  if (!judges_classes(requirement, agreed.counts))
    return unkept(fmt::format("counts {}, and {} judges {}", words_of_classes(agreed.counts), requirement.id,
                              requirement.at_every ? "every class" : "other classes"),
                  "both must be of the same classes");
  if (!(least_load_share(plan) > 0))
    return unkept("nothing requires a share of the hours to be under load",
                  "require load_share at_least 0.9 of the same probe, as soak-host does");
  return std::nullopt;
}

}  // namespace

std::expected<void, InputError> check_agreed_stability(const AgreedStability& agreed, const std::string& where) {
  for (const StabilityPart& part : kStabilityParts) {
    const double value = agreed.*part.member * part.unit;
    if (value >= part.least && value <= part.most) continue;
    return std::unexpected(InputError{fmt::format("{}: {}", where, part.name),
                                      fmt::format("{:g} is not between {:g} and {:g}", value, part.least, part.most),
                                      kStabilityHint});
  }
  if (agreed.tolerated < 0 || agreed.tolerated > kMostTolerated)
    return std::unexpected(InputError{where + ": tolerated",
                                      fmt::format("{} is not between 0 and {}", agreed.tolerated, kMostTolerated),
                                      "it is of all nodes together"});
  if (agreed.refused_mtbf_h >= agreed.accepted_mtbf_h)
    return std::unexpected(InputError{
        where, fmt::format("refused={:g} is not below accepted={:g}", agreed.refused_mtbf_h, agreed.accepted_mtbf_h),
        "nodes that run longer between interruptions are the better ones"});
  const bool twice = std::ranges::adjacent_find(agreed.counts, std::greater_equal{}) != agreed.counts.end();
  if (agreed.counts.empty() || twice)
    return std::unexpected(InputError{where + ": counts",
                                      fmt::format("'{}' is no set of classes", words_of_classes(agreed.counts)),
                                      "known are: " + words_listed<Interruption>()});
  return {};
}

std::expected<AgreedStability, InputError> read_agreed_stability(std::string_view text, const std::string& where) {
  const auto values = named_values(text, kStabilityNames, where, kStabilityHint);
  if (!values) return std::unexpected(values.error());
  AgreedStability agreed;
  const auto number = [&](std::string_view name) -> std::expected<double, InputError> {
    const auto value = values->find(name);
    if (value == values->end())
      return std::unexpected(InputError{where, fmt::format("has no {}", name), kStabilityHint});
    return named_number(name, value->second, where, kStabilityHint);
  };
  for (const StabilityPart& part : kStabilityParts) {
    const auto read = number(part.name);
    if (!read) return std::unexpected(read.error());
    agreed.*part.member = *read / part.unit;
  }
  const auto tolerated = number("tolerated");
  if (!tolerated) return std::unexpected(tolerated.error());
  if (!(*tolerated >= 0 && *tolerated <= kMostTolerated) || *tolerated != std::floor(*tolerated))
    return std::unexpected(InputError{where + ": tolerated",
                                      fmt::format("{:g} is no whole number of 0 to {}", *tolerated, kMostTolerated),
                                      kStabilityHint});
  agreed.tolerated = static_cast<int>(*tolerated);
  if (const auto stop = values->find("stop"); stop != values->end()) {
    const auto known = from_word<StabilityStop>(stop->second);
    if (!known)
      return std::unexpected(InputError{where + ": stop", fmt::format("'{}' is not known", stop->second),
                                        "known are: " + words_listed<StabilityStop>()});
    agreed.stop = *known;
  }
  if (const auto counts = values->find("counts"); counts != values->end()) {
    auto classes = classes_in(counts->second, where);
    if (!classes) return std::unexpected(classes.error());
    agreed.counts = std::move(*classes);
  }
  if (auto checked = check_agreed_stability(agreed, where); !checked) return std::unexpected(checked.error());
  return agreed;
}

bool counts_interruptions(const Requirement& requirement) {
  return requirement.required && requirement.metric == "interruptions" && requirement.scope == JudgedScope::node &&
         requirement.limit.at_most && requirement.limit.reference == Reference::none;
}

const Requirement* window_requirement(const Plan& plan) {
  if (!plan.agreed_stability) return nullptr;
  const auto found = std::ranges::find_if(plan.profile.requirements, counts_interruptions);
  return found == plan.profile.requirements.end() ? nullptr : &*found;
}

int looks_wanted(const AgreedStability& agreed, const Step& step) {
  constexpr double kLeast = 1e-9;  // of a division, and of a rounding error
  const double looks = agreed.hours / std::max(load_hours(step), kLeast), whole = std::floor(looks + 0.5);
  return std::abs(looks - whole) < kLeast && whole <= kMostLooks ? std::max(1, static_cast<int>(whole)) : 1;
}

double least_load_share(const Plan& plan) {
  const Step* step = window_step(plan, *window_requirement(plan));
  double share = 0;
  for (const auto& id : step == nullptr ? std::vector<std::string>{} : step->requirements) {
    const Requirement& one = *plan.requirement(id);
    if (one.required && !one.when_told && one.metric == "load_share" && one.scope == JudgedScope::node &&
        one.limit.reference == Reference::none)
      share = std::max(share, one.limit.at_least.value_or(0));
  }
  return std::min(share, 1.0);
}

StabilityDesign stability_design(const Plan& plan) {
  const AgreedStability& agreed = *plan.agreed_stability;
  const Requirement& requirement = *window_requirement(plan);
  const Step& step = *window_step(plan, requirement);
  const auto nodes = std::ranges::count(plan.coverage, requirement.id, &Cell::requirement);
  const double hours = load_hours(step);
  return {.looks = static_cast<std::size_t>(step.attempts),
          .nodes = static_cast<std::size_t>(nodes),
          .hours = hours,
          .least_hours = hours * least_load_share(plan),
          .tolerated = agreed.tolerated,
          .refused_mtbf_h = agreed.refused_mtbf_h,
          .accepted_mtbf_h = agreed.accepted_mtbf_h,
          .vendor_risk = agreed.vendor_risk,
          .buyer_risk = agreed.buyer_risk};
}

std::expected<std::vector<Look>, InputError> check_stability(const Plan& plan) {
  if (auto checked = check_agreed_stability(*plan.agreed_stability, kStabilityOption); !checked)
    return std::unexpected(checked.error());
  const auto step = measured_window(plan);
  if (!step) return std::unexpected(step.error());
  if (auto problem = check_window(plan, *window_requirement(plan), **step)) return std::unexpected(*problem);
  const StabilityDesign design = stability_design(plan);
  const auto at_end = looks_at_end(design);
  const StabilityRisk risk = risk_of(at_end, design);
  if (risk.keeps(design)) return plan.agreed_stability->stop == StabilityStop::early ? looks_of_wald(design) : at_end;
  const auto other = design_that_keeps(design);
  return std::unexpected(unkept(
      fmt::format("{:g} h of {} nodes with at most {} interruptions do not keep it: nodes of {:g} h between two are "
                  "refused with {:.3g} %, those of {:g} h accepted with {:.3g} %",
                  plan.agreed_stability->hours, design.nodes, design.tolerated, design.accepted_mtbf_h,
                  risk.vendor * 100, design.refused_mtbf_h, risk.buyer * 100),
      other ? fmt::format("hours={:g},tolerated={} keep it", design.hours * static_cast<double>(other->looks),
                          other->tolerated)
            : "no hours keep it: agree on mean times that are further apart, or on more risk"));
}

std::vector<StabilityPoint> stability_curve(const Plan& plan) {
  const StabilityDesign design = stability_design(plan);
  const double apart = portable_log(design.accepted_mtbf_h / design.refused_mtbf_h);
  std::vector<double> means = {design.refused_mtbf_h / 2, design.refused_mtbf_h};
  for (const double part : {0.25, 0.5, 0.75}) means.push_back(design.refused_mtbf_h * portable_exp(part * apart));
  means.insert(means.end(), {design.accepted_mtbf_h, design.accepted_mtbf_h * 2});
  std::vector<StabilityPoint> curve;
  for (const double mean : means) {
    const TestEnd of = test_end(plan.looks, static_cast<double>(design.nodes) * design.hours / mean);
    curve.push_back({.mtbf_h = to_12_digits(mean), .accepted = of.accepted, .hours = of.looks * design.hours});
  }
  return curve;
}

std::string stability_words(const Plan& plan) {
  const AgreedStability& agreed = *plan.agreed_stability;
  const StabilityDesign design = stability_design(plan);
  const StabilityRisk risk = risk_of(plan.looks, design);
  return fmt::format(
      "{:g} h of each of {} nodes with at most {} interruptions ({}) of all: nodes that run {:g} h between two on "
      "average are refused with {:.3g} % (agreed: at most {:g} %), those that run {:g} h accepted with {:.3g} % "
      "(agreed: at most {:g} %)",
      agreed.hours, design.nodes, agreed.tolerated, words_of_classes(agreed.counts), agreed.accepted_mtbf_h,
      risk.vendor * 100, agreed.vendor_risk * 100, agreed.refused_mtbf_h, risk.buyer * 100, agreed.buyer_risk * 100);
}

std::string stability_text(const Plan& plan) {
  if (!plan.agreed_stability) return "";
  std::string text = fmt::format("agreed stability: {}\n", stability_words(plan));
  if (plan.agreed_stability->stop == StabilityStop::early) {
    text += "  ends early, once all nodes have run for, with so many interruptions:";
    for (const Look& look : plan.looks) {
      text += fmt::format("  {:g} h:", look.hours);
      if (look.accept >= 0) text += fmt::format(" accepted up to {},", look.accept);
      text += fmt::format(" refused from {}", look.reject);
    }
    text += "\n";
  }
  text += "  mean time between interruptions of a node, accepted with, after:";
  for (const auto& point : stability_curve(plan))
    text += fmt::format("  {:.4g} h: {:.3g} %, {:.3g} h", point.mtbf_h, point.accepted * 100, point.hours);
  return text + "\n";
}

}  // namespace assay::plan
