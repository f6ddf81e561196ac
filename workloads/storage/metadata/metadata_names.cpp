// metadata_names: names of equal length, and the check that a listing has each of them once.
#include "workloads/storage/metadata/metadata_names.h"

#include <charconv>
#include <optional>

#include <fmt/format.h>

namespace assay::cluster_storage {
namespace {

constexpr std::string_view kMoved = "moved-";
constexpr std::size_t kDigits = 8;

std::optional<std::uint64_t> number_in(std::string_view digits) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (digits.size() != kDigits || error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return number;
}

}  // namespace

std::string metadata_folder(const MetadataLayout& layout, std::uint64_t set, std::uint64_t stream) {
  return layout.shared ? fmt::format("set-{:04}-shared", set) : fmt::format("set-{:04}-stream-{:08}", set, stream);
}

std::string metadata_file(std::uint64_t stream, std::uint64_t index, bool renamed) {
  return fmt::format("{}{:08}-{:08}", renamed ? kMoved : std::string_view("made-"), stream, index);
}

ListingCheck::ListingCheck(const MetadataLayout& layout, std::uint64_t stream)
    : first_stream_(layout.shared ? 0 : stream),
      files_(layout.files),
      seen_((layout.shared ? layout.streams : 1) * layout.files),
      missing_(seen_.size()) {}

void ListingCheck::add(std::string_view name) {
  std::optional<std::uint64_t> stream, index;
  if (name.size() == kMoved.size() + 2 * kDigits + 1 && name.starts_with(kMoved)) {
    stream = number_in(name.substr(kMoved.size(), kDigits));
    index = number_in(name.substr(kMoved.size() + kDigits + 1));
  }
  if (!stream || !index || *stream < first_stream_ || *index >= files_ ||
      (*stream - first_stream_) * files_ + *index >= seen_.size()) {
    if (unknown_++ == 0) first_unknown_ = name;
    return;
  }
  const std::size_t place = (*stream - first_stream_) * files_ + *index;
  if (seen_[place]) {
    ++twice_;
    return;
  }
  seen_[place] = true;
  --missing_;
}

std::string ListingCheck::text() const {
  if (errors() == 0) return "";
  std::string words = fmt::format("of {} names {} are missing, {} come twice, {} are not expected", seen_.size(),
                                  missing_, twice_, unknown_);
  if (!first_unknown_.empty()) words += fmt::format(", the first '{}'", first_unknown_);
  return words;
}

}  // namespace assay::cluster_storage
