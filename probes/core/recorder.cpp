// recorder: writes one flushed line per call.
#include "probes/core/recorder.h"

#include <algorithm>
#include <cmath>
#include <ostream>

#include <fmt/format.h>

#include "probes/core/description.h"
#include "probes/core/json_io.h"
#include "probes/core/text.h"
#include "probes/core/utc_time.h"

namespace assay {

using nlohmann::ordered_json;

namespace {

/// `value` as a record may hold it: text from the machine may be long or have control characters.
Value fit(Value value) {
  if (auto* text = std::get_if<std::string>(&value)) *text = without_controls(*text, kLongestValue);
  return value;
}

Values fit(Values values) {
  for (auto& [name, value] : values) value = fit(std::move(value));
  return values;
}

}  // namespace

Recorder::Recorder(std::ostream& out, const ProbeSpec& spec, const Start& start, Clock clock)
    : out_(out), spec_(spec), clock_(std::move(clock)) {
  host_name_ = std::get<std::string>(start.host.at("name"));
  write("start", {{"probe", start.probe},
                  {"revision", start.revision},
                  {"parameters", to_json(fit(start.parameters))},
                  {"rank", start.rank},
                  {"world", start.world},
                  {"host", to_json(fit(start.host))}});
}

void Recorder::write(const char* kind, const ordered_json& body) {
  ordered_json line;
  if (sequence_ == 0) line["schema"] = kRecordSchema;
  line["sequence"] = sequence_++;
  line["time"] = utc_text(clock_());
  std::string text = line.dump();
  text.back() = ',';
  // Text from the machine (a model name, an error message) may be bad UTF-8; replaced bytes keep the line readable.
  out_ << text << '"' << kind << "\":" << body.dump(-1, ' ', false, ordered_json::error_handler_t::replace) << "}\n"
       << std::flush;
  if (!out_) throw std::runtime_error("stdout cannot be written; the record would be truncated");
}

Subject Recorder::named(Subject subject) const {
  if (subject.id.empty()) subject.id = host_name_;
  subject.id = without_controls(subject.id, longest_id(subject.kind));
  return subject;
}

void Recorder::measurement(std::string_view metric, const Sampling& sampling, Subject subject, Values at) {
  const auto declared = std::ranges::find(spec_.metrics, metric, &Metric::name);
  if (declared == spec_.metrics.end()) throw std::logic_error(fmt::format("metric '{}' is not in the spec", metric));
  if (sampling.samples.empty()) throw std::logic_error(fmt::format("metric '{}' has no samples", metric));
  for (const double sample : sampling.samples) {
    if (!std::isfinite(sample)) throw std::runtime_error(fmt::format("a sample of '{}' is not finite", metric));
  }
  ordered_json body = {{"metric", metric}, {"unit", declared->unit}, {"subject", to_json(named(std::move(subject)))}};
  if (!at.empty()) body["at"] = to_json(at);
  body["samples"] = sampling.samples;
  if (!sampling.warmup.empty()) body["warmup"] = sampling.warmup;
  body["stopped"] = sampling.stopped;
  write("measurement", body);
}

void Recorder::measurement(std::string_view metric, double value, Subject subject, Values at) {
  measurement(metric, Sampling{.samples = {value}, .warmup = {}, .stopped = "fixed"}, std::move(subject),
              std::move(at));
}

void Recorder::condition(std::string_view name, Value value, Subject subject) {
  const auto declares = [&](std::span<const ConditionSpec> list) {
    return std::ranges::find(list, name, &ConditionSpec::name) != list.end();
  };
  if (!declares(spec_.conditions) && !declares(common_conditions())) {
    throw std::logic_error(fmt::format("condition '{}' is not in the spec", name));
  }
  if (const double* number = std::get_if<double>(&value); number && !std::isfinite(*number)) {
    throw std::runtime_error(fmt::format("the condition '{}' is not finite", name));
  }
  write("condition",
        {{"name", name}, {"subject", to_json(named(std::move(subject)))}, {"value", to_json(fit(std::move(value)))}});
}

void Recorder::note(std::string_view text) { write("note", {{"text", without_controls(text, kLongestReason)}}); }

void Recorder::end(const End& end) {
  ordered_json body = {{"status", to_string(end.status)}};
  if (end.status != Status::complete) body["reason"] = without_controls(end.reason, kLongestReason);
  write("end", body);
}

}  // namespace assay
