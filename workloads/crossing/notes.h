// notes: texts from rank to rank, in a folder of the operator's, where no network between them is known to work.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "workloads/crossing/tried.h"

namespace assay::crossing {

/// A folder that all nodes of a path see, and the token of the step: without it no note can be named or written.
struct NoteFolder {
  std::string folder;
  std::string_view token;
};

/// A note that is in the folder, whole, until this goes out of scope.
class Note {
 public:
  /// Throws std::runtime_error if writing fails.
  Note(const NoteFolder& at, std::string_view name, std::string_view text);
  Note(Note&& other) noexcept : path_(std::exchange(other.path_, "")) {}
  Note& operator=(Note&&) = delete;
  ~Note();

 private:
  std::string path_;
};

/// The text of the note of that name; nothing before it is whole, or where its proof is not by the token.
std::optional<std::string> note_in(const NoteFolder& at, std::string_view name);

/// The same, waited for until `until` or a stop.
std::optional<std::string> await_note(const NoteFolder& at, std::string_view name, Clock::time_point until);

}  // namespace assay::crossing
