// program_store: programs as they arrive, checked against their SHA-256 and immutable from then on.
#pragma once

#include <cstdint>
#include <expected>
#include <map>
#include <string>
#include <string_view>

#include "probes/core/descriptor.h"

namespace assay::node {

/// Where programs are stored.
enum class ProgramPlace {
  memfd,  ///< a sealed memory file; falls back to `file` where the kernel refuses executable ones
  file,   ///< an unlinked file on disk that is not open for writing
};

/// Programs by SHA-256. Each is executed through the descriptor whose content was hashed, never through a path.
class ProgramStore {
 public:
  /// `directory` is claimed (claim_directory) and takes the files of ProgramPlace::file.
  ProgramStore(std::string directory, ProgramPlace place) : directory_(std::move(directory)), place_(place) {}

  /// A program of `size` bytes is about to arrive; one that has arrived in part starts again. The error is the reason
  /// of the refusal.
  std::expected<void, std::string> begin(const std::string& sha256, std::uint64_t size);
  /// More of its bytes. True when it is complete, its hash is right and it can run; false while bytes are missing. On
  /// an error the program is dropped.
  std::expected<bool, std::string> add(const std::string& sha256, std::string_view bytes);
  /// The descriptor of a complete program, owned by the store; -1 when there is none.
  [[nodiscard]] int find(const std::string& sha256) const;

 private:
  struct Arrival {
    Descriptor file;
    std::uint64_t size = 0;
    std::uint64_t have = 0;
    ProgramPlace place = ProgramPlace::memfd;
  };
  std::expected<bool, std::string> finish(const std::string& sha256, Arrival& arrival);
  std::expected<Arrival, std::string> make_file(const std::string& sha256) const;

  std::string directory_;
  ProgramPlace place_;
  std::map<std::string, Arrival> arriving_;
  std::map<std::string, Descriptor> ready_;
  std::uint64_t total_ = 0;  // bytes of all programs, complete or not
};

}  // namespace assay::node
