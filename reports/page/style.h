// style: the sheet of the report; dark on light, A4, no font or picture from elsewhere.
#pragma once

#include <string>
#include <string_view>

namespace assay::page {

/// The style sheet, with `footer` in the bottom margin of every printed page. `footer` is taken only when it consists
/// of letters, digits, blanks, dots, underscores and hyphens, because it is part of a CSS string.
std::string style_sheet(std::string_view footer);

/// The style of the class watermark, across every page of a simulated run.
std::string_view watermark_style();

}  // namespace assay::page
