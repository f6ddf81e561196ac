// json_fields: structs that list their members (fields.h) as JSON objects, both ways.
#pragma once

#include <concepts>
#include <optional>
#include <vector>

#include <nlohmann/json.hpp>

#include "probes/core/fields.h"
#include "probes/core/json_io.h"

namespace assay {

/// The JSON form of one member.
template <class T>
nlohmann::json json_of_member(const T& member) {
  if constexpr (std::same_as<T, Subject> || std::same_as<T, Value> || std::same_as<T, Values>) {
    return to_json(member);
  } else if constexpr (std::same_as<T, std::vector<Value>>) {
    nlohmann::json list = nlohmann::json::array();
    for (const Value& value : member) list.push_back(to_json(value));
    return list;
  } else if constexpr (requires { member.list(); }) {
    return json_of_member(member.list());
  } else {
    return member;
  }
}

/// Reads one member. Throws nlohmann's exception, or std::bad_optional_access for what is no subject or no value of a
/// list. A non-value
/// leaves none, and what are no values leaves it empty.
template <class T>
void take_member(const nlohmann::json& given, T& member) {
  if constexpr (std::same_as<T, Subject>) {
    member = subject_from(given).value();
  } else if constexpr (std::same_as<T, Value>) {
    member = value_from(given).value_or(Value{});
  } else if constexpr (std::same_as<T, Values>) {
    member = values_from(given).value_or(Values{});
  } else if constexpr (std::same_as<T, std::vector<Value>>) {
    for (const auto& one : given) member.push_back(value_from(one).value());
  } else if constexpr (std::integral<T> && !std::same_as<T, bool>) {
    member = Whole(given);
  } else if constexpr (requires { member.list(); }) {
    std::remove_cvref_t<decltype(member.list())> list;
    take_member(given, list);
    member = std::move(list);
  } else {
    given.get_to(member);
  }
}
inline void take_member(const nlohmann::json& given, std::optional<Value>& member) { member = value_from(given); }
template <class T>
void take_member(const nlohmann::json& given, std::optional<T>& member) {
  take_member(given, member.emplace());
}

/// Writes members into an object.
struct FieldWriter {
  nlohmann::json& object;

  template <class T>
  void operator()(const char* name, const T& member) {
    object[name] = json_of_member(member);
  }
  template <class T>
  void operator()(const char* name, const std::optional<T>& member) {
    if (member) object[name] = json_of_member(*member);
  }
  template <class T>
  void defaulted(const char* name, const T& member) {
    (*this)(name, member);
  }
  template <class T>
  void sparse(const char* name, const T& member) {
    if (member != T{}) (*this)(name, member);
  }
};

/// Reads members from an object.
struct FieldReader {
  const nlohmann::json& object;

  template <class T>
  void operator()(const char* name, T& member) {
    take_member(object.at(name), member);
  }
  template <class T>
  void operator()(const char* name, std::optional<T>& member) {
    defaulted(name, member);
  }
  template <class T>
  void defaulted(const char* name, T& member) {
    if (const auto found = object.find(name); found != object.end()) take_member(*found, member);
  }
  template <class T>
  void sparse(const char* name, T& member) {
    defaulted(name, member);
  }
};

}  // namespace assay

/// In JSON a struct with a list is an object of its members.
template <class T>
requires assay::Listed<T>
struct nlohmann::adl_serializer<T, void> {
  static void to_json(nlohmann::json& json, const T& one) {
    json = nlohmann::json::object();
    assay::FieldWriter io{json};
    fields(io, one);
  }
  static void from_json(const nlohmann::json& json, T& one) {
    assay::FieldReader io{json};
    fields(io, one);
  }
};
