// manual: a program's commands and options as a manual page.
#pragma once

#include <string>

#include "probes/core/command.h"

namespace assay {

/// A manual page in roff: every option and command of `program`, as `--help` explains them.
std::string manual_page(const Command& program);

}  // namespace assay
