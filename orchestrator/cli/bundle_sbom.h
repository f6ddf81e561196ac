// bundle_sbom: components of a bundle, as CycloneDX 1.5.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace assay::cli {

/// The bill of materials of files whose paths and SHA-256 are given, as CycloneDX 1.5 in JSON: programs and documents
/// by their digest, vendors' libraries by name, and the libraries that are compiled into the programs by the version of
/// their headers. It has neither time nor serial number, so that the same files give the same text.
/// Source: ECMA-424, CycloneDX 1.5 JSON schema.
std::string bundle_sbom(const std::vector<std::pair<std::string, std::string>>& files);

}  // namespace assay::cli
