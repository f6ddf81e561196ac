// schema: valijson finds the violation; this file writes the message.
#include "profiles/schema.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include <fmt/ranges.h>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>

#include "probes/core/suggest.h"
#include "profiles/embedded.h"

namespace assay::profiles {
namespace {

using nlohmann::json;

/// A place in the document: the value there and its path, "requirements[3].limit".
struct Place {
  const json* value;
  std::vector<std::string> keys;
  std::string path;
};

/// Follows valijson's context, "<root>", "[requirements]", "[3]", "[limit]", as far as the document goes: the context
/// may end in a key that is missing.
Place follow(const std::vector<std::string>& context, const json& document) {
  Place place{.value = &document};
  for (const auto& part : context) {
    if (part.size() < 3 || part.front() != '[') continue;
    const std::string key = part.substr(1, part.size() - 2);
    if (place.value->is_array()) {
      std::size_t index = 0;
      const auto [rest, error] = std::from_chars(key.data(), key.data() + key.size(), index);
      if (error != std::errc{} || index >= place.value->size()) break;
      place.value = &(*place.value)[index];
      place.path += "[" + key + "]";
    } else {
      if (!place.value->is_object() || !place.value->contains(key)) break;
      place.value = &place.value->at(key);
      place.path += (place.path.empty() ? "" : ".") + key;
    }
    place.keys.push_back(key);
  }
  return place;
}

const json& resolved(const json& node, const json& schema) {
  const auto reference = node.find("$ref");
  return reference == node.end() ? node : schema.at(json::json_pointer(reference->get<std::string>().substr(1)));
}

/// The part of the schema that governs the value at `keys`.
const json& schema_at(const std::vector<std::string>& keys, const json& schema) {
  const json* node = &schema;
  for (const auto& key : keys) {
    const auto properties = node->find("properties");
    if (properties != node->end() && properties->contains(key)) {
      node = &resolved(properties->at(key), schema);
    } else if (node->contains("items")) {
      node = &resolved(node->at("items"), schema);
    } else if (node->contains("additionalProperties") && node->at("additionalProperties").is_object()) {
      node = &resolved(node->at("additionalProperties"), schema);
    } else {
      break;
    }
  }
  return *node;
}

std::string shown(const json& value) {
  constexpr std::size_t kLongest = 60;
  std::string text = value.is_string() ? "'" + value.get<std::string>() + "'" : value.dump();
  if (text.size() > kLongest) text = text.substr(0, kLongest) + "…";
  return text;
}

/// An unknown or a missing member, the most frequent mistakes.
std::optional<InputError> member_problem(const json& value, const json& rule, const std::string& path) {
  if (!value.is_object() || !rule.contains("properties")) return std::nullopt;
  std::vector<std::string> known;
  for (const auto& [name, unused] : rule.at("properties").items()) known.push_back(name);
  for (const auto& [name, unused] : value.items()) {
    if (std::ranges::find(known, name) != known.end()) continue;
    return InputError{path, fmt::format("unknown field '{}'", name), suggestion(name, known)};
  }
  for (const auto& name : rule.value("required", json::array())) {
    if (value.contains(name.get<std::string>())) continue;
    const auto& missing = rule.at("properties").at(name.get<std::string>());
    return InputError{path, fmt::format("the field '{}' is missing", name.get<std::string>()),
                      missing.value("description", "")};
  }
  return std::nullopt;
}

InputError error_at(const json& value, const json& rule, const std::string& path, const std::string& fallback) {
  if (auto problem = member_problem(value, rule, path)) return *problem;
  InputError error{path, "", rule.value("description", "")};
  if (rule.contains("enum")) {
    std::vector<std::string> words;
    for (const auto& word : rule.at("enum")) words.push_back(word.get<std::string>());
    error.what = fmt::format("{} is not one of {}", shown(value), fmt::join(words, ", "));
  } else if (rule.contains("const")) {
    error.what = fmt::format("{} is not {}", shown(value), shown(rule.at("const")));
  } else if (rule.contains("type") && rule.at("type").is_string() && value.type_name() != rule.at("type") &&
             !(value.is_number() && (rule.at("type") == "number" || value.is_number_integer()))) {
    error.what = fmt::format("{} is not of type {}", shown(value), rule.at("type").get<std::string>());
  } else if (rule.contains("pattern") && value.is_string()) {
    error.what = fmt::format("{} has characters or a length that are not allowed here", shown(value));
  } else {
    error.what = fmt::format("{} is not allowed: {}", shown(value), fallback);
  }
  return error;
}

}  // namespace

std::optional<InputError> check_schema(const json& document, const std::string& schema_name, const std::string& where) {
  const json rules = parse_json_or_throw(embedded_documents().at(schema_name), schema_name);
  valijson::Schema schema;
  valijson::SchemaParser parser;
  parser.populateSchema(valijson::adapters::NlohmannJsonAdapter(rules), schema);
  valijson::Validator validator;
  valijson::ValidationResults results;
  if (validator.validate(schema, valijson::adapters::NlohmannJsonAdapter(document), &results)) return std::nullopt;
  Place deepest = follow(results.begin()->context, document);
  std::string said = results.begin()->description;
  for (const auto& error : results) {
    Place place = follow(error.context, document);
    if (place.keys.size() <= deepest.keys.size()) continue;
    deepest = std::move(place);
    said = error.description;
  }
  return error_at(*deepest.value, schema_at(deepest.keys, rules),
                  deepest.path.empty() ? where : where + ": " + deepest.path, said);
}

}  // namespace assay::profiles
