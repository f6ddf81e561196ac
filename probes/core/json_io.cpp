// json_io: a SAX handler that builds the document and refuses input that a lenient reader would let pass.
#include "probes/core/json_io.h"

#include <algorithm>
#include <stdexcept>
#include <tuple>
#include <vector>

#include <fmt/format.h>

namespace assay {
namespace {

using nlohmann::json;

constexpr int kMostRepeats = 100;  // of one key; each looks for a free name

/// Counts lines and columns up to `position` so that an error can be found in an editor.
std::string line_and_column(std::string_view text, std::size_t position) {
  std::size_t line = 1;
  std::size_t column = 1;
  for (const char c : text.substr(0, std::min(position, text.size()))) {
    if (c == '\n') {
      ++line;
      column = 1;
    } else {
      ++column;
    }
  }
  return fmt::format("line {}, column {}", line, column);
}

/// Errors that nlohmann does not see: it takes NUL for the end of the text, and passes over a byte order mark.
std::optional<InputError> passed_over(std::string_view text, const std::string& where) {
  if (text.starts_with("\xEF\xBB\xBF")) {
    return InputError{fmt::format("{}: line 1, column 1", where), "begins with a byte order mark",
                      "write it as UTF-8 without a byte order mark (RFC 8259, section 8.1)"};
  }
  const auto position = text.find('\0');
  if (position == std::string_view::npos) return std::nullopt;
  return InputError{
      fmt::format("{}: {}", where, line_and_column(text, position)), "has a NUL byte",
      "JSON is UTF-8 text: a file that was cut off may be filled up with NUL, and UTF-16 must be converted"};
}

/// Builds a json document from SAX events; the method names are nlohmann's interface.
class StrictBuilder {
 public:
  explicit StrictBuilder(const JsonLimits& limits) : limits_(limits) {}

  bool null() { return put(nullptr); }
  bool boolean(bool value) { return put(value); }
  bool number_integer(json::number_integer_t value) { return put(value); }
  bool number_unsigned(json::number_unsigned_t value) { return put(value); }
  bool number_float(json::number_float_t value, const json::string_t&) { return put(value); }
  bool string(json::string_t& value) { return put(std::move(value)); }
  bool binary(json::binary_t&) { return refuse("binary values are not JSON"); }
  bool start_object(std::size_t) { return open(json::object()); }
  bool end_object() { return close(); }
  bool start_array(std::size_t) { return open(json::array()); }
  bool end_array() { return close(); }
  bool key(json::string_t& name) {
    auto& members = stack_.back()->get_ref<json::object_t&>();
    auto [member, is_new] = members.try_emplace(std::move(name), nullptr);  // which leaves the name of a known one
    for (int count = 2; !is_new; ++count) {
      const bool may =
          limits_.may_repeat != nullptr && limits_.may_repeat(names_.back(), name) && count <= kMostRepeats;
      if (!may) {
        repeated_ = true;
        return refuse(fmt::format("the key '{}' is in one object twice", name));
      }
      std::tie(member, is_new) = members.try_emplace(fmt::format("{} ({})", name, count), nullptr);
    }
    member_ = &*member;
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& error) {
    position_ = position;
    const std::string_view text = error.what();
    const auto cause = text.rfind(": ");  // "[json.exception.parse_error.101] parse error at …: syntax error while …"
    reason_ = cause == std::string_view::npos ? std::string(text) : std::string(text.substr(cause + 2));
    return false;
  }

  json take() { return std::move(root_); }
  [[nodiscard]] const std::string& reason() const { return reason_; }
  [[nodiscard]] std::optional<std::size_t> position() const { return position_; }
  [[nodiscard]] bool has_repeated_key() const { return repeated_; }

 private:
  bool refuse(std::string reason) {
    reason_ = std::move(reason);
    return false;
  }
  json* place(json value) {
    if (stack_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    json& parent = *stack_.back();
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return &parent.back();
    }
    return &(member_->second = std::move(value));
  }
  bool one_more() {
    return ++values_ <= limits_.max_values || refuse(fmt::format("more than {} values", limits_.max_values));
  }
  bool put(json value) {
    if (!one_more()) return false;
    place(std::move(value));
    return true;
  }
  bool open(json value) {
    if (!one_more()) return false;
    if (static_cast<int>(stack_.size()) >= limits_.max_depth)
      return refuse(fmt::format("deeper than {} levels", limits_.max_depth));
    if (limits_.may_repeat != nullptr)
      names_.push_back(stack_.empty() ? "" : stack_.back()->is_object() ? member_->first : names_.back());
    stack_.push_back(place(std::move(value)));
    return true;
  }
  bool close() {
    stack_.pop_back();
    if (limits_.may_repeat != nullptr) names_.pop_back();
    return true;
  }

