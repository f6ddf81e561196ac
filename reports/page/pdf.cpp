// pdf: a page in a folder of its own, a program that prints it, and the file that comes of it. The style sheet of the
// printed report is here, because report.html itself stays as it is: verify compares it byte for byte.
#include "reports/page/pdf.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <sstream>
#include <system_error>

#include <unistd.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "orchestrator/files/atomic_file.h"
#include "probes/core/child.h"
#include "probes/core/text.h"
#include "reports/figures/captions.h"
#include "reports/page/render.h"

namespace assay::page {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSignature = "%PDF-";
constexpr std::size_t kLargestPdf = std::size_t{1} << 30;
constexpr std::size_t kEndOfFile = 64;  // bytes behind which "%%EOF" does not stand

struct Printer {
  std::string path;
  bool is_browser = true;
};

std::optional<Printer> find_printer() {
  for (const std::string_view name : kPrinters) {
    if (auto path = find_program(name)) return Printer{.path = std::move(*path), .is_browser = name != "weasyprint"};
  }
  return std::nullopt;
}

std::vector<std::string> arguments_for(const Printer& printer, const fs::path& folder) {
  const std::string page = (folder / "page.html").string(), pdf = (folder / "page.pdf").string();
  if (!printer.is_browser) return {"--quiet", page, pdf};
  std::vector<std::string> arguments = {"--headless",
                                        "--disable-gpu",
                                        "--disable-extensions",
                                        "--disable-background-networking",
                                        "--disable-component-update",
                                        "--disable-breakpad",
                                        "--no-first-run",
                                        "--no-pdf-header-footer",
                                        "--user-data-dir=" + (folder / "profile").string(),
                                        "--print-to-pdf=" + pdf};
  // Chromium refuses to run as root with its sandbox. The page is ours, and its policy lets no script run.
  if (::geteuid() == 0) arguments.emplace_back("--no-sandbox");
  arguments.push_back(file_address(page));
  return arguments;
}

/// The last line that a program wrote, for a hint.
std::string last_line(const std::string& log) {
  const auto text = read_file(log);
  if (!text) return "";
  std::string line;
  for (std::size_t at = 0; at < text->size();) {
    const std::size_t end = std::min(text->find('\n', at), text->size());
    if (end > at) line = text->substr(at, end - at);
    at = end + 1;
  }
  return line;
}

/// The PDF that `printer` makes of page.html in `folder`.
std::expected<std::string, InputError> print(const Printer& printer, const fs::path& folder, Seconds deadline) {
  const std::string log = (folder / "log").string();
  try {
    const auto outcome =
        run_child(printer.path, arguments_for(printer, folder), deadline, {.directory = folder.string(), .log = log});
    if (outcome.end == ChildEnd::overdue) {
      return std::unexpected(InputError{printer.path,
                                        fmt::format("did not print within {:g} s and was killed", deadline.count),
                                        "try again on an idle machine, or open report.html in a browser and print it"});
    }
    auto bytes = read_file((folder / "page.pdf").string(), kLargestPdf);
    const bool whole = bytes && bytes->starts_with(kSignature) &&
                       bytes->find("%%EOF", bytes->size() - std::min(bytes->size(), kEndOfFile)) != std::string::npos;
    if (outcome.code == 0 && whole) return bytes;
    return std::unexpected(
        InputError{printer.path, fmt::format("ended with exit code {} and {} PDF", outcome.code, whole ? "a" : "no"),
                   fmt::format("its last line: {}", harmless(last_line(log)))});
  } catch (const std::system_error& error) {
    return std::unexpected(InputError{printer.path, fmt::format("cannot be started: {}", error.code().message()),
                                      "check that it is installed and executable"});
  }
}

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

/// Sorts the pairs "(node00000001) 14 0 R" of the tree of names, whose names are 1 to `count`, and writes its limits.
/// True without a tree; false for another form than Chromium's, which is one leaf.
bool sort_names(std::string& pdf, std::size_t count) {
  constexpr std::string_view kNames = "/Names [(node";
  constexpr std::string_view kLimits = "/Limits [(node";
  const std::size_t tree = pdf.find(kNames);
  if (tree == std::string::npos) return true;
  const std::size_t begin = pdf.find('(', tree), end = pdf.find(']', tree);
  if (end == std::string::npos || pdf.find(kNames, end) != std::string::npos) return false;
  std::vector<std::string> pairs;
  std::istringstream in(pdf.substr(begin, end - begin));
  for (std::string name, object, generation, kind; in >> name >> object >> generation >> kind;)
    pairs.push_back(fmt::format("{} {} {} {}", name, object, generation, kind));
  std::ranges::sort(pairs);
  const std::string sorted = fmt::format("{}", fmt::join(pairs, " "));
  const std::string limits = fmt::format("{}{:08}) (node{:08})]", kLimits, 1, count);
  const std::size_t at = pdf.find(kLimits);
  if (sorted.size() != end - begin || at == std::string::npos || pdf.find(']', at) != at + limits.size() - 1)
    return false;
  pdf.replace(begin, sorted.size(), sorted);
  pdf.replace(at, limits.size(), limits);
  return true;
}

}  // namespace

