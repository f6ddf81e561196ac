// bundle: this installation as one folder or archive, for machines with only a driver installed.
#pragma once

#include <expected>
#include <filesystem>
#include <string>
#include <vector>

#include "orchestrator/plan/programs.h"

namespace assay::cli {

/// Content of a bundle.
struct BundleRequest {
  std::vector<std::string> probes;         ///< names; empty: every probe of the installation
  bool with_libraries = false;             ///< also the vendor's libraries that probes open at run time
  std::vector<std::string> library_paths;  ///< folders that have those, in order; empty: the usual places
};

/// One file of a bundle.
struct BundleFile {
  std::string name;            ///< path in the bundle: "bin/assay"
  std::filesystem::path file;  ///< copied from here; empty: `text` is the content
  std::string text;
  bool executable = false;
};

/// Every file of the bundle of `installation`, sorted by name; then SBOM.cdx.json, their components, and the last one
/// SHA256SUMS over the others, as `sha256sum -c` reads it. The layout is that of an installation: bin/,
/// libexec/assay/probes/, share/assay/profiles/ and, with libraries, lib/assay/. Errors: a missing program, an unknown
/// probe, a library that is in none of the searched folders.
std::expected<std::vector<BundleFile>, InputError> bundle_files(const plan::Installation& installation,
                                                                const BundleRequest& request);

/// Writes `files` to `out`: an archive when the name ends in .tar, with one folder assay-VERSION in it, else that
/// folder itself. The same files give the same bytes: names sorted, times 0, owner 0, modes 0755 and 0644. `out` must
/// not exist; an unfinished bundle is removed. Errors: `out` exists, or cannot
/// be written; no tar.
std::expected<void, InputError> write_bundle(const std::vector<BundleFile>& files, const std::filesystem::path& out);

}  // namespace assay::cli
