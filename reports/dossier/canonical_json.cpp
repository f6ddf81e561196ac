// canonical_json: RFC 8785; a document is canonical if writing it again gives the same bytes.
#include "reports/dossier/canonical_json.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "probes/core/es6_number.h"

namespace assay::dossier {
namespace {

using nlohmann::json;

constexpr std::int64_t kLargestExact = std::int64_t{1} << 53;  // beyond it neighbouring integers share a double

/// The UTF-16 code units of well-formed UTF-8; the parser refuses other texts.
std::u16string utf16(std::string_view text) {
  std::u16string units;
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const std::size_t length = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    char32_t point = length == 1 ? lead : lead & (0xffU >> (length + 1));
    for (std::size_t k = 1; k < length && i + k < text.size(); ++k) {
      point = (point << 6U) | (static_cast<unsigned char>(text[i + k]) & 0x3fU);
    }
    if (point >= 0x10000) {
      units += static_cast<char16_t>(0xd800U + ((point - 0x10000U) >> 10U));
      units += static_cast<char16_t>(0xdc00U + ((point - 0x10000U) & 0x3ffU));
    } else {
      units += static_cast<char16_t>(point);
    }
    i += length;
  }
  return units;
}

/// Thrown inside this file only, so that the recursion needs no error path of its own.
struct NotCanonical {
  std::string what;
};

void write(const json& value, std::string& out);

void write_object(const json& object, std::string& out) {
  std::vector<std::pair<std::u16string, std::string>> sorted;
  for (const auto& [key, unused] : object.items()) sorted.emplace_back(utf16(key), key);
  std::ranges::sort(sorted);
  out += '{';
  for (const auto& [units, key] : sorted) {
    if (out.back() != '{') out += ',';
    add_canonical(key, out);
    out += ':';
    write(object.at(key), out);
  }
  out += '}';
}

void write_array(const json& array, std::string& out) {
  out += '[';
  for (std::size_t i = 0; i < array.size(); ++i) {
    if (i != 0) out += ',';
    write(array[i], out);
  }
  out += ']';
}

void write(const json& value, std::string& out) {
  switch (value.type()) {
    case json::value_t::null:
      out += "null";
      return;
    case json::value_t::boolean:
      out += value.get<bool>() ? "true" : "false";
      return;
    case json::value_t::string:
      return add_canonical(value.get_ref<const std::string&>(), out);
    case json::value_t::array:
      return write_array(value, out);
    case json::value_t::object:
      return write_object(value, out);
    case json::value_t::number_float: {
      const double number = value.get<double>();
      if (!std::isfinite(number)) throw NotCanonical{"a number is not finite"};
      out += es6_number(number);
      return;
    }
    case json::value_t::number_unsigned:
      if (value.get<std::uint64_t>() > static_cast<std::uint64_t>(kLargestExact))
        throw NotCanonical{value.dump() + " is beyond 2^53"};
      out += value.dump();
      return;
    case json::value_t::number_integer:
      if (value.get<std::int64_t>() > kLargestExact || value.get<std::int64_t>() < -kLargestExact)
        throw NotCanonical{value.dump() + " is beyond 2^53"};
      out += value.dump();
      return;
    default:
      throw NotCanonical{"a value is not JSON"};
  }
}

}  // namespace

void add_canonical(std::string_view text, std::string& out) {
  out += '"';
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          out += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
        } else {
          out += c;
        }
    }
  }
  out += '"';
}

std::expected<std::string, InputError> canonical_json(const json& document) {
  std::string out;
  try {
    write(document, out);
  } catch (const NotCanonical& problem) {
    return std::unexpected(InputError{"canonical JSON", problem.what, "write it as a decimal string"});
  }
  return out;
}

std::expected<json, InputError> read_canonical_json(std::string_view bytes, const std::string& where,
                                                    const JsonLimits& limits) {
  auto document = parse_json(bytes, where, limits);
  if (!document) return document;
  const auto canonical = canonical_json(*document);
  if (canonical && *canonical == bytes) return document;
  const auto [difference, unused] =
      std::ranges::mismatch(bytes, canonical ? std::string_view(*canonical) : std::string_view());
  return std::unexpected(InputError{fmt::format("{}: byte {}", where, difference - bytes.begin()),
                                    canonical ? "is not canonical JSON (RFC 8785)" : canonical.error().what,
                                    "only canonical JSON is accepted, so that every parser reads the same"});
}

}  // namespace assay::dossier
