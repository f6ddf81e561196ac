// notes: a file with its proof before the text, under a name that follows from the token.
#include "workloads/crossing/notes.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include <fmt/format.h>

#include "probes/core/probe.h"
#include "probes/core/sha256.h"
#include "probes/core/text.h"

namespace assay::crossing {
namespace {

constexpr std::chrono::milliseconds kLook{100};
constexpr std::size_t kProof = 32, kNamed = 8;  // B

std::string file_of(const NoteFolder& at, std::string_view name) {
  return fmt::format("{}/assay-{}", at.folder,
                     to_hexadecimal(hmac_sha256(at.token, fmt::format("name of {}", name)).substr(0, kNamed)));
}

std::string proof_of(const NoteFolder& at, std::string_view name, std::string_view text) {
  return hmac_sha256(at.token, fmt::format("{}: {}", name, text));
}

}  // namespace

Note::Note(const NoteFolder& at, std::string_view name, std::string_view text) : path_(file_of(at, name)) {
  {
    std::ofstream file(path_ + ".new", std::ios::binary);
    file << proof_of(at, name, text) << text;
    if (!file.flush()) throw std::runtime_error(fmt::format("{}: cannot be written", path_));
  }
  std::filesystem::rename(path_ + ".new", path_);
}

Note::~Note() {
  std::error_code ignored;  // without the token of the step the file is of no use
  if (!path_.empty()) std::filesystem::remove(path_, ignored);
}

std::optional<std::string> note_in(const NoteFolder& at, std::string_view name) {
  std::ifstream file(file_of(at, name), std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  if (bytes.size() <= kProof) return std::nullopt;
  std::string text = bytes.substr(kProof);
  return proof_of(at, name, text) == bytes.substr(0, kProof) ? std::optional(std::move(text)) : std::nullopt;
}

std::optional<std::string> await_note(const NoteFolder& at, std::string_view name, Clock::time_point until) {
  auto found = note_in(at, name);
  while (!found && Clock::now() < until && !stop_requested()) {
    sleep_until_stopped(kLook);
    found = note_in(at, name);
  }
  return found;
}

}  // namespace assay::crossing
