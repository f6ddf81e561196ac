// contents: headings and the links to them.
#include <algorithm>
#include <array>
#include <exception>
#include <iterator>
#include <new>

#include <fmt/format.h>

#include "reports/figures/html.h"
#include "reports/page/render.h"
#include "reports/page/sections.h"

namespace assay::page {
namespace {

constexpr std::array<std::size_t, 5> kOnNewPages = {1, 4, 5, 7, 10};

}  // namespace

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
  const bool new_page = std::ranges::find(kOnNewPages, number) != kOnNewPages.end();
  return fmt::format("<h2 id=\"s{0}\"{1}>{0} {2}</h2>\n", number, new_page ? " class=\"page\"" : "",
                     kSectionTitles[number - 1]);
}

std::string contents_section() {
  std::string html = "<nav aria-label=\"Contents\"><ol>\n";
  for (std::size_t i = 1; i <= std::size(kSectionTitles); ++i)
    html += fmt::format("<li><a href=\"#s{}\">{}</a></li>\n", i, kSectionTitles[i - 1]);
  return html + "</ol></nav>\n";
}

std::string anchor_of(const plan::Profile& profile, const std::string& requirement) {
  return figures::requirement_number(profile, requirement);
}

}  // namespace assay::page
