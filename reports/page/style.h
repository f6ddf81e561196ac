// style: the sheet of the report; light, or dark where the reader's setting asks for it, A4, no font or picture from
// elsewhere.
#pragma once

#include <string>
#include <string_view>

namespace assay::page {

/// The style sheet. Class `detail` is not printed, class `on-paper` only printed. `footer` is put in
/// the bottom margin of every printed page; it is taken only when it consists of letters, digits, blanks, dots,
/// underscores and hyphens, because it is part of a CSS string.
std::string style_sheet(std::string_view footer);

/// The style of the class watermark, across every page of a simulated run.
std::string_view watermark_style();

}  // namespace assay::page