std::string file_address(const std::string& path) {
  std::string address = "file://";
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain =
        byte < 0x80 && (std::isalnum(byte) != 0 || std::string_view("/._-").find(c) != std::string_view::npos);
    address += plain ? std::string(1, c) : fmt::format("%{:02X}", byte);
  }
  return address;
}

std::string with_dates(std::string pdf, const std::string& utc) {
  constexpr std::size_t kDigits = 14;  // of D:20260105063741
  const auto is_digit = [](unsigned char c) { return std::isdigit(c) != 0; };
  std::string digits;
  for (const char c : utc.substr(0, utc.find('.'))) {
    if (is_digit(static_cast<unsigned char>(c))) digits += c;
  }
  if (digits.size() != kDigits) return pdf;
  for (const std::string_view key : {"/CreationDate (D:", "/ModDate (D:"}) {
    for (std::size_t at = pdf.find(key); at != std::string::npos; at = pdf.find(key, at + 1)) {
      const std::size_t begin = at + key.size();
      if (begin + kDigits <= pdf.size() && std::ranges::all_of(std::string_view(pdf).substr(begin, kDigits), is_digit))
        pdf.replace(begin, kDigits, digits);
    }
  }
  return pdf;
}

std::string with_numbered_nodes(std::string printed) {
  constexpr std::string_view kBegin = "(node";
  constexpr std::size_t kDigits = 8;
  std::string pdf = printed;
  std::map<std::string, std::string> numbers;  // by those of the printer
  for (std::size_t at = pdf.find(kBegin); at != std::string::npos; at = pdf.find(kBegin, at + 1)) {
    const std::size_t begin = at + kBegin.size();
    const std::string digits = pdf.substr(begin, kDigits);
    const bool is_number =
        digits.size() == kDigits && std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; });
    if (!is_number || pdf.substr(begin + kDigits, 1) != ")") continue;
    const std::string next = fmt::format("{:0{}}", numbers.size() + 1, kDigits);
    pdf.replace(begin, kDigits, numbers.try_emplace(digits, next).first->second);
  }
  return sort_names(pdf, numbers.size()) ? pdf : printed;
}

std::optional<InputError> write_pdf(const ReportContent& content, const Standing& standing, const std::string& path,
                                    Seconds deadline) {
  const auto printer = find_printer();
  if (!printer) {
    return InputError{path, "cannot be printed: neither chromium nor weasyprint is installed here",
                      "`apt-get install chromium`, or open report.html in any browser and print it to PDF"};
  }
  const fs::path target = fs::absolute(path);
  const auto folder = files::StagingDirectory::beside(target);
  if (!folder) return folder.error();
  if (auto problem = folder->write("page.html", render_printed(content, standing))) return problem;
  auto pdf = print(*printer, folder->path(), deadline);
  if (!pdf) return pdf.error();
  return files::replace_file(target.string(),
                             with_numbered_nodes(with_dates(std::move(*pdf), content.run.journal.end)));
}

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
