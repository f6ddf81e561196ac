// es6_number: the one spelling of a number in canonical JSON and in signed texts.
#pragma once

#include <string>

namespace assay {

/// `number` as ECMAScript writes it (RFC 8785, 3.2.2.3): the shortest digits that read back, fixed below 1e21 and from
/// 1e-6, else with an exponent. Precondition: finite.
std::string es6_number(double number);

}  // namespace assay
