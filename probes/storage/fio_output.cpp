// fio_output: strict about the needed fields of fio's report; ignores the others.
#include "probes/storage/fio_output.h"

#include <charconv>
#include <cmath>
#include <system_error>

#include <fmt/format.h>

#include "probes/core/json_io.h"

namespace assay::storage {
namespace {

constexpr double kNanosecond = 1e-9;
constexpr const char* kHint = "the fio output beside the record shows what happened; run its job file by hand";

std::unexpected<InputError> refuse(const std::string& where, std::string what) {
  return std::unexpected(InputError{.where = where, .what = std::move(what), .hint = kHint});
}

/// Walks one report by name and remembers the first thing that is missing.
class Report {
 public:
  explicit Report(const nlohmann::json& report) : report_(report) {}

  const nlohmann::json* find(const std::string& pointer) {
    const nlohmann::json::json_pointer place(pointer);
    if (report_.contains(place)) return &report_.at(place);
    if (missing_.empty()) missing_ = pointer;
    return nullptr;
  }

  double number(const std::string& pointer) {
    const auto* value = find(pointer);
    if (value == nullptr) return 0;
    if (value->is_number() && std::isfinite(value->get<double>()) && value->get<double>() >= 0)
      return value->get<double>();
    if (missing_.empty()) missing_ = pointer + " as a number that is not negative";
    return 0;
  }

  std::string text(const std::string& pointer) {
    const auto* value = find(pointer);
    if (value == nullptr) return "";
    if (value->is_string()) return value->get<std::string>();
    if (missing_.empty()) missing_ = pointer + " as a text";
    return "";
  }

  [[nodiscard]] const std::string& missing() const { return missing_; }

 private:
  const nlohmann::json& report_;
  std::string missing_;
};

FioResult read_job(Report& report, Direction direction) {
  const std::string stream = fmt::format("/jobs/0/{}/", word_of(direction));
  FioResult result;
  result.version = report.text("/fio version");
  result.engine = report.text("/jobs/0/job options/ioengine");
  result.direct = report.text("/jobs/0/job options/direct") == "1";
  result.bandwidth = report.number(stream + "bw_bytes");
  result.iops = report.number(stream + "iops");
  result.completions = static_cast<std::int64_t>(report.number(stream + "total_ios"));
  result.moved = {static_cast<std::uint64_t>(report.number(stream + "io_bytes"))};
  result.latency_p50 = report.number(stream + "clat_ns/percentile/50.000000") * kNanosecond;
  result.latency_p99 = report.number(stream + "clat_ns/percentile/99.000000") * kNanosecond;
  result.latency_p999 = report.number(stream + "clat_ns/percentile/99.900000") * kNanosecond;
  result.latency_max = report.number(stream + "clat_ns/max") * kNanosecond;
  return result;
}

/// Offset of the line that opens the object; npos when there is none.
std::size_t object_begin(std::string_view text) {
  if (text.starts_with('{')) return 0;
  const auto newline = text.find("\n{");
  return newline == std::string_view::npos ? newline : newline + 1;
}

}  // namespace

std::string job_file(const FioJob& job) {
  std::string text = "[sample]\n";
  const auto add = [&text](std::string_view name, const auto& value) { text += fmt::format("{}={}\n", name, value); };
  const auto microseconds = [](Seconds time) { return fmt::format("{}us", std::llround(time.count * 1e6)); };
  add("filename", kFioDataFile);
  add("size", job.file_size.count);
  add("rw", fmt::format("{}{}", job.random ? "rand" : "", job.direction));
  add("bs", job.block.count);
  add("iodepth", job.depth);
  add("numjobs", job.jobs);
  add("ioengine", job.engine);
  add("direct", 1);
  add("thread", 1);
  add("group_reporting", 1);
  add("invalidate", 1);
  add("refill_buffers", 1);
  add("buffer_compress_percentage", 0);
  add("randrepeat", 0);
  add("percentile_list", "50:99:99.9");
  if (job.random) add("norandommap", 1);
  if (job.runtime.count > 0) {
    add("time_based", 1);
    add("runtime", microseconds(job.runtime));
    add("ramp_time", microseconds(job.ramp));
  } else {
    add("end_fsync", 1);
  }
  return text;
}

std::expected<FioResult, InputError> read_fio_output(std::string_view text, Direction direction,
                                                     const std::string& where) {
  const auto begin = object_begin(text);
  if (begin == std::string_view::npos) return refuse(where, fmt::format("{} bytes and no JSON object", text.size()));
  // fio 3.0 to 3.2 write the percentiles of the list that are not set, each as "0.00".
  const auto unset = [](std::string_view, std::string_view key) { return key == "0.00"; };
  const auto json = parse_json(text.substr(begin), where, {.may_repeat = unset});
  if (!json) return std::unexpected(json.error());
  Report report(*json);
  const auto* jobs = report.find("/jobs");
  if (jobs == nullptr || !jobs->is_array() || jobs->size() != 1) return refuse(where, "jobs is not a list of one job");
  const double error = report.number("/jobs/0/error");
  if (error != 0)
    return refuse(where, fmt::format("jobs[0].error is {:.0f} ({})", error,
                                     std::generic_category().message(static_cast<int>(error))));
  FioResult result = read_job(report, direction);
  if (!report.missing().empty()) return refuse(where, fmt::format("'{}' is missing", report.missing()));
  if (result.completions == 0 || result.bandwidth <= 0)
    return refuse(where, fmt::format("no {} was completed", word_of(direction)));
  return result;
}

std::optional<int> fio_major_version(std::string_view text) {
  constexpr std::string_view kPrefix = "fio-";
  if (!text.starts_with(kPrefix)) return std::nullopt;
  text.remove_prefix(kPrefix.size());
  int major = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), major);
  if (error != std::errc() || end == text.data() + text.size() || *end != '.') return std::nullopt;
  return major;
}

}  // namespace assay::storage
