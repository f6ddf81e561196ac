// bundle: this installation as one folder or archive, for machines with only a driver installed. Versions of libraries
// come from the headers that this program was compiled with.
#include "orchestrator/cli/bundle.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <openssl/opensslv.h>

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <sqlite3.h>
#include <zstd.h>
#include <CLI/Version.hpp>
#include <boost/version.hpp>
#include <nlohmann/json.hpp>

#include "orchestrator/files/atomic_file.h"
#include "orchestrator/files/child.h"
#include "orchestrator/files/digest.h"
#include "probes/core/suggest.h"
#include "profiles/embedded.h"

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

/// The bill of materials of files whose paths and SHA-256 are given, as CycloneDX 1.5 in JSON: programs and documents
/// by their digest, vendors' libraries by name, and the libraries that are compiled into the programs by the version of
/// their headers. It has neither time nor serial number, so that the same files give the same text.
/// Source: ECMA-424, CycloneDX 1.5 JSON schema.
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

namespace fs = std::filesystem;

constexpr Seconds kTarDeadline{600};  // a gigabyte of libraries onto a slow shared drive
constexpr const char* kRoot = "assay-" ASSAY_VERSION;
constexpr const char* kSbom = "SBOM.cdx.json";
constexpr const char* kArchive = "bundle.tar";  // name of the archive while it is staged

/// Documents for the reader of a bundle, from share/doc/assay of the installation.
constexpr std::array<const char*, 5> kDocuments = {"LICENSE", "README.md", "GUIDE.md", "GLOSSARY.md", "FORMATS.md"};

/// Libraries that probes open at run time and that are not part of a driver.
constexpr std::array<const char*, 2> kLibraries = {"libcublasLt.so.13", "libnccl.so.2"};

/// Where the CUDA Toolkit and the distributions' packages put them.
constexpr std::array<const char*, 7> kLibraryFolders = {"/usr/local/cuda/lib64",
                                                        "/usr/local/cuda/lib",
                                                        "/usr/lib/x86_64-linux-gnu",
                                                        "/usr/lib/aarch64-linux-gnu",
                                                        "/usr/lib64",
                                                        "/usr/lib",
                                                        "/usr/local/lib"};

constexpr const char* kReadme =
    "assay " ASSAY_VERSION
    ", packed by `assay bundle`.\n"
    "\n"
    "Check:    sha256sum -c SHA256SUMS\n"
    "List:     bin/assay list\n"
    "Accept:   bin/assay accept --profile NAME --out run      (this machine; options: --help)\n"
    "Read:     share/doc/assay: LICENSE, README.md, GUIDE.md, GLOSSARY.md, FORMATS.md\n"
    "\n"
    "All files are found relative to bin/assay: unpack it anywhere, as any user, and delete the folder afterwards.\n"
    "Requirements: Linux, a C library no older than the one assay was built with, the driver of the\n"
    "accelerator, and fio for the storage probes.\n";

constexpr const char* kNotice =
    "The libraries in this folder are NVIDIA's and are not part of assay; its licence does not cover them.\n"
    "libcublasLt comes under the licence agreement of the CUDA Toolkit, libnccl under the licence of NCCL. Anyone "
    "who\n"
    "redistributes this bundle must comply with them:\n"
    "  https://docs.nvidia.com/cuda/eula/\n"
    "  https://github.com/NVIDIA/nccl/blob/master/LICENSE.txt\n";

std::string message(const std::error_code& error) { return error.message(); }

/// Whether `file` begins as a shared library does: a linker script of the same name is none.
bool is_elf(const fs::path& file) {
  std::array<char, 4> magic{};
  std::ifstream(file, std::ios::binary).read(magic.data(), magic.size());
  return std::string_view(magic.data(), magic.size()) ==
         "\x7f"
         "ELF";
}

/// The library from the named folders, or from the usual places when none is named.
std::expected<BundleFile, InputError> library(const std::string& soname, const std::vector<std::string>& named) {
  const std::vector<std::string> usual(kLibraryFolders.begin(), kLibraryFolders.end());
  const auto& folders = named.empty() ? usual : named;
  for (const auto& folder : folders) {
    const fs::path file = fs::path(folder) / soname;
    std::error_code error;
    const fs::path real = fs::canonical(file, error);  // the name is often a link to the version
    if (error) continue;
    if (is_elf(real)) return BundleFile{.name = "lib/assay/" + soname, .file = real};
    if (!named.empty())
      return std::unexpected(
          InputError{file, "is not a shared library", "name the folder that has the library itself"});
  }
  return std::unexpected(
      InputError{soname, fmt::format("is not in {}", fmt::join(folders, ", ")),
                 "name its folder with --library-path, or omit --with-libraries where the nodes have the library"});
}

std::expected<std::vector<plan::Program>, InputError> chosen(const plan::Installation& installation,
                                                             const std::vector<std::string>& wanted) {
  auto programs = plan::find_programs(installation.probes);
  if (!programs || wanted.empty()) return programs;
  std::vector<std::string> names;
  for (const auto& program : *programs) names.push_back(program.name);
  for (const auto& name : wanted) {
    if (std::ranges::find(names, name) == names.end()) {
      return std::unexpected(
          InputError{"--probe", fmt::format("'{}' is not a probe of this build", name), suggestion(name, names)});
    }
  }
  std::erase_if(*programs,
                [&](const plan::Program& program) { return std::ranges::find(wanted, program.name) == wanted.end(); });
  return programs;
}

using Sums = std::vector<std::pair<std::string, std::string>>;  ///< path and SHA-256

