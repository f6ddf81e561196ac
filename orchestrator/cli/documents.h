// documents: a file read whole and handed to its strict reader.
#pragma once

#include <expected>
#include <string>

#include "probes/core/error.h"

namespace assay::cli {

/// What `read` (text, place) makes of the file `path`; errors name it.
template <class Read>
auto read_document(const std::string& path, Read read) -> decltype(read(std::string(), path)) {
  const auto text = read_file(path);
  if (!text) return std::unexpected(text.error());
  return read(*text, path);
}

}  // namespace assay::cli
