// option_values: an option that is there has a value.
#pragma once

namespace CLI {
class App;
}

namespace assay {

/// Throws CLI::ValidationError for the first option or argument of the parsed `app` and its chosen commands that was
/// given an empty value or nothing but white space: a shell writes `--challenge "$C"` with C unset in this way, and the
/// program would take a demand for one that was never made. No option takes an empty value.
void refuse_empty_values(const CLI::App& app);

}  // namespace assay
