// reason: four parts with colons.
#include "orchestrator/drain/reason.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "probes/core/text.h"

namespace assay::drain {
namespace {

constexpr std::size_t kLongestCheck = 60;

constexpr std::string_view kPunctuation = "._-";

bool is_word(std::string_view text) { return !text.empty() && has_only(text, kPunctuation); }

}  // namespace

std::string reason_text(const Reason& reason) {
  std::string check = reason.check.substr(0, kLongestCheck);
  std::ranges::replace_if(
      check,
      [](char c) {
        return !has_only({&c, 1}, kPunctuation);
      },
      '-');
  std::string date = drift::date_text(reason.date);
  std::erase(date, '-');
  return fmt::format("{}:{}:{}:{}", reason.prefix, check, reason.flag, date);
}

std::optional<Reason> reason_from(std::string_view text, std::string_view prefix) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const auto end = std::min(text.find(':', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  if (parts.size() != 4 || parts[0] != prefix || !is_word(parts[1]) || !is_word(parts[2]) || parts[3].size() != 8)
    return std::nullopt;
  const std::string date(parts[3]);
  const auto day = drift::date_from(date.substr(0, 4) + "-" + date.substr(4, 2) + "-" + date.substr(6, 2));
  if (!day) return std::nullopt;
  Reason reason{
      .prefix = std::string(parts[0]), .check = std::string(parts[1]), .flag = std::string(parts[2]), .date = *day};
  if (reason_text(reason) != text) return std::nullopt;
  return reason;
}

}  // namespace assay::drain
