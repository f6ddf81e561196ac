// manifest: sha256sum's format and RFC 6962's tree.
#include "reports/evidence/manifest.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <span>

#include <fmt/format.h>

#include "orchestrator/files/digest.h"
#include "probes/core/text.h"

namespace assay::evidence {
namespace {

constexpr std::size_t kLongestPart = 255;   // NAME_MAX of Linux file systems
constexpr std::size_t kLongestPath = 1024;  // deeper than any evidence; PATH_MAX is 4096 with the folder above
constexpr std::size_t kDigestLength = 64;
constexpr const char* kHint = "the manifest is written by `assay-report sign` and covered by its signature";

std::string line_of(const std::string& sha256, const std::string& path) { return sha256 + "  " + path; }

/// The raw digest of `bytes`.
std::string raw_sha256(std::string_view bytes) { return from_hexadecimal(files::sha256(bytes)).value(); }

/// The raw tree hash of at least one leaf.
std::string tree_hash(std::span<const std::string> leaves) {
  if (leaves.size() == 1) return raw_sha256(std::string(1, '\0') + leaves.front());
  std::size_t left = 1;
  while (left * 2 < leaves.size()) left *= 2;
  return raw_sha256('\x01' + tree_hash(leaves.first(left)) + tree_hash(leaves.subspan(left)));
}

}  // namespace

bool is_plain_path(std::string_view path) {
  if (path.empty() || path.size() > kLongestPath) return false;
  while (true) {
    const auto slash = path.find('/');
    const auto part = path.substr(0, slash);
    if (part.empty() || part == "." || part == ".." || part.front() == '-' || part.size() > kLongestPart) return false;
    const auto plain = [](unsigned char c) {
      return c < 0x80 && (std::isalnum(c) != 0 || c == '.' || c == '_' || c == '-');
    };
    if (!std::ranges::all_of(part, plain)) return false;
    if (slash == std::string_view::npos) return true;
    path.remove_prefix(slash + 1);
  }
}

std::string manifest_text(const Manifest& manifest) {
  std::string text;
  for (const auto& [path, digest] : manifest) text += line_of(digest, path) + "\n";
  return text;
}

std::expected<Manifest, InputError> read_manifest(std::string_view text, const std::string& where) {
  Manifest manifest;
  std::set<std::string> folded;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const auto refused = [&](const std::string& what) {
      return std::unexpected(InputError{fmt::format("{}: line {}", where, number), what, kHint});
    };
    const auto length = text.find('\n');
    if (length == std::string_view::npos) return refused("is cut off");
    const auto line = text.substr(0, length);
    text.remove_prefix(length + 1);
    if (line.size() < kDigestLength + 3 || !files::is_sha256(line.substr(0, kDigestLength)) ||
        line.substr(kDigestLength, 2) != "  ") {
      return refused("is not '<SHA-256>  <path>'");
    }
    std::string path(line.substr(kDigestLength + 2));
    if (!is_plain_path(path)) return refused("has a path that is not plain and relative");
    if (!manifest.empty() && path <= manifest.rbegin()->first) return refused("is not in order, or is repeated");
    std::string lower = path;
    std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (!folded.insert(lower).second) return refused("has a path that differs from another only in case");
    manifest.emplace_hint(manifest.end(), std::move(path), line.substr(0, kDigestLength));
  }
  if (manifest.empty()) return std::unexpected(InputError{where, "lists nothing", kHint});
  return manifest;
}

std::string merkle_root(const std::vector<std::string>& leaves) {
  return leaves.empty() ? files::sha256("") : to_hexadecimal(tree_hash(leaves));
}

EvidenceSummary summary_of(const Manifest& manifest, std::uint64_t total_bytes) {
  std::vector<std::string> lines;
  for (const auto& [path, digest] : manifest) lines.push_back(line_of(digest, path));
  return {.manifest_sha256 = files::sha256(manifest_text(manifest)),
          .file_count = manifest.size(),
          .total_bytes = total_bytes,
          .merkle_root = merkle_root(lines)};
}

}  // namespace assay::evidence
