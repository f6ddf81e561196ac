// manifest: MANIFEST.sha256, and the Merkle root over its lines.
#pragma once

#include <cstdint>
#include <expected>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "probes/core/error.h"

namespace assay::evidence {

/// SHA-256 (64 hex digits) by relative path; the order of the map is the order of `LC_ALL=C sort`.
using Manifest = std::map<std::string, std::string>;

/// True for a relative path of [A-Za-z0-9._/-] that can stand on a command line and stays if it is: no empty part, no
/// "." or "..", no part that begins with '-', at most 255 bytes a part and 1024 in all.
bool is_plain_path(std::string_view path);

/// What `sha256sum` prints for the files: "<hex>  <path>\n" for each, sorted. Its SHA-256 is in-toto's dirHash.
std::string manifest_text(const Manifest& manifest);

/// Reads a manifest back. Refused: anything that manifest_text does not write, a path that is not plain, an empty
/// manifest, two paths that differ only in case (they fall together on some file systems).
std::expected<Manifest, InputError> read_manifest(std::string_view text, const std::string& where);

/// The Merkle tree hash of `leaves` (RFC 6962, 2.1), 64 hex digits; the empty tree is SHA-256 of nothing.
std::string merkle_root(const std::vector<std::string>& leaves);

/// The evidence in the signed statement.
struct EvidenceSummary {
  std::string manifest_sha256;    ///< of the manifest's bytes
  std::uint64_t file_count = 0;   ///< lines of the manifest
  std::uint64_t total_bytes = 0;  ///< of all listed files
  std::string merkle_root;        ///< leaves are the lines without their line feed
  friend bool operator==(const EvidenceSummary&, const EvidenceSummary&) = default;
};

/// The summary of `manifest` whose files have `total_bytes` together.
EvidenceSummary summary_of(const Manifest& manifest, std::uint64_t total_bytes);

}  // namespace assay::evidence
