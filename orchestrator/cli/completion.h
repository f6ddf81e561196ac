// completion: CLI11's command line as completion scripts.
#pragma once

#include <string>
#include <vector>
#include "probes/core/command.h"

namespace assay::cli {

/// A script for `shell` (bash, zsh or fish) that completes the commands and options of `app` and of `app`-report, and
/// file names after those that take one. `passed_on` are further commands, which are asked for their options when they
/// are completed.
std::string completion_script(const std::string& shell, const Command& app, const std::vector<std::string>& passed_on);

}  // namespace assay::cli
