// words: closed vocabularies: enums with one table of words each, for JSON, messages and tables alike.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json_fwd.hpp>

namespace assay {

/// One enumerator and how it is written.
template <class Enum>
struct Word {
  Enum value;
  std::string_view text;
};

/// The name of the enumerator `value`, as the compiler spells it; empty if no enumerator has this value. A '_' at
/// the end only keeps a name off a keyword of C++.
template <auto value>
consteval std::string_view name_of_enumerator() {
  std::string_view name = __PRETTY_FUNCTION__;  // ends in "value = assay::Enum::name]", or "value = (assay::Enum)7]"
  name.remove_prefix(name.find("value = ") + std::string_view("value = ").size());
  name = name.substr(0, name.find_first_of(";]"));
  if (name.starts_with('(')) return {};
  name.remove_prefix(name.rfind(':') + 1);
  if (name.ends_with('_')) name.remove_suffix(1);
  return name;
}

/// The same with a zero at its end: text that is taken for a C string ends where the name does.
template <auto value>
inline constexpr auto kNameOfEnumerator = [] {
  constexpr std::string_view name = name_of_enumerator<value>();
  std::array<char, name.size() + 1> text = {};
  for (std::size_t i = 0; i < name.size(); ++i) text[i] = name[i];
  return text;
}();

/// How many enumerators of `Enum` follow one another from the value `first` on.
template <class Enum, std::size_t first = 0>
consteval std::size_t count_of_enumerators() {
  if constexpr (name_of_enumerator<static_cast<Enum>(first)>().empty()) {
    return first;
  } else {
    return count_of_enumerators<Enum, first + 1>();
  }
}

/// The words of an enum whose enumerators count from 0 and are each written as they are named, in their order.
template <class Enum>
constexpr auto names_as_words() {
  static_assert(count_of_enumerators<Enum>() > 0);
  return []<std::size_t... index>(std::index_sequence<index...>) {
    return std::array{Word<Enum>{static_cast<Enum>(index), kNameOfEnumerator<static_cast<Enum>(index)>.data()}...};
  }
  (std::make_index_sequence<count_of_enumerators<Enum>()>());
}

/// An enum whose header has `constexpr auto words_of(Enum)`: an array with a Word for each enumerator. The header of
/// the enum includes this one, so that JSON never holds its number in place of its word.
template <class Enum>
concept Vocabulary = std::is_enum_v<Enum> && requires {
  words_of(Enum{});
};

/// The word of `value`.
template <Vocabulary Enum>
constexpr std::string_view word_of(Enum value) {
  for (const auto& word : words_of(value)) {
    if (word.value == value) return word.text;
  }
  return "";  // not reached: every enumerator has a word
}

/// The enumerator of this word; nothing for a text that is none of the vocabulary.
template <Vocabulary Enum>
constexpr std::optional<Enum> from_word(std::string_view text) {
  for (const auto& word : words_of(Enum{})) {
    if (word.text == text) return word.value;
  }
  return std::nullopt;
}

/// Every word in the order of the table, with commas.
template <Vocabulary Enum>
std::string words_listed() {
  std::string all;
  for (const auto& word : words_of(Enum{})) all.append(all.empty() ? "" : ", ").append(word.text);
  return all;
}

}  // namespace assay

/// In JSON an enumerator is its word; reading another one throws nlohmann's exception.
template <class Enum>
requires assay::Vocabulary<Enum>
struct nlohmann::adl_serializer<Enum, void> {
  template <class Json>
  static void to_json(Json& json, Enum value) {
    json = std::string(assay::word_of(value));
  }
  template <class Json>
  static void from_json(const Json& json, Enum& value) {
    const auto found =
        json.is_string() ? assay::from_word<Enum>(json.template get_ref<const std::string&>()) : std::nullopt;
    if (!found) {
      throw Json::other_error::create(
          501, "unknown word " + json.dump() + "; known are: " + assay::words_listed<Enum>(), nullptr);
    }
    value = *found;
  }
};

/// In messages an enumerator is its word.
template <class Enum>
requires assay::Vocabulary<Enum>
struct fmt::formatter<Enum> : formatter<string_view> {
  template <class Context>
  auto format(Enum value, Context& context) const {
    const std::string_view word = assay::word_of(value);
    return formatter<string_view>::format({word.data(), word.size()}, context);
  }
};
