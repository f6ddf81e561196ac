// named_values: an option that is a list of names with values: beyond=4,vendor=5.
#pragma once

#include <expected>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "probes/core/error.h"

namespace assay::plan {

/// The values of `text` by name. Errors: an entry whose name is none of `names`, has no value or is given twice.
std::expected<std::map<std::string_view, std::string_view>, InputError> named_values(
    std::string_view text, std::span<const std::string_view> names, const std::string& where, const std::string& hint);

/// The number of the entry `name`, `text`; an error for another form. One that is not finite is a number.
std::expected<double, InputError> named_number(std::string_view name, std::string_view text, const std::string& where,
                                               const std::string& hint);

}  // namespace assay::plan
