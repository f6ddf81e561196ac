// fio: output of fio 3 with --output-format=json or json+, of one machine and of clients with servers.
#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "orchestrator/import/import.h"
#include "orchestrator/import/reading.h"
#include "probes/core/json_io.h"

namespace assay::imports {
namespace {

using nlohmann::json;

constexpr const char* kDirections[] = {"read", "write", "trim", "mixed"};

/// Options that make a figure another one than that of the plain work. Those that are 0, none or false do not.
constexpr const char* kConditions[] = {"rate",
                                       "rate_min",
                                       "rate_iops",
                                       "rate_iops_min",
                                       "thinktime",
                                       "verify",
                                       "zero_buffers",
                                       "buffer_pattern",
                                       "buffer_compress_percentage",
                                       "sync",
                                       "fsync",
                                       "fdatasync",
                                       "latency_target",
                                       "percentage_random",
                                       "dedupe_percentage",
                                       "zonemode",
                                       "flow",
                                       "random_distribution"};

/// I/O engines with one I/O in flight at every iodepth.
constexpr std::string_view kSynchronous[] = {"sync", "psync", "vsync", "pvsync", "pvsync2", "mmap"};

/// fio's number with a unit in B, by its parse.c: "k" and "kb" are 1024 B and "kib" is 1000 B, unless kb_base is 1000,
/// which turns the two round. Nothing for another text.
std::optional<std::int64_t> fio_bytes(std::string_view text, bool decimal) {
  const auto end = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto number = whole_from(text.substr(0, end));
  constexpr std::int64_t kLargest = 1'000'000'000'000'000;
  if (!number || *number <= 0 || *number > kLargest) return std::nullopt;
  std::string unit;
  for (const char c : text.substr(end)) unit += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (unit.empty() || unit == "b") return number;
  constexpr std::string_view kPrefixes = "kmgt";
  const auto power = kPrefixes.find(unit.front());
  unit.erase(0, 1);
  if (power == std::string_view::npos || (!unit.empty() && unit != "b" && unit != "ib")) return std::nullopt;
  std::int64_t bytes = *number;
  for (std::size_t i = 0; i <= power && bytes <= kLargest; ++i) bytes *= (unit == "ib") == decimal ? 1024 : 1000;
  return bytes <= kLargest ? std::optional(bytes) : std::nullopt;
}

/// Whether fio repeats this key: an option that was given several times, and before 3.3 a percentile that is not set.
bool fio_repeats(std::string_view object, std::string_view key) {
  return object == "job options" || object == "global options" || (object == "percentile" && key == "0.00");
}

/// One entry of "jobs", or of "client_stats" of client and server.
struct FioEntry {
  std::string path;
  std::vector<std::string> scopes;  ///< prefixes of its options among the facts, the job's own first
  Values at;
  bool described = true;  ///< false: a sum over clients, which has no options
};

class FioReader {
 public:
  FioReader(judge::ImportSource& source, Figures& figures) : source_(source), figures_(figures) {}

  void document(const json& whole) {
    StrictObject top = closed(whole, "");
    source_.version = top.text("fio version");
    if (!source_.version.starts_with("fio-3."))
      throw ImportRefusal{"fio version", fmt::format("'{}' is not fio 3", source_.version),
                          "other major versions print other units under the same names"};
    if (const json* options = top.optional("global options")) global_options(*options);
    top.pass_over({"timestamp", "timestamp_ms", "time", "disk_util"});
    const bool clients = top.optional("client_stats") != nullptr;
    const char* const name = clients ? "client_stats" : "jobs";
    const json& entries = top.list(name);
    count_company(entries, clients);
    for (std::size_t i = 0; i < entries.size(); ++i)
      entry(entries[i], fmt::format("{}[{}]", name, i), static_cast<std::int64_t>(i), clients);
    figures_.unknown(top);
  }

 private:
  static std::string text_of(const json& object, const char* name) {
    const auto found = object.is_object() ? object.find(name) : object.end();
    if (!object.is_object() || found == object.end()) return "";
    return found->is_string() ? found->get<std::string>() : found->dump(-1, ' ', true);
  }

