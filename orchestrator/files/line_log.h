// line_log: a file of lines that is appended to, or made anew whole, by one process at a time.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "probes/core/descriptor.h"
#include "probes/core/error.h"

namespace assay::files {

/// Such a file, open and locked. A line is on disk when append() returns; one that a killed process left without its
/// end was never acted upon, and is cut off when the file is opened.
class LineLog {
 public:
  /// Opens `path`, made when missing with its folders. Errors: it cannot be opened, it is a link, another process has
  /// it open.
  static std::expected<LineLog, InputError> open(const std::string& path);

  /// The lines that were there when it was opened, without their ends.
  [[nodiscard]] const std::vector<std::string>& lines() const { return lines_; }
  /// Appends `line`, which has no line break, and waits until it is on disk. After an error nothing of it counts.
  [[nodiscard]] std::optional<InputError> append(std::string_view line);
  /// Puts a file of these lines, without their ends, in the place of the present one, in one step; on disk when it
  /// returns. The log is of the former file then: nothing more may be appended.
  [[nodiscard]] std::optional<InputError> replace(const std::vector<std::string>& lines);

 private:
  std::string path_;
  Descriptor file_;
  std::vector<std::string> lines_;
};

/// The whole lines of the file `path`, read without a lock; none if there is no such file.
std::expected<std::vector<std::string>, InputError> read_lines(const std::string& path);

}  // namespace assay::files
