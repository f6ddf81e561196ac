// strict_object: a closed object of a JSON document, whose fields are taken one by one with type and bounds.
#pragma once

#include <cstdint>
#include <expected>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "probes/core/error.h"

namespace assay {

/// Reads one object strictly: a missing field, a field of another type or out of bounds and, on done(), a field that
/// was not taken throw InputError with the field's path and the reader's hint. read_strictly catches it. Precondition:
/// the object outlives its reader.
class StrictObject {
 public:
  /// `path` names the object in errors: "run.limits", or nothing for the document itself. `hint` goes with every error.
  StrictObject(const nlohmann::json& object, std::string path, std::string hint = "");

  /// The field, or nullptr.
  const nlohmann::json* optional(std::string_view name);
  /// The field, of any type.
  const nlohmann::json& need(std::string_view name);
  /// The text at `name`; `allowed`, where given, says which texts are.
  std::string text(std::string_view name, bool (*allowed)(std::string_view) = nullptr);
  bool flag(std::string_view name);
  /// A number from `least` to `most`, both included.
  double number(std::string_view name, double least, double most);
  /// A whole number from `least` to `most`, both included.
  std::int64_t whole(std::string_view name, std::int64_t least = std::numeric_limits<std::int64_t>::min(),
                     std::int64_t most = std::numeric_limits<std::int64_t>::max());
  /// The same where values beyond the largest std::int64_t are allowed.
  std::uint64_t count(std::string_view name, std::uint64_t least, std::uint64_t most);
  /// The array at `name`.
  const nlohmann::json& list(std::string_view name);
  /// The array at `name`, every member of which is a text.
  std::vector<std::string> texts(std::string_view name);
  /// Takes fields whose values are not used.
  void pass_over(std::initializer_list<const char*> names);
  /// The names of the fields that were not taken, in the order of the object.
  [[nodiscard]] std::vector<std::string> rest() const;
  /// Call last: throws at a field that was not taken.
  void done() const;

  /// "run.limits.cpu_s".
  [[nodiscard]] std::string path(std::string_view name) const;
  /// Throws the error `what` at the field `name`.
  [[noreturn]] void refuse(std::string_view name, std::string what) const;

 private:
  const nlohmann::json& object_;
  std::string path_, hint_;
  std::vector<std::string_view> taken_;  // keys of object_
};

/// `error` with the name of its document, a path or "line 4", before its place.
InputError located(const std::string& document, const InputError& error);

/// What `read` returns, or the InputError that it throws, located in `document` (empty: as thrown).
template <class Read>
std::expected<std::invoke_result_t<Read>, InputError> read_strictly(const std::string& document, Read read) {
  try {
    return read();
  } catch (const InputError& error) {
    return std::unexpected(located(document, error));
  }
}

}  // namespace assay
