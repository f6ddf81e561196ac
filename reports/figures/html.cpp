// html: escaping and tables.
#include "reports/figures/html.h"

#include <cstdint>

#include <fmt/format.h>

namespace assay::figures {
namespace {

/// The code point at `at` of well-formed UTF-8 and its length; a stray byte is itself.
std::pair<std::uint32_t, std::size_t> point_at(std::string_view text, std::size_t at) {
  const auto lead = static_cast<unsigned char>(text[at]);
  const std::size_t length = lead < 0xc0 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  if (length == 1 || at + length > text.size()) return {lead, 1};
  std::uint32_t point = lead & (0xffU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) point = (point << 6U) | (static_cast<unsigned char>(text[at + i]) & 0x3fU);
  return {point, length};
}

/// Control characters, and the marks, embeddings, overrides and isolates of bidirectional text (Unicode UAX 9).
bool is_disguise(std::uint32_t point) {
  return point < 0x20 || (point >= 0x7f && point <= 0x9f) || point == 0x200e || point == 0x200f || point == 0x061c ||
         point == 0xfeff || (point >= 0x2028 && point <= 0x202e) || (point >= 0x2066 && point <= 0x2069);
}

}  // namespace

std::string escape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const auto [point, length] = point_at(text, i);
    if (point == '\n') {
      out += ' ';
    } else if (is_disguise(point)) {
      out += fmt::format("[U+{:04X}]", point);
    } else if (point == '&') {
      out += "&amp;";
    } else if (point == '<') {
      out += "&lt;";
    } else if (point == '>') {
      out += "&gt;";
    } else if (point == '"') {
      out += "&quot;";
    } else if (point == '\'') {
      out += "&#39;";
    } else {
      out += text.substr(i, length);
    }
    i += length;
  }
  return out;
}

std::string element(std::string_view tag, std::string_view text) {
  return fmt::format("<{0}>{1}</{0}>", tag, escape(text));
}

std::string row(const std::vector<std::string>& cells, std::string_view css_class) {
  std::string html = css_class.empty() ? "<tr>" : fmt::format("<tr class=\"{}\">", css_class);
  for (const auto& cell : cells) html += "<td>" + cell + "</td>";
  return html + "</tr>\n";
}

std::string table(std::string_view css_class, std::string_view caption, const std::vector<std::string>& titles,
                  const std::vector<std::string>& rows) {
  std::string html = fmt::format("<div class=\"scroll\"><table class=\"{}\">\n{}\n<thead><tr>", css_class,
                                 element("caption", caption));
  for (const auto& title : titles) html += fmt::format("<th scope=\"col\">{}</th>", escape(title));
  html += "</tr></thead>\n<tbody>\n";
  for (const auto& one : rows) html += one;
  return html + "</tbody>\n</table></div>\n";
}

std::string facts(std::string_view caption, const std::vector<std::pair<std::string, std::string>>& rows) {
  std::string html = "<table class=\"facts\">\n" + element("caption", caption) + "\n";
  for (const auto& [name, value] : rows)
    html += fmt::format("<tr><th scope=\"row\">{}</th><td>{}</td></tr>\n", escape(name), value);
  return html + "</table>\n";
}

std::string digest_html(std::string_view digest) {
  return fmt::format("<code class=\"digest\">{}</code>", escape(digest));
}

}  // namespace assay::figures
