// result_text: the members in the order of RFC 8785; `sign` reads each statement back strictly.
#include "reports/dossier/result_text.h"

#include <cmath>
#include <optional>
#include <string_view>

#include "probes/core/es6_number.h"
#include "probes/core/json_io.h"
#include "reports/dossier/canonical_json.h"

namespace assay::dossier {
namespace {

/// The members of one object. Names are given in their order.
class ObjectText {
 public:
  explicit ObjectText(std::string& text) : text_(text) {}

  /// Where the value of `name` is to be appended.
  std::string& of(std::string_view name) {
    text_ += separator_;
    separator_ = ',';
    text_ += '"';
    text_ += name;
    return text_ += "\":";
  }
  void add(std::string_view name, std::string_view value) { add_canonical(value, of(name)); }
  void add(std::string_view name, bool value) { of(name) += value ? "true" : "false"; }
  void add_count(std::string_view name, std::size_t value) { of(name) += std::to_string(value); }
  /// A number that decides, as a decimal string.
  void add_number(std::string_view name, const std::optional<double>& value) {
    if (!value) return;
    finite_ = finite_ && std::isfinite(*value);
    of(name) += '"' + es6_number(*value) + '"';
  }
  /// Whether all numbers are finite.
  bool end() {
    text_ += '}';
    return finite_;
  }

 private:
  std::string& text_;
  char separator_ = '{';
  bool finite_ = true;
};

template <class List, class Add>
void add_list(const List& list, std::string& text, const Add& add) {
  text += '[';
  for (const auto& one : list) {
    if (text.back() != '[') text += ',';
    add(one);
  }
  text += ']';
}

void add_condition(const judge::ConditionSeen& condition, std::string& text) {
  ObjectText members(text);
  members.add("demanded", condition.demanded);
  members.add("met", condition.met);
  members.add("name", condition.name);
  if (condition.seen) members.add("seen", to_json(*condition.seen).dump());
  (void)members.end();  // without numbers
}

}  // namespace

bool add_result(const judge::Result& result, const plan::Requirement& requirement, std::string& text) {
  ObjectText members(text);
  bool finite = true;
  members.add_number("acceptanceHigh", result.acceptance_high);
  members.add_number("acceptanceLow", result.acceptance_low);
  members.add_count("attempts", static_cast<std::size_t>(result.attempts));
  if (result.interval) {
    ObjectText ends(members.of("ci"));
    ends.add_number("high", result.interval->high);
    ends.add_number("level", result.interval->level);
    ends.add_number("low", result.interval->low);
    finite = ends.end();
  }
  add_list(result.conditions, members.of("conditions"), [&](const auto& one) { add_condition(one, text); });
  if (requirement.contrast) members.add("contrast", requirement.contrast->parameter);
  add_list(result.evidence, members.of("evidence"), [&](const std::string& path) { add_canonical(path, text); });
  members.add_number("falseAccept", result.false_accept);
  members.add_number("limitHigh", result.limit_high);
  members.add_number("limitLow", result.limit_low);
  members.add_number("margin", result.margin);
  members.add("metric", requirement.judged());
  members.add_count("n", result.samples);
  members.add("node", result.node);
  members.add("reason", result.reason);
  members.add_number("reference", result.reference);
  members.add("required", result.required);
  members.add("requirement", result.requirement);
  if (requirement.rise) members.add("rise", true);
  members.add("statistic", word_of(requirement.statistic));
  members.add("step", result.step);
  ObjectText subject(members.of("subject"));
  subject.add("id", result.subject.id);
  subject.add("kind", result.subject.kind);
  (void)subject.end();  // without numbers
  members.add_number("u", result.uncertainty);
  members.add("unit", result.unit);
  members.add_number("value", result.value);
  members.add("verdict", word_of(result.outcome));
  return members.end() && finite;
}

}  // namespace assay::dossier
