// entries: all additions to a database, as files next to it, from which it can be made again.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "orchestrator/history/history.h"

namespace assay::history {

/// A signed acceptance that is the fleet's baseline from then on.
struct Baseline {
  Sweep acceptance;
  std::string who;
};

/// One thing that was added. The raw records of a sweep are a file of their own, which `prune` removes.
using Entry = std::variant<Sweep, drift::Event, Baseline>;

/// Words of their kinds.
inline constexpr const char *kSweep = "sweep", *kEvent = "event", *kBaseline = "baseline";

/// "000000000042-sweep.zst": entries sort in the order in which they were added.
std::string entry_name(std::int64_t number, std::string_view kind);

/// JSON Lines: schema assay.history-entry/1 with the metrics, then one line a visit. Same entry, same bytes.
std::string entry_text(const Sweep& sweep);
std::string entry_text(const Sweep& acceptance, const std::string& who);
std::string entry_text(const drift::Event& event);

/// Reads it back. Throws Broken (exit code 4) with `path` when it is damaged.
Entry entry_from(std::string_view text, const std::string& path);

/// Files of entries in the folder of `database`'s records, in their order.
std::vector<std::string> entry_files(const std::string& database);

}  // namespace assay::history
