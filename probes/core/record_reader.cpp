// record_reader: line by line, nothing assumed.
#include "probes/core/record_reader.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "probes/core/units.h"
#include "probes/core/utc_time.h"

namespace assay {
namespace {

using nlohmann::json;

constexpr int kLineDepth = 4;  // line > measurement > at > value is 3

/// Why a line is refused; thrown and caught in this file only, so that each check is one line.
struct Refusal {
  std::string what;
  std::string hint;
};

/// A closed object: every member must be taken, those taken with `need` must exist.
class Members {
 public:
  Members(const json& object, std::string name) : object_(object), name_(std::move(name)) {
    if (!object.is_object()) throw Refusal{fmt::format("'{}' must be an object", name_), ""};
  }
  const json* optional(const char* member) {
    const auto found = object_.find(member);
    if (found == object_.end()) return nullptr;
    ++taken_;
    return &*found;
  }
  const json& need(const char* member) {
    if (const json* found = optional(member)) return *found;
    throw Refusal{fmt::format("'{}' has no '{}'", name_, member), ""};
  }
  std::string text(const char* member) {
    const json& value = need(member);
    if (!value.is_string()) throw Refusal{fmt::format("'{}.{}' must be a text", name_, member), ""};
    return value.get<std::string>();
  }
  int whole(const char* member) {
    const json& value = need(member);
    if (!value.is_number_integer()) throw Refusal{fmt::format("'{}.{}' must be a whole number", name_, member), ""};
    const auto number = value.get<std::int64_t>();
    if (number < 0 || number > INT32_MAX) throw Refusal{fmt::format("'{}.{}' is out of range", name_, member), ""};
    return static_cast<int>(number);
  }
  Values values(const char* member) {
    auto result = values_from(need(member));
    if (!result) throw Refusal{fmt::format("'{}.{}' must be an object of scalars", name_, member), ""};
    return std::move(*result);
  }
  Subject subject() {
    auto result = subject_from(need("subject"));
    if (!result)
      throw Refusal{fmt::format("'{}.subject' must name one subject", name_),
                    fmt::format("kinds are {}", kSubjectKinds)};
    return std::move(*result);
  }
  std::vector<double> samples(const json& array, const char* member) const {
    if (!array.is_array()) throw Refusal{fmt::format("'{}.{}' must be an array", name_, member), ""};
    std::vector<double> result;
    result.reserve(array.size());
    for (const auto& element : array) {
      if (!element.is_number())
        throw Refusal{fmt::format("'{}.{}' has an element that is no number", name_, member), ""};
      result.push_back(element.get<double>());
      if (!std::isfinite(result.back())) throw Refusal{fmt::format("'{}.{}' is not finite", name_, member), ""};
    }
    return result;
  }
  void done() const {
    if (taken_ == object_.size()) return;
    throw Refusal{fmt::format("'{}' has a field that {} does not know", name_, kRecordSchema), ""};
  }

 private:
  const json& object_;
  std::string name_;
  std::size_t taken_ = 0;
};

class Reader {
 public:
  explicit Reader(const Description& description) : description_(description) {}

  void line(const json& document) {
    if (ended_) throw Refusal{"stands after 'end'", "'end' is always the last line"};
    Members members(document, "line");
    const std::string schema = expected_sequence_ == 0 ? members.text("schema") : kRecordSchema;
    if (schema.starts_with("assay.imported/")) {
      throw Refusal{"was imported from another tool's output", "an imported figure is never a measurement of ours"};
    }
    if (schema != kRecordSchema) {
      throw Refusal{fmt::format("the schema is not {}", kRecordSchema), "the probe is of another version"};
    }
    if (const int sequence = members.whole("sequence"); sequence != expected_sequence_) {
      throw Refusal{fmt::format("sequence {} where {} was due", sequence, expected_sequence_), "lines were lost"};
    }
    ++expected_sequence_;
    if (!is_utc_text(members.text("time"))) throw Refusal{"'time' is not UTC with milliseconds", ""};
    const bool first = expected_sequence_ == 1;
    if (const json* body = members.optional("start")) {
      if (!first) throw Refusal{"a second 'start'", ""};
      start(*body);
    } else if (first) {
      throw Refusal{"the first line is not 'start'", ""};
    } else if (const json* measured = members.optional("measurement")) {
      measurement(*measured);
    } else if (const json* circumstance = members.optional("condition")) {
      condition(*circumstance);
    } else if (const json* remark = members.optional("note")) {
      Members note(*remark, "note");
      record_.notes.push_back(note.text("text"));
      note.done();
    } else if (const json* last = members.optional("end")) {
      end(*last);
    }
    members.done();
  }
  [[nodiscard]] bool ended() const { return ended_; }
  Record take() { return std::move(record_); }

