// documents: a file that decides, read whole and handed to its strict reader.
#pragma once

#include <expected>
#include <string>

#include "probes/core/error.h"
#include "probes/core/secret_file.h"

namespace assay::cli {

/// What `read` (text, place) makes of the file `path`; errors name it, as those of
/// read_deciding_file.
template <class Read>
auto read_document(const std::string& path, Read read) -> decltype(read(std::string(), path)) {
  const auto text = read_deciding_file(path);
  if (!text) return std::unexpected(text.error());
  return read(*text, path);
}

}  // namespace assay::cli
