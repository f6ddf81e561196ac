// record_reader: reads a record line by line against its probe's description.
#include "probes/core/record_reader.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "probes/core/json_io.h"
#include "probes/core/strict_object.h"
#include "probes/core/text.h"
#include "probes/core/units.h"
#include "probes/core/utc_time.h"

namespace assay {
namespace {

using nlohmann::json;

constexpr const char* kUnknown = "probe and assay must be of the same version";
constexpr int kLineDepth = 4;              // line > measurement > at > value is 3
constexpr std::size_t kMostFields = 1024;  // values of a line besides its samples

/// An error of the line; Reader::line's caller adds the line's number.
InputError refusal(std::string what, std::string hint = "") { return {"", std::move(what), std::move(hint)}; }

/// Refuses text that is too long or that a terminal would obey.
void check_text(StrictObject& fields, std::string_view name, std::string_view text, std::size_t longest) {
  if (text.size() > longest)
    fields.refuse(name, fmt::format("is {} bytes long, over the limit of {}", text.size(), longest));
  if (has_controls(text)) fields.refuse(name, "has control characters");
}

void check_value(StrictObject& fields, std::string_view name, const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) check_text(fields, name, *text, kLongestValue);
}

Values values_of(StrictObject& fields, const char* name) {
  constexpr std::size_t kMostNames = 256;  // the most parameters of a probe is below 30
  auto result = values_from(fields.need(name));
  if (!result || result->size() > kMostNames)
    fields.refuse(name, fmt::format("is not an object of at most {} scalars", kMostNames));
  for (const auto& [member, value] : *result) {
    check_text(fields, name, member, kLongestSubject);
    check_value(fields, name, value);
  }
  return std::move(*result);
}

std::string reason_of(StrictObject& fields, const char* name) {
  std::string text = fields.text(name);
  check_text(fields, name, text, kLongestReason);
  return text;
}

int whole_of(StrictObject& fields, const char* name) { return static_cast<int>(fields.whole(name, 0, INT32_MAX)); }

Subject subject_of(StrictObject& fields) {
  auto result = subject_from(fields.need("subject"));
  if (!result)
    throw InputError{fields.path("subject"), "does not name one subject", fmt::format("kinds are {}", kSubjectKinds)};
  check_text(fields, "subject", result->id, longest_id(result->kind));
  return std::move(*result);
}

/// The finite numbers of the list at `name`.
std::vector<double> samples_of(StrictObject& fields, const char* name) {
  const json& list = fields.list(name);
  std::vector<double> result;
  result.reserve(list.size());
  for (const auto& element : list) {
    const bool finite = element.is_number() && std::isfinite(element.get<double>());
    if (!finite) fields.refuse(fmt::format("{}[{}]", name, result.size()), "is not a finite number");
    result.push_back(element.get<double>());
  }
  return result;
}

class Reader {
 public:
  Reader(const Description& description, const RecordLimits& limits) : description_(description), limits_(limits) {}

