// catalogue: JSON that fits its schema, then checks beyond a schema.
#include "reports/requirements/catalogue.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "orchestrator/files/digest.h"
#include "orchestrator/plan/catalogue.h"
#include "probes/core/description.h"
#include "probes/core/json_io.h"
#include "probes/core/suggest.h"
#include "profiles/embedded.h"
#include "profiles/schema.h"

namespace assay::requirements {
namespace {

using nlohmann::json;

/// The lines, from 1, on which the objects in the document's only list of its first level begin: those of the rows.
std::vector<std::size_t> row_lines(std::string_view text) {
  std::vector<std::size_t> lines;
  std::string open;  // brackets around the place
  std::size_t line = 1;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\n') ++line;
    if (quoted) {
      if (c == '\\') ++i;
      quoted = c != '"';
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{' || c == '[') {
      if (c == '{' && open == "{[") lines.push_back(line);
      open += c;
    } else if ((c == '}' || c == ']') && !open.empty()) {
      open.pop_back();
    }
  }
  return lines;
}

/// `error`, whose place is "FILE: rows[3].text", with the line of that row: "FILE:17: rows[3].text".
InputError with_line(InputError error, const std::string& where, const std::vector<std::size_t>& lines) {
  const std::string begin = where + ": rows[";
  if (!error.where.starts_with(begin)) return error;
  std::size_t row = 0;
  for (std::size_t i = begin.size(); i < error.where.size() && error.where[i] != ']' && row < lines.size(); ++i)
    row = row * 10 + static_cast<std::size_t>(error.where[i] - '0');
  if (row < lines.size()) error.where.insert(where.size(), fmt::format(":{}", lines[row]));
  return error;
}

std::string text_in(const json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() ? "" : found->get<std::string>();
}

std::expected<Answer, InputError> read_answer(const json& object, const std::string& here) {
  Answer answer{.requirement = text_in(object, "requirement"),
                .probe = text_in(object, "probe"),
                .metric = text_in(object, "metric"),
                .condition = text_in(object, "condition"),
                .scope = {}};
  const auto refuse = [&](const char* what, const char* hint) { return std::unexpected(InputError{here, what, hint}); };
  if (object.contains("equals")) answer.equals = value_from(object.at("equals"));
  if (object.contains("parameters")) answer.parameters = values_from(object.at("parameters")).value_or(Values{});
  if (object.contains("scope")) answer.scope = from_word<plan::JudgedScope>(text_in(object, "scope"));
  if (object.contains("least_nodes")) answer.least_nodes = Whole(object.at("least_nodes"));
  if (answer.requirement.empty() == answer.probe.empty()) {
    return refuse("names a requirement and a probe, or neither",
                  "name the id of a requirement, or a probe with its metric or condition");
  }
  if (!answer.probe.empty() && answer.metric.empty() == answer.condition.empty())
    return refuse("needs a metric or a condition of its probe, and only one of them", "name the one that is judged");
  if (answer.equals && answer.condition.empty()) return refuse("has `equals` without a condition", "leave it out");
  if (answer.probe.empty() &&
      (!answer.metric.empty() || !answer.condition.empty() || !answer.parameters.empty() || answer.scope.has_value())) {
    return refuse("narrows a requirement that its id names already", "the id says all but least_nodes");
  }
  return answer;
}

std::expected<Row, InputError> read_row(const json& object, const std::string& here) {
  Row row{.id = text_in(object, "id"),
          .section = text_in(object, "section"),
          .text = text_in(object, "text"),
          .address = text_in(object, "address")};
  if (object.contains("answered_by") == object.contains("outside")) {
    return std::unexpected(
        InputError{here, "has neither or both of answered_by and outside", "list its answers, or why no run has one"});
  }
  if (object.contains("outside")) {
    row.outside = from_word<Outside>(text_in(object.at("outside"), "kind"));
    row.why = text_in(object.at("outside"), "why");
    return row;
  }
  const auto& answers = object.at("answered_by");
  for (std::size_t i = 0; i < answers.size(); ++i) {
    auto answer = read_answer(answers[i], fmt::format("{}.answered_by[{}]", here, i));
    if (!answer) return std::unexpected(answer.error());
    row.answers.push_back(std::move(*answer));
  }
  return row;
}

/// Names of one probe, of this version and of `plan`.
struct KnownNames {
  bool probe = false;
  std::vector<std::string> metrics, conditions;
};

KnownNames known_of(const std::string& probe, const plan::Plan& plan) {
  KnownNames known;
  const auto add = [&](const json& document) {
    known.probe = true;
    for (const auto& metric : document.at("metrics")) known.metrics.push_back(metric.at("name"));
    for (const auto& condition : document.at("conditions")) known.conditions.push_back(condition.at("name"));
  };
  for (const auto& one : plan::known_probes()) {
    if (one.name == probe) add(one.document);
  }
  if (const auto planned = plan.probes.find(probe); planned != plan.probes.end())
    add(planned->second.description.document);
  return known;
}

std::optional<InputError> unknown(const std::string& name, const char* what, const std::vector<std::string>& names) {
  if (name.empty() || std::ranges::find(names, name) != names.end()) return std::nullopt;
  return InputError{"", fmt::format("'{}' is not {}", name, what), suggestion(name, names)};
}

std::optional<InputError> check_probe(const Answer& answer, const plan::Plan& plan) {
  const KnownNames known = known_of(answer.probe, plan);
  if (!known.probe) {
    std::vector<std::string> names;
    for (const auto& one : plan::known_probes()) names.push_back(one.name);
    for (const auto& [name, unused] : plan.probes) names.push_back(name);
    return unknown(answer.probe, "a probe of this version or of the plan", names);
  }
  if (auto problem = unknown(answer.metric, "a metric of this probe", known.metrics)) return problem;
  return unknown(answer.condition, "a condition of this probe", known.conditions);
}

/// The ids of all built-in profiles; read once, when an id is not in the plan.
const std::vector<std::string>& built_in_requirements() {
  static const auto kAll = [] {
    std::set<std::string> ids;
    for (const auto& [name, text] : plan::embedded_profiles()) {
      const auto profile = plan::profile_named(name);
      if (!profile) continue;  // a test reads every built-in one
      for (const auto& requirement : profile->requirements) ids.insert(requirement.id);
    }
    return std::vector<std::string>(ids.begin(), ids.end());
  }();
  return kAll;
}

std::optional<InputError> check_requirement(const std::string& id, const plan::Plan& plan) {
  if (plan.requirement(id) != nullptr) return std::nullopt;
  std::vector<std::string> names = built_in_requirements();
  for (const auto& requirement : plan.profile.requirements) names.push_back(requirement.id);
  return unknown(id, "a requirement of the plan or of a built-in profile", names);
}

}  // namespace

std::string Answer::words() const {
  if (!requirement.empty()) return requirement;
  std::string words = fmt::format("{} of {}", metric.empty() ? "condition " + condition : metric, probe);
  if (equals) words += " = " + to_json(*equals).dump();
  for (const auto& [name, value] : parameters) words += fmt::format(", {} {}", name, to_json(value).dump());
  if (scope) words += fmt::format(", of a {}", *scope);
  if (least_nodes > 1) words += fmt::format(", on {} nodes", least_nodes);
  return words;
}

std::expected<Catalogue, InputError> read_catalogue(std::string_view text, const std::string& where) {
  const auto document = parse_json(text, where);
  if (!document) return std::unexpected(document.error());
  const auto lines = row_lines(text);
  if (const auto problem = profiles::check_schema(*document, "catalogue.schema", where))
    return std::unexpected(with_line(*problem, where, lines));
  const auto& source = document->at("source");
  Catalogue catalogue{.where = where,
                      .name = text_in(*document, "name"),
                      .title = text_in(*document, "title"),
                      .revision = Whole(document->at("revision")),
                      .document = text_in(source, "document"),
                      .address = text_in(source, "address"),
                      .date = text_in(source, "date"),
                      .note = text_in(*document, "note"),
                      .sha256 = files::sha256(text)};
  const auto& rows = document->at("rows");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::string here = fmt::format("{}: rows[{}]", where, i);
    auto row = read_row(rows[i], here);
    if (!row) return std::unexpected(with_line(row.error(), where, lines));
    row->line = i < lines.size() ? lines[i] : 0;
    if (const auto same = std::ranges::find(catalogue.rows, row->id, &Row::id); same != catalogue.rows.end()) {
      return std::unexpected(
          with_line({here + ".id", fmt::format("'{}' is used twice, first on line {}", row->id, same->line),
                     "every row has an id of its own"},
                    where, lines));
    }
    catalogue.rows.push_back(std::move(*row));
  }
  return catalogue;
}

std::optional<InputError> check_names(const Catalogue& catalogue, const plan::Plan& plan) {
  for (std::size_t i = 0; i < catalogue.rows.size(); ++i) {
    const auto& row = catalogue.rows[i];
    for (std::size_t k = 0; k < row.answers.size(); ++k) {
      const auto& answer = row.answers[k];
      auto problem =
          answer.requirement.empty() ? check_probe(answer, plan) : check_requirement(answer.requirement, plan);
      if (!problem) continue;
      problem->where = fmt::format("{}:{}: rows[{}].answered_by[{}]", catalogue.where, row.line, i, k);
      return problem;
    }
  }
  return std::nullopt;
}

const std::map<std::string, std::string_view>& embedded_catalogues() {
  static const auto kCatalogues = [] {
    std::map<std::string, std::string_view> all;
    constexpr std::string_view kFolder = "catalogues/";
    for (const auto& [name, text] : profiles::embedded_documents()) {
      if (name.starts_with(kFolder)) all.emplace(name.substr(kFolder.size()), text);
    }
    return all;
  }();
  return kCatalogues;
}

std::expected<Catalogue, InputError> catalogue_named(const std::string& name) {
  const auto& built_in = embedded_catalogues();
  if (const auto found = built_in.find(name); found != built_in.end())
    return read_catalogue(found->second, "catalogue " + name);
  if (name.find('/') == std::string::npos && !name.ends_with(".json")) {
    std::vector<std::string> names;
    for (const auto& [known, unused] : built_in) names.push_back(known);
    return std::unexpected(InputError{name, "is no built-in catalogue", suggestion(name, names)});
  }
  const auto text = read_file(name);
  if (!text) return std::unexpected(text.error());
  return read_catalogue(*text, name);
}

}  // namespace assay::requirements