  JsonLimits limits_;
  std::size_t values_ = 0;
  json root_;
  std::vector<json*> stack_;                      // parents stay put: a child is only added to the innermost one
  std::vector<std::string> names_;                // of the members that are open, where a key may be repeated
  json::object_t::value_type* member_ = nullptr;  // of the innermost object, whose value comes next
  std::string reason_;
  bool repeated_ = false;
  std::optional<std::size_t> position_;
};

/// Walks over a text and says how far, which the library does not tell a handler of keys.
struct CountedWalk {
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  const char* at;
  const char** furthest;

  reference operator*() const { return *at; }
  CountedWalk& operator++() {
    *furthest = std::max(*furthest, ++at);
    return *this;
  }
  bool operator==(const CountedWalk& other) const { return at == other.at; }
};

/// Where the key that parse_json refuses as a second one ends: read once more, because refusals are few.
std::string place_of_repeated_key(std::string_view text, const JsonLimits& limits) {
  StrictBuilder builder(limits);
  const char* furthest = text.begin();
  const CountedWalk begin{.at = text.begin(), .furthest = &furthest};
  const CountedWalk end{.at = text.end(), .furthest = &furthest};
  (void)json::sax_parse(begin, end, &builder, json::input_format_t::json, true, limits.comments);  // fails again
  const std::string place = line_and_column(text, static_cast<std::size_t>(furthest - text.begin()) - 1);
  return text.contains('\n') ? place
                             : place.substr(place.find("column"));  // a line of a record has a number of its own
}

}  // namespace

std::expected<json, InputError> parse_json(std::string_view text, const std::string& where, const JsonLimits& limits) {
  if (text.size() > limits.max_bytes) {
    return std::unexpected(InputError{where,
                                      fmt::format("{} bytes, over the limit of {}", text.size(), limits.max_bytes),
                                      "split the document or check that this is the right file"});
  }
  if (auto problem = passed_over(text, where)) return std::unexpected(std::move(*problem));
  StrictBuilder builder(limits);
  constexpr bool kWholeText = true;
  if (json::sax_parse(text, &builder, json::input_format_t::json, kWholeText, limits.comments)) return builder.take();
  const auto position = builder.position();
  const std::string again =
      builder.has_repeated_key() ? "; the second one ends at " + place_of_repeated_key(text, limits) : "";
  return std::unexpected(InputError{position ? fmt::format("{}: {}", where, line_and_column(text, *position)) : where,
                                    builder.reason() + again, "the document must be strict JSON (RFC 8259) in UTF-8"});
}

json parse_json_or_throw(std::string_view text, const std::string& where) {
  auto document = parse_json(text, where);
  if (!document) throw std::runtime_error(document.error().text());
  return std::move(*document);
}

json to_json(const Value& value) {
  return std::visit([](const auto& typed) { return json(typed); }, value);
}

json to_json(const Values& values) {
  json object = json::object();
  for (const auto& [name, value] : values) object[name] = to_json(value);
  return object;
}

json to_json(const Subject& subject) { return json{{subject.kind, subject.id}}; }

std::optional<Value> value_from(const json& json_value) {
  switch (json_value.type()) {
    case json::value_t::boolean:
      return json_value.get<bool>();
    case json::value_t::string:
      return json_value.get<std::string>();
    case json::value_t::number_float:
      return json_value.get<double>();
    case json::value_t::number_integer:
      return json_value.get<std::int64_t>();
    case json::value_t::number_unsigned:
      if (json_value.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX)) return std::nullopt;
      return json_value.get<std::int64_t>();
    default:
      return std::nullopt;
  }
}

std::optional<Values> values_from(const json& object) {
  if (!object.is_object()) return std::nullopt;
  Values values;
  for (const auto& [name, member] : object.items()) {
    auto value = value_from(member);
    if (!value) return std::nullopt;
    values.emplace(name, std::move(*value));
  }
  return values;
}

std::optional<Subject> subject_from(const json& object) {
  if (!object.is_object() || object.size() != 1) return std::nullopt;
  const auto member = object.begin();
  if (!member->is_string() || !is_subject_kind(member.key())) return std::nullopt;
  return Subject{.kind = member.key(), .id = member->get<std::string>()};
}

}  // namespace assay
