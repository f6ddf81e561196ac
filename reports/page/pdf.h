// pdf: the printed report as a file, drawn by a browser or WeasyPrint of this machine.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "probes/core/error.h"
#include "probes/core/units.h"
#include "reports/page/content.h"

namespace assay::page {

/// Signatures and digests of the printed run.
struct Standing {
  std::string word;                  ///< verified, unsigned, signature_not_checked or simulated
  std::vector<std::string> signers;  ///< of a verified dossier: fingerprints, or "role: signer of party"
};

/// render_html() with a style sheet behind its own: on each page the verdict, run, SHA-256 of the verdict, signers,
/// and the number of pages; no row of a table and no figure is cut.
std::string render_printed(const ReportContent& content, const Standing& standing);

/// `text` as a string of CSS in quotes; all but letters, digits and common punctuation of ASCII is escaped.
std::string css_string(std::string_view text);

/// Programs that print a page, in the order in which they are looked for in PATH.
inline constexpr const char* kPrinters[] = {"chromium", "chromium-browser", "google-chrome", "google-chrome-stable",
                                            "weasyprint"};

/// Prints the report into `path`, which is replaced whole. The times in the PDF are the end of the run, so the same
/// program draws the same bytes. Errors: none of kPrinters is installed, it failed, drew nothing, or did not end by
/// `deadline`.
std::optional<InputError> write_pdf(const ReportContent& content, const Standing& standing, const std::string& path,
                                    Seconds deadline);

/// The bytes of a PDF with every CreationDate and ModDate set to `utc` ("2026-01-05T06:37:41.211Z"), in place; a date
/// of another form stays.
std::string with_dates(std::string pdf, const std::string& utc);

/// `printed` with the names "(node00000041)" of a tagged PDF's elements numbered from 1 as they first appear, and the
/// tree of names sorted by them: Chromium also numbers elements of its own, and not in the same order in every run. As
/// it was where the tree has another form than Chromium's.
std::string with_numbered_nodes(std::string printed);

/// "file:///run%20a/page.html" for an absolute path.
std::string file_address(const std::string& path);

}  // namespace assay::page
