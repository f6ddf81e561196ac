// record: the lines that a probe prints, one JSON object each; the only interface between probes and orchestrator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace assay {

/// The schema name in the first line of every record.
inline constexpr const char* kRecordSchema = "assay.record/1";

/// A scalar of a record: a flag, an exact count, a finite double or a text.
using Value = std::variant<bool, std::int64_t, double, std::string>;

/// Named scalars, sorted by name.
using Values = std::map<std::string, Value>;

/// The number in `value`; nothing for texts and truth values.
std::optional<double> number_in(const Value& value);

/// The longest texts of a record, in bytes: a value, a reason or note, the id of a subject, and the id of a group,
/// which may name every node of a large cluster. Recorder keeps to them, the reader refuses more.
inline constexpr std::size_t kLongestValue = 16 << 10;
inline constexpr std::size_t kLongestReason = 4 << 10;
inline constexpr std::size_t kLongestSubject = 255;
inline constexpr std::size_t kLongestGroup = 640 << 10;

/// Subject of a number: kind is one of kSubjectKinds, id names it on its node ("GPU-8f2…", "nvme0n1", "n01").
struct Subject {
  std::string kind = "node";
  std::string id;
  friend auto operator<=>(const Subject&, const Subject&) = default;
};

/// Every kind of subject, as one line for error messages.
inline constexpr const char* kSubjectKinds =
    "node, cpu, dimm, gpu, nic, drive, rank, pair, group, cluster, rack, feed, shelf, cdu, meter, "
    "switch_port";

/// True when `kind` is one of kSubjectKinds.
bool is_subject_kind(const std::string& kind);
/// The longest id of a subject of `kind`, in bytes.
std::size_t longest_id(std::string_view kind);

/// The first line: which probe ran, with which parameters, where.
struct Start {
  std::string probe;
  int revision = 0;
  Values parameters;
  int rank = 0;
  int world = 1;
  Values host;  ///< host facts; "name" is always there
};

/// Every raw sample of one metric on one subject.
struct Measurement {
  std::string metric;
  std::string unit;
  Subject subject;
  Values at;                    ///< coordinates that distinguish samples of one metric, such as {"size": 8388608}
  std::vector<double> samples;  ///< in the order taken, finite, base units
  std::vector<double> warmup;   ///< declared warm-up, discarded from judgement, kept as evidence
  std::string stopped;          ///< why sampling ended: stable, sample_cap, time_cap, or fixed
};

/// One circumstance under which the measurements were taken.
struct Condition {
  std::string name;
  Subject subject;
  Value value;
};

/// How a probe ended, in its own word.
enum class Status { complete, skip, error };

/// The word of `status` in JSON and in documents.
const char* to_string(Status status);

/// The last line; its absence means the record is truncated.
struct End {
  Status status = Status::error;
  std::string reason;  ///< empty exactly when complete
};

/// A whole record, in the order of its lines within each kind.
struct Record {
  Start start;
  std::vector<Measurement> measurements;
  std::vector<Condition> conditions;
  std::vector<std::string> notes;
  End end;
  std::vector<std::size_t> sorted = {};  ///< indices of conditions by name and subject; read_record fills it
};

/// What `record` says of the condition `name` on `subject` or on its node, in the order of its lines.
std::vector<const Condition*> conditions_of(const Record& record, std::string_view name, const Subject& subject);

}  // namespace assay