  /// "node-a:8765", the options of whose jobs are those of one client.
  static std::string client_of(const json& object) {
    return fmt::format("{}:{}", text_of(object, "hostname"), text_of(object, "port"));
  }

  /// Client and server: a list, one object for each client.
  void global_options(const json& options) {
    if (!options.is_array()) return take_options(options, "global options", "global.");
    for (std::size_t i = 0; i < options.size(); ++i)
      take_options(options[i], fmt::format("global options[{}]", i), fmt::format("global.{}.", client_of(options[i])));
  }

  void take_options(const json& options, const std::string& path, const std::string& prefix) {
    if (!options.is_object()) throw ImportRefusal{path, "must be an object", ""};
    for (const auto& [name, value] : options.items()) {
      const auto scalar = value_from(value);
      if (!scalar) throw ImportRefusal{path + "." + name, "is not a scalar", ""};
      source_.facts[prefix + name] = *scalar;
    }
  }

  /// The option of the job, or of all jobs; of several the last one; nothing if neither has it.
  [[nodiscard]] std::optional<std::string> option(const FioEntry& entry, std::string_view name) const {
    for (const auto& scope : entry.scopes) {
      auto found = source_.facts.find(scope + std::string(name));
      if (found == source_.facts.end()) continue;
      for (int i = 2; source_.facts.contains(fmt::format("{}{} ({})", scope, name, i)); ++i)
        found = source_.facts.find(fmt::format("{}{} ({})", scope, name, i));
      const auto* text = std::get_if<std::string>(&found->second);
      return text != nullptr ? *text : to_json(found->second).dump();
    }
    return std::nullopt;
  }

  [[nodiscard]] bool is_on(const FioEntry& entry, std::string_view name) const {
    const auto value = option(entry, name);
    return value && *value != "0" && *value != "none" && *value != "false" && *value != "random";
  }

  /// Block size of the direction with this number: fio takes "read,write,trim", and the last one for those behind it.
  [[nodiscard]] Value block_size(const FioEntry& entry, std::size_t direction) const {
    for (const char* name : {"bssplit", "bsrange", "blocksize_range"}) {
      if (const auto text = option(entry, name)) return fmt::format("{}={}", name, *text);
    }
    std::string text = option(entry, "bs").value_or(option(entry, "blocksize").value_or("4096"));
    std::string_view part = text;
    for (std::size_t i = 0; i < direction && part.find(',') != std::string_view::npos; ++i)
      part.remove_prefix(part.find(',') + 1);
    if (direction < 3) part = part.substr(0, part.find(','));
    if (part.empty()) return std::int64_t{4096};
    const auto bytes = fio_bytes(part, option(entry, "kb_base") == "1000");
    return bytes ? Value(*bytes) : Value(text);
  }

  /// The entry's work: coordinates of its figures, so that only figures of the same are laid side by side.
  void describe(const FioEntry& entry, std::size_t direction, Values& at) const {
    const std::string rw = option(entry, "rw").value_or(option(entry, "readwrite").value_or("read"));
    at["rw"] = rw;
    at["bs"] = block_size(entry, direction);
    const std::string engine = option(entry, "ioengine").value_or("");
    for (const char* name : {"iodepth", "numjobs"}) {
      const std::string text = option(entry, name).value_or("1");
      const auto number = whole_from(text);
      at[name] = number ? Value(*number) : Value(text);
    }
    if (std::ranges::find(kSynchronous, engine) != std::end(kSynchronous)) at["iodepth"] = std::int64_t{1};
    // The default engine of Linux has one I/O in flight, that of Windows as many as iodepth says.
    if (engine.empty() && at["iodepth"] != Value(std::int64_t{1})) add_condition(at, "iodepth without ioengine");
    if (engine == "null") add_condition(at, "ioengine=null");
    for (const char* name : kConditions) {
      if (is_on(entry, name)) add_condition(at, fmt::format("{}={}", name, *option(entry, name)));
    }
    const bool mixed = rw.starts_with("rw") || rw.starts_with("readwrite") || rw.starts_with("randrw") ||
                       rw.starts_with("trimwrite") || rw.starts_with("randtrimwrite");
    if (!mixed && direction < 3 && rw.find(kDirections[direction]) == std::string::npos)
      add_condition(at, fmt::format("no {} of rw={}: of another job of its group, or of a verification",
                                    kDirections[direction], rw));
  }

