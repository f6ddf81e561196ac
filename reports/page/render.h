// render: the report as one HTML page without references to other files.
#pragma once

#include <string>

#include "reports/page/content.h"

namespace assay::page {

/// The renderer of a report, written into the statement. The number rises whenever the same evidence would render to
/// other bytes, so that a later build knows whether it can compare; a test pins the bytes to it.
inline constexpr const char* kRenderer = "assay-report html/19";

/// An attribute of the line that stands in place of a part of the page that could not be made.
inline constexpr const char* kMissingPart = "data-missing";

/// The report of `content`: HTML without scripts or references to anything outside, the same bytes for the same
/// content. A part that cannot be made costs no other part; its line has the attribute kMissingPart.
std::string render_html(const ReportContent& content);

}  // namespace assay::page