  /// Takes the next line; true when it is the last one.
  bool line(const json& document) {
    if (ended_) throw refusal("follows 'end'", "'end' is always the last line");
    StrictObject fields(document, "", kUnknown);
    const std::string schema = expected_sequence_ == 0 ? fields.text("schema") : kRecordSchema;
    if (schema.starts_with("assay.imported/")) {
      throw refusal("was imported from another tool's output", "an imported figure is never a measurement of ours");
    }
    if (schema != kRecordSchema) {
      throw refusal(fmt::format("the schema is not {}", kRecordSchema), "the probe is of another version");
    }
    if (const int sequence = whole_of(fields, "sequence"); sequence != expected_sequence_) {
      throw refusal(fmt::format("sequence {} where {} was due", sequence, expected_sequence_), "lines were lost");
    }
    ++expected_sequence_;
    const bool first = expected_sequence_ == 1;
    (first ? times_.first : times_.last) = fields.text("time");
    if (!is_utc_text(first ? times_.first : times_.last)) throw refusal("'time' is not UTC with milliseconds");
    if (const json* body = fields.optional("start")) {
      if (!first) throw refusal("a second 'start'");
      start(*body);
    } else if (first) {
      throw refusal("the first line is not 'start'");
    } else if (const json* measured = fields.optional("measurement")) {
      measurement(*measured);
    } else if (const json* circumstance = fields.optional("condition")) {
      condition(*circumstance);
    } else if (const json* remark = fields.optional("note")) {
      StrictObject note(*remark, "note", kUnknown);
      record_.notes.push_back(reason_of(note, "text"));
      note.done();
    } else if (const json* last = fields.optional("end")) {
      end(*last);
    } else {
      throw refusal("has none of measurement, condition, note and end", kUnknown);
    }
    fields.done();
    return ended_;
  }
  [[nodiscard]] bool ended() const { return ended_; }
  [[nodiscard]] const LineTimes& times() const { return times_; }
  Record take() {
    const auto& all = record_.conditions;
    record_.sorted.resize(all.size());
    std::iota(record_.sorted.begin(), record_.sorted.end(), std::size_t{0});
    std::ranges::stable_sort(record_.sorted, {}, [&](std::size_t i) {
      return std::tie(all[i].name, all[i].subject.kind, all[i].subject.id);
    });
    return std::move(record_);
  }

 private:
  void start(const json& body) {
    StrictObject fields(body, "start", kUnknown);
    record_.start = {.probe = fields.text("probe"),
                     .revision = whole_of(fields, "revision"),
                     .parameters = values_of(fields, "parameters"),
                     .rank = whole_of(fields, "rank"),
                     .world = whole_of(fields, "world"),
                     .host = values_of(fields, "host")};
    fields.done();
    if (record_.start.probe != description_.name || record_.start.revision != description_.revision) {
      throw refusal(fmt::format("from probe {} revision {}, expected {} revision {}", record_.start.probe,
                                record_.start.revision, description_.name, description_.revision),
                    "records of different revisions are never compared");
    }
    const auto name = record_.start.host.find("name");
    if (name == record_.start.host.end() || !std::holds_alternative<std::string>(name->second)) {
      throw refusal("'start.host' has no name");
    }
  }
  /// Whether the program reads meters, which are of many nodes: its record is the head's, never a node's.
  [[nodiscard]] bool is_of_meters() const {
    return description_.companion &&
           std::ranges::any_of(description_.parameters, [](const auto& one) { return one.name == "meters"; });
  }
  /// A subject counts once, with any number of lines. A record is of one node.
  void count(const Subject& subject) {
    if (subject.kind == "node" && !is_of_meters()) {
      const auto& own = std::get<std::string>(record_.start.host.at("name"));
      if (subject.id != own)
        throw refusal(fmt::format("is of the node '{}', the record is of '{}'", printable(subject.id), printable(own)));
      return;
    }
    const bool of_many_nodes = subject.kind == "pair" || subject.kind == "group" || subject.kind == "rank";
    const std::size_t most = of_many_nodes ? limits_.max_lines : limits_.max_subjects;
    auto& known = subjects_[subject.kind];
    if (known.insert(subject.id).second && known.size() > most)
      throw refusal(fmt::format("more than {} subjects of kind {}", most, subject.kind));
  }
  void measurement(const json& body) {
    StrictObject fields(body, "measurement", kUnknown);
    Measurement result;
    result.metric = fields.text("metric");
    result.unit = fields.text("unit");
    result.subject = subject_of(fields);
    if (fields.optional("at") != nullptr) result.at = values_of(fields, "at");
    result.samples = samples_of(fields, "samples");
    if (fields.optional("warmup") != nullptr) result.warmup = samples_of(fields, "warmup");
    result.stopped = fields.text("stopped");
    fields.done();
    count(result.subject);
    samples_ += result.samples.size() + result.warmup.size();
    if (samples_ > limits_.max_samples) throw refusal(fmt::format("more than {} samples", limits_.max_samples));
    const auto* declared = description_.metric(result.metric);
    if (declared == nullptr)
      throw refusal(fmt::format("metric '{}' is not one of {}", result.metric, description_.name));
    if (result.unit != declared->unit) {
      throw refusal(fmt::format("'{}' in '{}', declared in '{}'", result.metric, result.unit, declared->unit),
                    fmt::format("base units are {}", kBaseUnits));
    }
    if (result.samples.empty())
      throw refusal(fmt::format("'{}' has no samples", result.metric), "absence is a missing line");
    constexpr std::array<std::string_view, 4> kStops = {"stable", "sample_cap", "time_cap", "fixed"};
    if (std::ranges::find(kStops, result.stopped) == kStops.end()) throw refusal("'stopped' is not a known reason");
    if (!seen_.emplace(result.metric, result.subject, result.at).second) {
      throw refusal(fmt::format("'{}' of this subject is recorded twice", result.metric),
                    "samples of one quantity are one line");
    }
    record_.measurements.push_back(std::move(result));
  }
  void condition(const json& body) {
    StrictObject fields(body, "condition", kUnknown);
    Condition result{.name = fields.text("name"), .subject = subject_of(fields), .value = {}};
    auto value = value_from(fields.need("value"));
    if (!value) fields.refuse("value", "is not a scalar");
    check_value(fields, "value", *value);
    result.value = std::move(*value);
    fields.done();
    count(result.subject);
    if (!description_.has_condition(result.name)) {
      throw refusal(fmt::format("condition '{}' is not one of {}", result.name, description_.name));
    }
    record_.conditions.push_back(std::move(result));
  }
  void end(const json& body) {
    StrictObject fields(body, "end", kUnknown);
    const std::string status = fields.text("status");
    for (const Status known : {Status::complete, Status::skip, Status::error}) {
      if (status != to_string(known)) continue;
      record_.end.status = known;
      if (known != Status::complete) record_.end.reason = reason_of(fields, "reason");
      fields.done();
      ended_ = true;
      return;
    }
    throw refusal(fmt::format("status '{}' is not complete, skip or error", status));
  }

