// printed: the same report for paper, with the head of each page.
#pragma once

#include <string>
#include <string_view>
#include <vector>

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

}  // namespace assay::page
