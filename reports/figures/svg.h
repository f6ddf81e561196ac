// svg: the elements of every figure.
#pragma once

#include <string>
#include <string_view>

namespace assay::figures {

/// Every figure's view box is this wide; the page scales it.
inline constexpr double kFigureWidth = 760;

/// Opens a figure of `height` units with its text alternative: `title` names it, `description` describes it. Both are
/// escaped.
std::string svg_open(std::string_view title, std::string_view description, double height);

/// A line between two places, drawn as the style sheet says of `css_class`.
std::string svg_line(double x1, double y1, double x2, double y2, std::string_view css_class);

/// `words`, escaped, at a place; `anchor` is start, middle or end.
std::string svg_text(double x, double y, std::string_view anchor, std::string_view css_class, std::string_view words);

/// The same, turned by -45 degrees around its end.
std::string svg_slanted_text(double x, double y, std::string_view css_class, std::string_view words);

/// A rectangle from its upper left corner.
std::string svg_rect(double x, double y, double width, double height, std::string_view css_class);

/// How wide `words` are at most in the small print of figures, in units; no font is measured.
double text_width(std::string_view words);

/// A label at the side of a figure has at most this many characters.
inline constexpr std::size_t kLongestLabel = 22;

/// `words` of at most `length` characters: of longer ones the end, because names in a row differ there, after "…".
std::string end_of(std::string_view words, std::size_t length);

}  // namespace assay::figures
