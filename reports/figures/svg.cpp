// svg: elements of every figure; numbers with two decimals, texts escaped.
#include "reports/figures/svg.h"

#include <algorithm>

#include <fmt/format.h>

#include "reports/figures/html.h"

namespace assay::figures {
namespace {

/// Whether a byte of UTF-8 begins a character.
bool begins(char byte) { return (static_cast<unsigned char>(byte) & 0xc0U) != 0x80U; }

}  // namespace

std::string svg_open(std::string_view title, std::string_view description, double height) {
  return fmt::format(
      "<svg class=\"plot\" viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\">\n<title>{}</title>\n<desc>{}</desc>\n",
      kFigureWidth, height, escape(title), escape(description));
}

std::string svg_line(double x1, double y1, double x2, double y2, std::string_view css_class) {
  return fmt::format("<line class=\"{}\" x1=\"{:.2f}\" y1=\"{:.2f}\" x2=\"{:.2f}\" y2=\"{:.2f}\"/>\n", css_class, x1,
                     y1, x2, y2);
}

std::string svg_text(double x, double y, std::string_view anchor, std::string_view css_class, std::string_view words) {
  return fmt::format("<text class=\"{}\" x=\"{:.2f}\" y=\"{:.2f}\" text-anchor=\"{}\">{}</text>\n", css_class, x, y,
                     anchor, escape(words));
}

std::string svg_slanted_text(double x, double y, std::string_view css_class, std::string_view words) {
  return fmt::format(
      "<text class=\"{0}\" x=\"{1:.2f}\" y=\"{2:.2f}\" text-anchor=\"end\" transform=\"rotate(-45 {1:.2f} "
      "{2:.2f})\">{3}</text>\n",
      css_class, x, y, escape(words));
}

std::string svg_rect(double x, double y, double width, double height, std::string_view css_class) {
  return fmt::format("<rect class=\"{}\" x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\"/>\n", css_class,
                     x, y, width, height);
}

double text_width(std::string_view words) {
  constexpr double kWidest = 6.2;  // of a character at 10.5 units, in the widest font of the style sheet
  return kWidest * static_cast<double>(std::ranges::count_if(words, begins));
}

std::string end_of(std::string_view words, std::size_t length) {
  std::size_t left = static_cast<std::size_t>(std::ranges::count_if(words, begins));
  if (left <= length) return std::string(words);
  std::size_t at = 0;
  for (; at < words.size() && (left >= length || !begins(words[at])); ++at) left -= begins(words[at]) ? 1 : 0;
  return "…" + std::string(words.substr(at));
}

}  // namespace assay::figures