  /// Groups start one after the other, except with new_group. Those of several clients go together by their number.
  [[nodiscard]] std::string group_of(const json& document) const {
    return together_ ? std::string() : text_of(document, "groupid");
  }

  void count_company(const json& entries, bool clients) {
    together_ = source_.facts.contains("global.new_group") || std::ranges::any_of(entries, [](const json& one) {
                  return one.is_object() && one.contains("job options") && one["job options"].contains("new_group");
                });
    for (const auto& one : entries) {
      const bool sum = clients && text_of(one, "jobname") == "All clients";
      company_[group_of(one)] += sum ? 0 : 1;
      jobs_ += sum ? 0 : 1;
    }
  }

  /// fio counts an entry while others of its group work too.
  void add_company(const json& document, bool clients, Values& at) const {
    const std::int64_t others = company_.at(group_of(document));
    if (clients && text_of(document, "jobname") == "All clients")
      add_condition(at, fmt::format("sum over {} jobs of clients", jobs_));
    else if (others > 1)
      add_condition(at, fmt::format("one of {} at once", others));
  }

  void entry(const json& document, const std::string& path, std::int64_t index, bool clients) {
    StrictObject one = closed(document, path);
    if (const auto error = one.whole("error"); error != 0) {
      throw ImportRefusal{one.path("error"), fmt::format("fio ended with error {}", error),
                          "correct the cause and run it again; the figures of a failed job are not imported"};
    }
    const std::string own = fmt::format("{}.{}.", clients ? "clients" : "jobs", index);
    FioEntry entry{.path = path,
                   .scopes = {own, fmt::format("global.{}.", client_of(document)), "global."},
                   .at = {{"job", one.text("jobname")}, {"number", index}}};
    entry.described = !clients || text_of(document, "jobname") != "All clients";
    for (const char* name : {"hostname", "port"}) {
      const json* value = one.optional(name);
      const auto scalar = value == nullptr || !entry.described ? std::nullopt : value_from(*value);
      if (scalar) entry.at[name] = *scalar;
    }
    if (const json* options = one.optional("job options")) take_options(*options, one.path("job options"), own);
    add_company(document, clients, entry.at);
    one.pass_over({"groupid",
                   "job_start",
                   "eta",
                   "elapsed",
                   "desc",
                   "sync",
                   "job_runtime",
                   "usr_cpu",
                   "sys_cpu",
                   "ctx",
                   "majf",
                   "minf",
                   "iodepth_level",
                   "iodepth_submit",
                   "iodepth_complete",
                   "latency_ns",
                   "latency_us",
                   "latency_ms",
                   "latency_depth",
                   "latency_target",
                   "latency_percentile",
                   "latency_window",
                   "latency_target_ns",
                   "latency_window_us",
                   "first_error"});
    if (const json* failed = one.optional("total_err"); failed != nullptr && *failed != 0)
      add_condition(entry.at, fmt::format("{} errors", failed->dump()));
    steady_directions(one, entry);
  }

  void steady_directions(StrictObject& one, FioEntry& entry) {
    const json* steady = one.optional("steadystate");
    std::array<const json*, std::size(kDirections)> found{};
    for (std::size_t i = 0; i < found.size(); ++i) found[i] = one.optional(kDirections[i]);
    figures_.unknown(one);
    if (steady != nullptr && steady->is_object() && (!steady->contains("attained") || steady->at("attained") != 1)) {
      return figures_.leave_out(one.path("steadystate"), at_text(entry.at),
                                "the requested steady state was not attained");
    }
    const auto buffered = option(entry, "buffered");
    if (entry.described && !is_on(entry, "direct") && buffered != "0" && buffered != "false") {
      figures_.leave_out(entry.path, "direct I/O",
                         "direct=1 is not among the options: the page cache may have been measured");
      add_condition(entry.at, "direct=0");
    }
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (found[i] != nullptr) direction(*found[i], one.path(kDirections[i]), entry, i);
    }
  }

