// printed: the style sheet of the printed report. report.html itself stays as it is: verify compares it byte for byte.
#include "reports/page/printed.h"

#include <cctype>

#include <fmt/format.h>

#include "reports/figures/captions.h"
#include "reports/page/render.h"

namespace assay::page {
namespace {

/// A watermark of this size is not cut by the edges; heads of tables stay with their first row. A list of contents has
/// no page numbers, and its room on the first page is for the signatories.
constexpr std::string_view kPaper = R"css(
.watermark { font-size: 66pt; }
thead { break-inside: avoid; break-after: avoid; }
thead + tbody tr:first-child { break-before: avoid; }
pre, .banner, .counts, .verdict, table.action tr { break-inside: avoid; }
p { orphans: 3; widows: 3; } h3 + p { break-after: avoid; }
.masthead b, .end { letter-spacing: 0; } h1 { font-size: 21pt; } .verdict { padding: 3mm 5mm; margin: 0 0 4mm; } .verdict .word { font-size: 25pt; }
.subtitle { margin-bottom: 3mm; } .counts { margin: 0 0 4mm; } nav { display: none; } .banner { padding: 2mm 4mm; margin: 0 0 4mm; }
)css";

std::string standing_words(const Standing& standing) {
  if (standing.word == "verified") {
    std::string words = "verified, signed by ";
    for (const auto& signer : standing.signers) words += (signer == standing.signers.front() ? "" : "; ") + signer;
    return words;
  }
  if (standing.word == "signature_not_checked") return "SIGNATURE NOT CHECKED";
  return standing.word == "simulated" ? "SIMULATED: nothing was measured" : "unsigned";
}

/// `sheet` with each var(--name) as the value that it gives the name. WeasyPrint 57 drops a shorthand with var() in it,
/// and with the background of `fail` the word; delete with Debian 13.
std::string with_values(std::string sheet) {
  constexpr std::string_view kUse = "var(--";
  for (std::size_t at = sheet.find(kUse); at != std::string::npos; at = sheet.find(kUse, at + 1)) {
    const std::size_t end = sheet.find(')', at);
    const std::string name = sheet.substr(at + 4, end - at - 4) + ": ";  // "--ink: "
    const std::size_t value = sheet.find(name);
    if (end == std::string::npos || value == std::string::npos) continue;
    const std::size_t begin = value + name.size();
    sheet.replace(at, end + 1 - at, sheet.substr(begin, sheet.find(';', begin) - begin));
  }
  return sheet;
}

}  // namespace

std::string css_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    // Bytes of UTF-8 stay: the page is UTF-8.
    if (byte >= 0x80 || std::isalnum(byte) != 0 ||
        std::string_view(" .,:;_-+/@#()").find(c) != std::string_view::npos) {
      out += c;
    } else {
      out += fmt::format("\\{:06x}", byte);
    }
  }
  return out + "\"";
}

std::string render_printed(const ReportContent& content, const Standing& standing) {
  constexpr std::size_t kMostWords = 200;  // of signers, on one line of small type
  std::string vouched = standing_words(standing);
  if (vouched.size() > kMostWords) vouched = fmt::format("verified, with {} signatures", standing.signers.size());
  const std::string verdict =
      fmt::format("{}  run {}", figures::upper_case(to_string(content.verdict.overall)), content.run.journal.run_id);
  const std::string style = fmt::format(
      "<style>@media print {{{}}}\n@page {{ margin: 21mm 15mm 18mm;\n"
      "@top-left {{ content: {} \"\\a \" {} \"\\a \" {}; white-space: pre; font: 6.5pt/1.35 sans-serif; color: "
      "#17202e; "
      "vertical-align: middle; text-align: left; }}\n@top-right {{ content: \"\"; width: 0; }} @top-center {{ content: "
      "\"\"; width: 0; }} }}</style>\n",
      kPaper, css_string(verdict), css_string("SHA-256 of the verdict " + content.verdict_sha256), css_string(vouched));
  const std::string html = render_html(content);
  constexpr std::string_view kEndOfHead = "</head>";
  const std::size_t head = html.find(kEndOfHead);
  return with_values(html.substr(0, head)) + style + html.substr(head);
}

}  // namespace assay::page
