// metadata_names: names of the files of storage_metadata, and the check of a listing of them. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace assay::cluster_storage {

/// Files of all streams of one set.
struct MetadataLayout {
  bool shared = false;        ///< one directory for all streams; else one each
  std::uint64_t streams = 1;  ///< of all ranks
  std::uint64_t files = 0;    ///< of each stream
};

/// The directory of `stream` in the set of this number.
std::string metadata_folder(const MetadataLayout& layout, std::uint64_t set, std::uint64_t stream);

/// The name of file `index` of `stream`, as it was made or as it is called after it was renamed.
std::string metadata_file(std::uint64_t stream, std::uint64_t index, bool renamed);

/// A listing of the directory of `stream` in which every file must be there once, by its new name.
class ListingCheck {
 public:
  ListingCheck(const MetadataLayout& layout, std::uint64_t stream);
  /// Takes one name of the listing in, "." and ".." not among them.
  void add(std::string_view name);
  /// Names that were not expected, came twice, or did not come.
  [[nodiscard]] std::uint64_t errors() const { return unknown_ + twice_ + missing_; }
  /// The same in words; empty if there are none.
  [[nodiscard]] std::string text() const;

 private:
  std::uint64_t first_stream_, files_;
  std::vector<bool> seen_;  ///< by stream from first_stream_ on, then by index
  std::uint64_t unknown_ = 0, twice_ = 0, missing_;
  std::string first_unknown_;
};

}  // namespace assay::cluster_storage
