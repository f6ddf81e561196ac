// completion: what CLI11 knows of the command line, as a completion script and as a manual page.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace assay::cli {

/// A script for bash that completes the commands and options of `app`, and file names after those that take one.
/// `passed_on` are further commands.
std::string bash_completion(const CLI::App& app, const std::vector<std::string>& passed_on);

/// A manual page in roff: every command of `app` with its options, as `--help` explains them.
std::string manual_page(const CLI::App& app);

}  // namespace assay::cli