  static std::string at_text(const Values& at) {
    return to_json(at).dump(-1, ' ', false, json::error_handler_t::replace);
  }

  void direction(const json& document, const std::string& path, const FioEntry& entry, std::size_t number) {
    StrictObject one = closed(document, path);
    const std::int64_t bytes = one.whole("io_bytes");
    const std::int64_t operations = one.whole("total_ios");
    const json* bandwidth = one.optional("bw_bytes");
    const json* rate = one.optional("iops");
    std::array<const json*, 3> latencies = {one.optional("slat_ns"), one.optional("clat_ns"), one.optional("lat_ns")};
    const json* dropped = one.optional("drop_ios");
    const json* shortened = one.optional("short_ios");
    one.pass_over({"io_kbytes", "bw", "runtime", "bw_min", "bw_max", "bw_agg", "bw_mean", "bw_dev", "bw_samples",
                   "iops_min", "iops_max", "iops_mean", "iops_stddev", "iops_samples", "cachehit", "cachemiss",
                   "clat_prio", "prios"});
    figures_.unknown(one);
    if (bytes == 0 && operations == 0) return;  // a direction that the job does not have
    Values at = entry.at;
    if (entry.described) describe(entry, number, at);
    at["direction"] = std::string(kDirections[number]);
    for (const auto& [count, what] : {std::pair{dropped, "dropped"}, std::pair{shortened, "short"}}) {
      if (count != nullptr && *count != 0) figures_.leave_out(path, fmt::format("{} operations", what), count->dump());
    }
    figures_.field({.metric = "bandwidth", .unit = "B/s", .statistic = "mean"}, at, bandwidth,
                   one.path("bw_bytes"));  // `bw` is in KiB/s
    figures_.field({.metric = "iops", .unit = "1/s", .statistic = "mean"}, at, rate, one.path("iops"));
    constexpr std::pair<const char*, const char*> kLatencies[] = {
        {"slat_ns", "submission_latency"}, {"clat_ns", "completion_latency"}, {"lat_ns", "latency"}};
    for (std::size_t i = 0; i < latencies.size(); ++i) {
      if (latencies[i] != nullptr) latency(*latencies[i], one.path(kLatencies[i].first), at, kLatencies[i].second);
    }
  }

  void latency(const json& document, const std::string& path, const Values& at, const std::string& metric) {
    StrictObject one = closed(document, path);
    const json* samples = one.optional("N");
    if (samples != nullptr && *samples == 0)
      return figures_.leave_out(path, metric, "no sample; its zeros are not times");
    for (const char* statistic : {"min", "mean", "max"}) {
      figures_.field({.metric = metric, .unit = "s", .statistic = statistic, .factor = 1e-9}, at,
                     one.optional(statistic), one.path(statistic));
    }
    one.pass_over({"stddev", "bins"});
    if (const json* percentiles = one.optional("percentile")) {
      if (!percentiles->is_object()) throw ImportRefusal{one.path("percentile"), "must be an object", ""};
      for (const auto& [key, value] : percentiles->items()) {
        if (key.starts_with("0.00 (")) continue;  // as the first one
        const auto share = number_from(key);
        if (!share || *share < 0 || *share > 100)
          throw ImportRefusal{one.path("percentile"), fmt::format("'{}' is not a percentile", key), ""};
        figures_.field({.metric = metric, .unit = "s", .statistic = fmt::format("p{}", *share), .factor = 1e-9}, at,
                       &value, fmt::format("{}.percentile.{}", path, key));
      }
    }
    figures_.unknown(one);
  }

  judge::ImportSource& source_;
  Figures& figures_;
  std::map<std::string, std::int64_t> company_;  ///< entries of each group that starts at once
  std::int64_t jobs_ = 0;                        ///< entries but for the sum over clients
  bool together_ = false;                        ///< all groups start at once
};

}  // namespace

void read_fio(std::string_view text, judge::ImportSource& source, Figures& figures) {
  FioReader(source, figures)
      .document(
          document_of(text, figures, "run fio with --output-format=json+ and import the whole output", fio_repeats));
}

}  // namespace assay::imports
