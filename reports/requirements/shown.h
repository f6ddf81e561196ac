// shown: a mapping as a table, JSON, CSV and a page. In none of them does anything but `met` look like it.
#pragma once

#include <cstddef>
#include <string>

#include "reports/requirements/mapping.h"

namespace assay::requirements {

/// For a terminal of `width` columns, 0 for no end: signers of the run, the counts, and every row with its
/// requirements, the worst cell of each and the digest of its record.
std::string table(const Mapping& mapping, std::size_t width);

/// assay.requirements/1, which requirements.schema.json describes: every row, and every answering requirement with all
/// of its cells.
std::string json_of(const Mapping& mapping);

/// CSV with a line for each row and each requirement that answers it, with its worst cell.
std::string csv(const Mapping& mapping);

/// A page that loads nothing.
std::string page_of(const Mapping& mapping);

}  // namespace assay::requirements
