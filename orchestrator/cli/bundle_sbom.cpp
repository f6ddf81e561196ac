// bundle_sbom: versions of libraries come from the headers that this program was compiled with.
#include "orchestrator/cli/bundle_sbom.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/core.h>
#include <openssl/opensslv.h>
#include <sqlite3.h>
#include <zstd.h>
#include <CLI/Version.hpp>
#include <boost/version.hpp>
#include <nlohmann/json.hpp>

namespace assay::cli {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view kProbes = "libexec/assay/probes/";
constexpr std::string_view kVendors = "lib/assay/";

struct Library {
  std::string name;
  std::string version;  ///< empty: its headers have none
  std::string licence;  ///< by its SPDX identifier
};

/// A version that a header has as one decimal number of three parts, of which the last two have `step` values.
std::string dotted(int number, int step) {
  return fmt::format("{}.{}.{}", number / (step * step), number / step % step, number % step);
}

/// Of the head's programs and of the probes of this build.
std::array<Library, 10> compiled_in() {
  constexpr int kFmtStep = 100;
  std::string boost = BOOST_LIB_VERSION;
  std::ranges::replace(boost, '_', '.');
  return {
      {{"Boost", boost, "BSL-1.0"},
       {"CLI11", CLI11_VERSION, "BSD-3-Clause"},
       {"OpenBLAS", "", "BSD-3-Clause"},
       {"OpenSSL", OPENSSL_VERSION_STR, "Apache-2.0"},
       {"SQLite", SQLITE_VERSION, "blessing"},
       {"fmt", dotted(FMT_VERSION, kFmtStep), "MIT"},
       {"liburing", "", "MIT"},
       {"nlohmann_json",
        fmt::format("{}.{}.{}", NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR, NLOHMANN_JSON_VERSION_PATCH),
        "MIT"},
       {"valijson", "", "BSD-2-Clause"},
       {"zstd", ZSTD_VERSION_STRING, "BSD-3-Clause"}}};
}

ordered_json licence_of(const std::string& spdx) {
  return ordered_json::array({ordered_json{{"license", ordered_json{{"id", spdx}}}}});
}

/// Kind of component of a file of the bundle, in the words of CycloneDX.
const char* type_of(std::string_view path) {
  if (path.starts_with("bin/") || path.starts_with(kProbes)) return "application";
  if (path.starts_with(kVendors) && path.find(".so") != std::string_view::npos) return "library";
  return "file";
}

ordered_json component_of(const std::string& path, const std::string& sha256) {
  ordered_json component = {{"type", type_of(path)}, {"bom-ref", path}, {"name", path}};
  if (component["type"] == "application") {
    component["version"] = ASSAY_VERSION;
    component["licenses"] = licence_of("Apache-2.0");
  }
  component["hashes"] = ordered_json::array({ordered_json{{"alg", "SHA-256"}, {"content", sha256}}});
  return component;
}

ordered_json component_of(const Library& library) {
  ordered_json component = {{"type", "library"}, {"bom-ref", library.name}, {"name", library.name}};
  if (!library.version.empty()) component["version"] = library.version;
  component["licenses"] = licence_of(library.licence);
  component["description"] = "compiled or linked into programs of this bundle; the version is that of its headers";
  return component;
}

}  // namespace

std::string bundle_sbom(const std::vector<std::pair<std::string, std::string>>& files) {
  const ordered_json assay = {{"type", "application"},
                              {"bom-ref", "assay"},
                              {"name", "assay"},
                              {"version", ASSAY_VERSION},
                              {"licenses", licence_of("Apache-2.0")}};
  ordered_json components = ordered_json::array();
  ordered_json of_assay = ordered_json::array();
  for (const auto& [path, sha256] : files) {
    components.push_back(component_of(path, sha256));
    of_assay.push_back(path);
  }
  for (const auto& library : compiled_in()) {
    components.push_back(component_of(library));
    of_assay.push_back(components.back()["bom-ref"]);
  }
  const ordered_json depends = {{"ref", "assay"}, {"dependsOn", std::move(of_assay)}};
  const ordered_json document = {{"$schema", "http://cyclonedx.org/schema/bom-1.5.schema.json"},
                                 {"bomFormat", "CycloneDX"},
                                 {"specVersion", "1.5"},
                                 {"version", 1},
                                 {"metadata", ordered_json{{"component", assay}}},
                                 {"components", std::move(components)},
                                 {"dependencies", ordered_json::array({depends})}};
  return document.dump(1) + "\n";
}

}  // namespace assay::cli
