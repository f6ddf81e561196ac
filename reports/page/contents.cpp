// contents: headings and the links to them.
#include <exception>
#include <iterator>
#include <new>

#include <fmt/format.h>

#include "reports/figures/html.h"
#include "reports/page/render.h"
#include "reports/page/sections.h"

namespace assay::page {

std::string part_of_page(const std::string& part, const std::function<std::string()>& make) {
  try {
    return make();
  } catch (const std::bad_alloc&) {
    throw;  // it may be there at the next try: the page of one run has one text
  } catch (const std::exception&) {
    return fmt::format(
        "<p class=\"banner\" {}>This part of the report could not be made: {}. The evidence has its figures.</p>\n",
        kMissingPart, figures::escape(part));
  }
}

std::string heading(std::size_t number) {
  return fmt::format("<h2 id=\"s{0}\">{0} {1}</h2>\n", number, kSectionTitles[number - 1]);
}

std::string contents_section() {
  std::string html = "<nav aria-label=\"Contents\"><ol>\n";
  for (std::size_t i = 1; i <= std::size(kSectionTitles); ++i)
    html += fmt::format("<li><a href=\"#s{}\">{}</a></li>\n", i, kSectionTitles[i - 1]);
  return html + "</ol></nav>\n";
}

std::string number_ranges(const std::set<std::size_t>& numbers) {
  std::string words;
  for (auto at = numbers.begin(); at != numbers.end();) {
    const std::size_t first = *at;
    std::size_t last = first;
    for (++at; at != numbers.end() && *at == last + 1; ++at) ++last;
    words += fmt::format("{}R{}", words.empty() ? "" : ", ", first);
    if (last > first) words += fmt::format("{}R{}", last == first + 1 ? ", " : " to ", last);
  }
  return words;
}

std::string anchor_of(const plan::Profile& profile, const std::string& requirement) {
  return figures::requirement_number(profile, requirement);
}

}  // namespace assay::page