  const Description& description_;
  const RecordLimits& limits_;
  Record record_;
  LineTimes times_;
  std::map<std::string, std::set<std::string>> subjects_;  ///< by kind; of nodes there is one
  std::size_t samples_ = 0;
  std::set<std::tuple<std::string, Subject, Values>> seen_;
  int expected_sequence_ = 0;
  bool ended_ = false;
};

}  // namespace

std::expected<Record, InputError> read_record(std::string_view bytes, const Description& description,
                                              const RecordLimits& limits, LineTimes* times) {
  const auto refuse = [](std::size_t line, std::string what, std::string hint = "") {
    return std::unexpected(InputError{fmt::format("line {}", line), std::move(what), std::move(hint)});
  };
  if (bytes.size() > limits.max_bytes) return refuse(1, fmt::format("{} bytes, over the limit", bytes.size()));
  Reader reader(description, limits);
  std::size_t number = 0;
  while (!bytes.empty()) {
    ++number;
    const auto length = bytes.find('\n');
    if (length == std::string_view::npos) return refuse(number, "is cut off", "the probe was killed while it wrote");
    if (length > limits.max_line) return refuse(number, fmt::format("{} bytes, over the line limit", length));
    if (number > limits.max_lines) return refuse(number, "one line too many");
    const auto document = parse_json(
        bytes.substr(0, length), fmt::format("line {}", number),
        {.max_bytes = limits.max_line, .max_depth = kLineDepth, .max_values = limits.max_samples + kMostFields});
    if (!document) return std::unexpected(document.error());
    const auto read = read_strictly(fmt::format("line {}", number), [&] { return reader.line(*document); });
    if (!read) return std::unexpected(read.error());
    bytes.remove_prefix(length + 1);
  }
  if (!reader.ended()) return refuse(number + 1, "'end' is missing", "the probe died or was killed before it was done");
  if (times != nullptr) *times = reader.times();
  return reader.take();
}

}  // namespace assay
