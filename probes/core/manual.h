// manual: CLI11's command line as a manual page.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace assay {

/// A manual page in roff: every option and command of `app`, as `--help` explains them.
std::string manual_page(const CLI::App& app);

}  // namespace assay