std::expected<Sums, InputError> sums_of(const std::vector<BundleFile>& files) {
  Sums sums;
  for (const auto& one : files) {
    const auto digest = one.file.empty() ? files::sha256(one.text) : files::sha256_of_file(one.file);
    if (!digest) return std::unexpected(digest.error());
    sums.emplace_back(one.name, *digest);
  }
  return sums;
}

/// As `sha256sum -c` reads it.
std::string text_of(const Sums& sums) {
  std::string text;
  for (const auto& [name, digest] : sums) text += fmt::format("{}  {}\n", digest, name);
  return text;
}

std::optional<InputError> stage(const std::vector<BundleFile>& files, const fs::path& root) {
  using enum fs::perms;
  constexpr fs::perms kData = owner_read | owner_write | group_read | others_read;
  constexpr fs::perms kProgram = kData | owner_exec | group_exec | others_exec;
  try {
    for (const auto& one : files) {
      const fs::path target = root / one.name;
      fs::create_directories(target.parent_path());
      if (one.file.empty()) {
        std::ofstream stream(target, std::ios::binary);
        stream << one.text;
        if (!stream.flush()) return InputError{target, "cannot be written", "free space, or name another --out"};
      } else {
        fs::copy_file(one.file, target);
      }
      fs::permissions(target, one.executable ? kProgram : kData);
    }
    fs::permissions(root, kProgram);
    for (const auto& entry : fs::recursive_directory_iterator(root)) {
      if (entry.is_directory()) fs::permissions(entry, kProgram);  // for any umask
    }
  } catch (const fs::filesystem_error& error) {
    return InputError{root, error.what(), "free space, or name another --out"};
  }
  return std::nullopt;
}

std::optional<InputError> archive(const fs::path& staging, const fs::path& file) {
  const std::string tar = files::find_in_path("tar");
  if (tar.empty()) return InputError{"tar", "is not installed", "install GNU tar, or name a folder with --out"};
  // `name` sorts by bytes; ustar knows nothing of the machine, and holds files of up to 8 GiB.
  const auto done =
      files::run_child(tar,
                       {"--create", "--file=" + file.string(), "--format=ustar", "--sort=name", "--mtime=@0",
                        "--owner=0", "--group=0", "--numeric-owner", "--directory=" + staging.string(), kRoot},
                       kTarDeadline);
  if (!done) return done.error();
  if (done->exit_code != 0)
    return InputError{tar, fmt::format("exited with code {}", done->exit_code),
                      "it must be GNU tar 1.28 or later; check the free space"};
  return std::nullopt;
}

}  // namespace

std::expected<std::vector<BundleFile>, InputError> bundle_files(const plan::Installation& installation,
                                                                const BundleRequest& request) {
  const auto programs = chosen(installation, request.probes);
  if (!programs) return std::unexpected(programs.error());
  std::vector<BundleFile> files;
  for (const char* name : {"assay", "assay-node", "assay-report", "assay-fleet"}) {
    files.push_back(
        {.name = fmt::format("bin/{}", name), .file = fs::path(installation.binaries) / name, .executable = true});
  }
  for (const auto& program : *programs) {
    files.push_back({.name = fmt::format("libexec/assay/probes/{}", fs::path(program.path).filename().string()),
                     .file = program.path,
                     .executable = true});
  }
  for (const auto& [name, text] : profiles::embedded_documents()) {
    files.push_back({.name = fmt::format("share/assay/profiles/{}.json", name), .text = std::string(text)});
  }
  for (const char* name : kDocuments) {
    files.push_back({.name = fmt::format("share/doc/assay/{}", name),
                     .file = fs::path(installation.binaries).parent_path() / "share/doc/assay" / name});
  }
  if (request.with_libraries) {
    for (const char* soname : kLibraries) {
      auto found = library(soname, request.library_paths);
      if (!found) return std::unexpected(found.error());
      files.push_back(std::move(*found));
    }
    files.push_back({.name = "lib/assay/NOTICE", .text = kNotice});
  }
  files.push_back({.name = "README", .text = kReadme});
  files.push_back({.name = "VERSION", .text = ASSAY_VERSION "\n"});
  for (const auto& one : files) {
    if (std::error_code error; !one.file.empty() && !fs::is_regular_file(one.file, error)) {
      return std::unexpected(InputError{one.file, error ? message(error) : "is not a file",
                                        "a bundle is made from a whole installation: build or install all of assay"});
    }
  }
  std::ranges::sort(files, {}, &BundleFile::name);
  auto sums = sums_of(files);
  if (!sums) return std::unexpected(sums.error());
  files.push_back({.name = kSbom, .text = bundle_sbom(*sums)});
  sums->emplace_back(kSbom, files::sha256(files.back().text));
  files.push_back({.name = "SHA256SUMS", .text = text_of(*sums)});
  return files;
}

std::expected<void, InputError> write_bundle(const std::vector<BundleFile>& files, const fs::path& out) {
  std::error_code error;
  if (fs::exists(fs::symlink_status(out, error)))
    return std::unexpected(InputError{out, "exists", "name another --out, or remove it"});
  const auto staging = files::StagingDirectory::beside(fs::absolute(out));
  if (!staging) return std::unexpected(staging.error());
  if (auto problem = stage(files, staging->path() / kRoot)) return std::unexpected(*problem);
  const bool archived = out.extension() == ".tar";
  if (archived) {
    if (auto problem = archive(staging->path(), staging->path() / kArchive)) return std::unexpected(*problem);
  }
  if (auto problem = staging->publish(archived ? kArchive : kRoot)) return std::unexpected(*problem);
  return {};
}

}  // namespace assay::cli