 private:
  void start(const json& body) {
    Members members(body, "start");
    record_.start = {.probe = members.text("probe"),
                     .revision = members.whole("revision"),
                     .parameters = members.values("parameters"),
                     .rank = members.whole("rank"),
                     .world = members.whole("world"),
                     .host = members.values("host")};
    members.done();
    if (record_.start.probe != description_.name || record_.start.revision != description_.revision) {
      throw Refusal{fmt::format("from probe {} revision {}, expected {} revision {}", record_.start.probe,
                                record_.start.revision, description_.name, description_.revision),
                    "records of different revisions are never compared"};
    }
    const auto name = record_.start.host.find("name");
    if (name == record_.start.host.end() || !std::holds_alternative<std::string>(name->second)) {
      throw Refusal{"'start.host' has no name", ""};
    }
  }
  void measurement(const json& body) {
    Members members(body, "measurement");
    Measurement result;
    result.metric = members.text("metric");
    result.unit = members.text("unit");
    result.subject = members.subject();
    if (members.optional("at")) {
      Members again(body, "measurement");
      result.at = again.values("at");
    }
    result.samples = members.samples(members.need("samples"), "samples");
    if (const json* warmup = members.optional("warmup")) result.warmup = members.samples(*warmup, "warmup");
    result.stopped = members.text("stopped");
    members.done();
    const auto* declared = description_.metric(result.metric);
    if (declared == nullptr)
      throw Refusal{fmt::format("metric '{}' is not one of {}", result.metric, description_.name), ""};
    if (result.unit != declared->unit) {
      throw Refusal{fmt::format("'{}' in '{}', declared in '{}'", result.metric, result.unit, declared->unit),
                    fmt::format("base units are {}", kBaseUnits)};
    }
    if (result.samples.empty())
      throw Refusal{fmt::format("'{}' has no samples", result.metric), "absence is a missing line"};
    constexpr std::array<std::string_view, 4> kStops = {"stable", "sample_cap", "time_cap", "fixed"};
    if (std::ranges::find(kStops, result.stopped) == kStops.end()) throw Refusal{"'stopped' is an unknown word", ""};
    if (!seen_.emplace(result.metric, result.subject, result.at).second) {
      throw Refusal{fmt::format("'{}' of this subject stands twice", result.metric),
                    "samples of one quantity are one line"};
    }
    record_.measurements.push_back(std::move(result));
  }
  void condition(const json& body) {
    Members members(body, "condition");
    Condition result{.name = members.text("name"), .subject = members.subject(), .value = {}};
    auto value = value_from(members.need("value"));
    if (!value) throw Refusal{"'condition.value' must be a scalar", ""};
    result.value = std::move(*value);
    members.done();
    if (!description_.has_condition(result.name)) {
      throw Refusal{fmt::format("condition '{}' is not one of {}", result.name, description_.name), ""};
    }
    record_.conditions.push_back(std::move(result));
  }
  void end(const json& body) {
    Members members(body, "end");
    const std::string status = members.text("status");
    for (const Status known : {Status::complete, Status::skip, Status::error}) {
      if (status != to_string(known)) continue;
      record_.end.status = known;
      if (known != Status::complete) record_.end.reason = members.text("reason");
      members.done();
      ended_ = true;
      return;
    }
    throw Refusal{fmt::format("status '{}' is not complete, skip or error", status), ""};
  }

  const Description& description_;
  Record record_;
  std::set<std::tuple<std::string, Subject, Values>> seen_;
  int expected_sequence_ = 0;
  bool ended_ = false;
};

}  // namespace

std::expected<Record, InputError> read_record(std::string_view bytes, const Description& description,
                                              const RecordLimits& limits) {
  const auto refuse = [](std::size_t line, std::string what, std::string hint = "") {
    return std::unexpected(InputError{fmt::format("line {}", line), std::move(what), std::move(hint)});
  };
  if (bytes.size() > limits.max_bytes) return refuse(1, fmt::format("{} bytes, over the limit", bytes.size()));
  Reader reader(description);
  std::size_t number = 0;
  while (!bytes.empty()) {
    ++number;
    const auto length = bytes.find('\n');
    if (length == std::string_view::npos) return refuse(number, "is cut off", "the probe was killed while it wrote");
    if (length > limits.max_line) return refuse(number, fmt::format("{} bytes, over the line limit", length));
    if (number > limits.max_lines) return refuse(number, "one line too many");
    const auto document =
        parse_json(bytes.substr(0, length), fmt::format("line {}", number), {limits.max_line, kLineDepth});
    if (!document) return std::unexpected(document.error());
    try {
      reader.line(*document);
    } catch (const Refusal& refusal) {
      return refuse(number, refusal.what, refusal.hint);
    }
    bytes.remove_prefix(length + 1);
  }
  if (!reader.ended()) return refuse(number + 1, "'end' is missing", "the probe died or was killed before it was done");
  return reader.take();
}

}  // namespace assay
