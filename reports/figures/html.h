// html: escapes hostile text for a page.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace assay::figures {

/// `text` for element content and quoted attributes: & < > " ' become entities; control characters and those that turn
/// the direction of writing are shown as "[U+202E]", so that a node's name cannot disguise itself.
std::string escape(std::string_view text);

/// "<tag>text</tag>" with `text` escaped.
std::string element(std::string_view tag, std::string_view text);

/// "<tr>" with one "<td>" for each of `cells`, which are HTML already, and a class where `css_class` names one.
std::string row(const std::vector<std::string>& cells, std::string_view css_class = "");

/// "<table class=…>" with a caption (escaped), a head of `titles` (escaped) and `rows`, which are HTML already; in a
/// block that scrolls where the page is narrower.
std::string table(std::string_view css_class, std::string_view caption, const std::vector<std::string>& titles,
                  const std::vector<std::string>& rows);

/// A table of two columns, names (escaped) and values (HTML), with a caption.
std::string facts(std::string_view caption, const std::vector<std::pair<std::string, std::string>>& rows);

/// "<code class=digest>" with a SHA-256 or fingerprint, which may break anywhere.
std::string digest_html(std::string_view digest);

}  // namespace assay::figures
