// nixlbench: the table of ai-dynamo's nixlbench. Its configuration has the operation and both kinds of memory, and may
// have keys of a store: only settings that are named here are taken.
#include <algorithm>
#include <array>
#include <optional>

#include "orchestrator/import/import.h"
#include "orchestrator/import/table.h"

namespace assay::imports {
namespace {

constexpr Column kNixlColumns[] = {
    {.head = "Block Size (B)"},
    {.head = "Batch Size"},
    {"B/W (GB/Sec)", "bandwidth", "B/s", "mean", 1e9},
    {"Aggregate B/W (GB/Sec)", "bandwidth_of_all", "B/s", "mean", 1e9},
    {.head = "B/W (MiB/Sec)"},     // the same figure, up to July 2025
    {.head = "B/W (GiB/Sec)"},     // the same
    {.head = "Network Util (%)"},  // of a rate that the tool assumes
    {"Avg Lat. (us)", "time_per_block", "s", "mean", 1e-6},
    {"Avg Prep (us)", "prepare_time", "s", "mean", 1e-6},
    {"P99 Prep (us)", "prepare_time", "s", "p99", 1e-6},
    {"Avg Post (us)", "post_time", "s", "mean", 1e-6},
    {"P99 Post (us)", "post_time", "s", "p99", 1e-6},
    {"Avg Tx (us)", "transfer_time", "s", "mean", 1e-6},
    {"P99 Tx (us)", "transfer_time", "s", "p99", 1e-6},
};

/// Settings that are coordinates.
constexpr std::array<std::string_view, 8> kNixlCoordinates = {
    "op_type", "initiator_seg_type", "target_seg_type", "backend", "scheme", "mode", "worker_type", "num_threads"};
constexpr std::array<std::string_view, 12> kNixlFacts = {
    "check_consistency", "num_initiator_dev", "num_target_dev", "pipeline_depth", "num_iter",    "warmup_iter",
    "recreate_xfer",     "reregister_mem",    "prepared_xfer",  "enable_vmm",     "device_list", "use_device_api"};

/// An option's name and value in "Op type (--op_type=[READ,WRITE])    : WRITE"; nothing in another line.
std::optional<std::pair<std::string_view, std::string_view>> setting_in(std::string_view text) {
  const auto begin = text.find("(--");
  const auto end = begin == std::string_view::npos ? begin : text.find(')', begin);
  const auto colon = end == std::string_view::npos ? end : text.find(':', end);
  if (colon == std::string_view::npos) return std::nullopt;
  const std::string_view option = text.substr(begin + 3, end - begin - 3);
  return std::pair(option.substr(0, option.find('=')), trimmed(text.substr(colon + 1)));
}

}  // namespace

void read_nixlbench(std::string_view text, judge::ImportSource& source, Figures& figures) {
  Values run;
  std::optional<Table> table;
  for (const auto& line : lines_of(text, &figures)) {
    if (line.text.find_first_not_of("*-") == std::string_view::npos) continue;
    const auto setting = setting_in(line.text);
    if (setting && !table) {
      const std::string name(setting->first);
      if (std::ranges::find(kNixlCoordinates, name) != kNixlCoordinates.end()) run[name] = std::string(setting->second);
      if (std::ranges::find(kNixlFacts, name) != kNixlFacts.end()) source.facts[name] = std::string(setting->second);
    } else if (line.text.starts_with("Block Size (B)")) {
      if (table) throw ImportRefusal{line.from(), "a second table begins", "import one run per file"};
      table.emplace(kNixlColumns, line, cells_of(line.text), figures);
      if (!table->has("B/W (GB/Sec)"))
        throw ImportRefusal{line.from(), "has no column 'B/W (GB/Sec)': the unit is not known", ""};
    } else if (table && whole_from(words_of(line.text).front())) {
      table->row(line, words_of(line.text));
      Values at = run;
      at["size"] = table->whole("Block Size (B)");
      at["batch"] = table->whole("Batch Size");
      table->take(at, figures);
    } else if (!line.text.starts_with("NIXLBench Configuration") && !line.text.starts_with("ETCD Endpoint")) {
      figures.foreign(line, true);
    }
  }
  if (!table) throw ImportRefusal{"", "has no table of nixlbench", "import the output of the first initiator"};
  if (!run.contains("op_type"))
    figures.leave_out("table", "the operation",
                      "the configuration with its op_type is missing: keep all of the output");
  if (const auto checked = source.facts.find("check_consistency");
      checked == source.facts.end() || checked->second != Value(std::string("1")))
    figures.leave_out("table", "a check of the data", "the tool did not check them: it has --check_consistency");
}

}  // namespace assay::imports
