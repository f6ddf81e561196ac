// fio: output of fio 3 with --output-format=json or json+.
#include <array>
#include <cctype>

#include <fmt/format.h>

#include "orchestrator/import/import.h"
#include "orchestrator/import/reading.h"
#include "probes/core/json_io.h"

namespace assay::imports {
namespace {

using nlohmann::json;

constexpr const char* kDirections[] = {"read", "write", "trim", "mixed"};

class FioReader {
 public:
  FioReader(judge::ImportSource& source, Figures& figures) : source_(source), figures_(figures) {}

  void document(const json& whole) {
    StrictObject top = closed(whole, "");
    source_.version = top.text("fio version");
    if (!source_.version.starts_with("fio-3."))
      throw ImportRefusal{"fio version", fmt::format("'{}' is not fio 3", source_.version),
                          "older versions print other units under the same names"};
    if (const json* options = top.optional("global options")) take_options(*options, "global options", "global.");
    top.pass_over({"timestamp", "timestamp_ms", "time", "disk_util"});
    const json& jobs = top.list("jobs");
    for (std::size_t i = 0; i < jobs.size(); ++i)
      job(jobs[i], fmt::format("jobs[{}]", i), static_cast<std::int64_t>(i));
    top.done();
  }

 private:
  void take_options(const json& options, const std::string& path, const std::string& prefix) {
    if (!options.is_object()) throw ImportRefusal{path, "must be an object", ""};
    for (const auto& [name, value] : options.items()) {
      const auto scalar = value_from(value);
      if (!scalar) throw ImportRefusal{path + "." + name, "is not a scalar", ""};
      source_.facts[prefix + name] = *scalar;
    }
  }

  [[nodiscard]] bool is_set(const std::string& name, std::int64_t index) const {
    const auto is_one = [&](const std::string& key) {
      const auto found = source_.facts.find(key);
      return found != source_.facts.end() &&
             (found->second == Value(std::string("1")) || found->second == Value(std::string("true")));
    };
    return is_one("global." + name) || is_one(fmt::format("jobs.{}.{}", index, name));
  }

  /// The option of the job, or of all jobs, or fio's own default.
  [[nodiscard]] std::string option(const std::string& name, std::int64_t index, const char* otherwise) const {
    for (const auto& key : {fmt::format("jobs.{}.{}", index, name), "global." + name}) {
      const auto found = source_.facts.find(key);
      if (found == source_.facts.end()) continue;
      const auto* text = std::get_if<std::string>(&found->second);
      return text != nullptr ? *text : to_json(found->second).dump();
    }
    return otherwise;
  }

  /// The job's work: coordinates of its figures, so that only figures of the same are laid side by side.
  [[nodiscard]] Values settings(std::int64_t index) const {
    Values at{{"rw", option("rw", index, option("readwrite", index, "read").c_str())}};
    at["bs"] = size_of(option("bs", index, option("blocksize", index, "4096").c_str()));
    for (const auto& [name, otherwise] : {std::pair{"iodepth", "1"}, std::pair{"numjobs", "1"}}) {
      const std::string text = option(name, index, otherwise);
      const auto number = number_from(text);
      at[name] = number ? Value(static_cast<std::int64_t>(*number)) : Value(text);
    }
    return at;
  }

  /// fio's "4k", "1m" or "4096" in B; other spellings, such as ranges, as they are.
  static Value size_of(const std::string& text) {
    constexpr std::string_view kPrefixes = "kmg";
    std::string digits = text;
    std::int64_t factor = 1;
    if (digits.size() > 1 && (digits.ends_with("iB") || digits.ends_with("ib"))) digits.resize(digits.size() - 2);
    if (!digits.empty()) {
      const auto at = kPrefixes.find(static_cast<char>(std::tolower(static_cast<unsigned char>(digits.back()))));
      if (at != std::string_view::npos) {
        factor = std::int64_t{1} << (10 * (at + 1));
        digits.pop_back();
      }
    }
    const auto number = number_from(digits);
    constexpr double kLargest = 1e15;
    if (!number || *number <= 0 || *number > kLargest) return text;
    return static_cast<std::int64_t>(*number) * factor;
  }

  void job(const json& document, const std::string& path, std::int64_t index) {
    StrictObject one = closed(document, path);
    if (const auto error = one.whole("error"); error != 0) {
      throw ImportRefusal{one.path("error"), fmt::format("fio ended with error {}", error),
                          "correct the cause and run it again; the figures of a failed job are not imported"};
    }
    Values at{{"job", one.text("jobname")}, {"number", index}};
    if (const json* options = one.optional("job options"))
      take_options(*options, one.path("job options"), fmt::format("jobs.{}.", index));
    at.merge(settings(index));
    one.pass_over({"groupid",       "job_start",      "eta",
                   "elapsed",       "desc",           "sync",
                   "job_runtime",   "usr_cpu",        "sys_cpu",
                   "ctx",           "majf",           "minf",
                   "iodepth_level", "iodepth_submit", "iodepth_complete",
                   "latency_ns",    "latency_us",     "latency_ms",
                   "latency_depth", "latency_target", "latency_percentile",
                   "latency_window"});
    const json* steady = one.optional("steadystate");
    std::array<const json*, std::size(kDirections)> found{};
    for (std::size_t i = 0; i < found.size(); ++i) found[i] = one.optional(kDirections[i]);
    one.done();
    if (steady != nullptr && steady->is_object() && (!steady->contains("attained") || steady->at("attained") != 1)) {
      return figures_.leave_out(one.path("steadystate"), at_text(at), "the requested steady state was not attained");
    }
    if (!is_set("direct", index))
      figures_.leave_out(path, "direct I/O",
                         "direct=1 is not among the options: the page cache may have been measured");
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (found[i] != nullptr) direction(*found[i], one.path(kDirections[i]), at, kDirections[i]);
    }
  }

  static std::string at_text(const Values& at) {
    return to_json(at).dump(-1, ' ', false, json::error_handler_t::replace);
  }

  void direction(const json& document, const std::string& path, Values at, const std::string& name) {
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
    one.done();
    if (bytes == 0 && operations == 0) return;  // a direction that the job does not have
    at["direction"] = name;
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
        const auto share = number_from(key);
        if (!share || *share < 0 || *share > 100)
          throw ImportRefusal{one.path("percentile"), fmt::format("'{}' is not a percentile", key), ""};
        figures_.field({.metric = metric, .unit = "s", .statistic = fmt::format("p{}", *share), .factor = 1e-9}, at,
                       &value, fmt::format("{}.percentile.{}", path, key));
      }
    }
    one.done();
  }

  judge::ImportSource& source_;
  Figures& figures_;
};

}  // namespace

void read_fio(std::string_view text, judge::ImportSource& source, Figures& figures) {
  FioReader(source, figures)
      .document(document_of(text, figures, "run fio with --output-format=json+ and import the whole output"));
}

}  // namespace assay::imports
