// sweep_file: JSON of due list and outcome.
#include "orchestrator/sweep/sweep_file.h"

#include <cerrno>
#include <cstring>
#include <filesystem>

#include <sys/stat.h>

#include <fmt/format.h>

#include "probes/core/json_io.h"
#include "probes/core/strict_object.h"
#include "probes/core/text.h"
#include "probes/core/utc_time.h"

namespace assay::sweep {
namespace {

using nlohmann::json;

constexpr const char* kDueSchema = "assay.due/1";
constexpr const char* kSweepSchema = "assay.sweep/1";
constexpr const char* kVisitSchema = "assay.visit/1";
constexpr const char* kPairSchema = "assay.pair-visit/1";
constexpr const char* kSweepHint = "the file is written by `assay sweep`: begin a new sweep";
constexpr double kLongest_s = 7 * 86400.0;
constexpr int kMostNights = 100'000;

/// The list of pairs; sweeps from before there were any have none.
const json& pairs_of(StrictObject& object) {
  static const json none = json::array();
  return object.optional("pairs") == nullptr ? none : object.list("pairs");
}

bool is_time_or_empty(std::string_view text) { return text.empty() || is_utc_text(text); }

json to_json(const DueEntry& entry) {
  return {{"node", entry.node},       {"age", entry.age},           {"never", entry.never},
          {"overdue", entry.overdue}, {"targeted", entry.targeted}, {"finding", entry.finding},
          {"weight", entry.weight},   {"stagger", entry.stagger}};
}

DueEntry entry_from(const json& document, const std::string& path) {
  StrictObject object(document, path, kSweepHint);
  DueEntry entry{.node = object.text("node", is_node_name)};
  entry.age = static_cast<int>(object.whole("age", 0, kMostNights));
  entry.never = object.flag("never");
  entry.overdue = object.flag("overdue");
  entry.targeted = object.flag("targeted");
  entry.finding = object.flag("finding");
  entry.weight = object.number("weight", 0, 1e9);
  entry.stagger = object.number("stagger", 0, 1);
  object.done();
  return entry;
}

json to_json(const NightPair& pair) { return json::array({pair.first, pair.second}); }

NightPair night_pair_from(StrictObject& object) {
  const auto nodes = object.texts("nodes");
  const auto pair = nodes.size() == 2 ? pair_named(nodes[0] + "+" + nodes[1]) : std::nullopt;
  if (!pair) object.refuse("nodes", "are not the names of two nodes");
  return *pair;
}

json to_json(const PairVisit& visit) {
  return {{"nodes", to_json(visit.pair)}, {"state", visit.state}, {"reason", printable(visit.reason)}};
}

PairVisit pair_visit_from(StrictObject object) {
  PairVisit visit{.pair = night_pair_from(object)};
  const auto state = from_word<drift::VisitState>(object.text("state"));
  if (!state) object.refuse("state", "is no state of a visit");
  visit.state = *state;
  visit.reason = object.text("reason");
  object.done();
  return visit;
}

json to_json(const DueFile& file) {
  json due = json::array(), pairs = json::array();
  for (const auto& entry : file.due) due.push_back(to_json(entry));
  for (const auto& pair : file.pairs) pairs.push_back({{"nodes", to_json(pair)}});
  return {{"schema", kDueSchema},
          {"id", file.id},
          {"night", drift::date_text(file.night)},
          {"night_given", file.night_given},
          {"retest", file.retest},
          {"started", file.started},
          {"until", file.until},
          {"profile", file.profile},
          {"budget_s", file.budget_s},
          {"stagger_s", file.stagger_s},
          {"only", file.only},
          {"left_out", file.left_out},
          {"acceptance", "none: a sweep accepts and rejects nothing"},
          {"due", std::move(due)},
          {"pairs", std::move(pairs)}};
}

DueFile due_from(const json& document, const std::string& path) {
  StrictObject object(document, path, kSweepHint);
  if (object.text("schema") != kDueSchema) object.refuse("schema", "is not assay.due/1");
  object.pass_over({"acceptance"});
  DueFile file{.id = object.text("id", is_run_id)};
  const auto night = drift::date_from(object.text("night"));
  if (!night) object.refuse("night", "is no date");
  file.night = *night;
  file.night_given = object.flag("night_given");
  file.retest = object.optional("retest") != nullptr && object.flag("retest");  // older ones have none
  file.started = object.text("started", is_utc_text);
  file.until = object.text("until", is_time_or_empty);
  file.profile = object.text("profile");
  file.budget_s = object.number("budget_s", 0, kLongest_s);
  file.stagger_s = object.number("stagger_s", 0, kLongest_s);
  file.only = object.texts("only");
  file.left_out = object.texts("left_out");
  std::size_t number = 0;
  for (const auto& entry : object.list("due"))
    file.due.push_back(entry_from(entry, object.path(fmt::format("due[{}]", number++))));
  number = 0;
  for (const auto& entry : pairs_of(object)) {
    StrictObject pair(entry, object.path(fmt::format("pairs[{}]", number++)), kSweepHint);
    file.pairs.push_back(night_pair_from(pair));
    pair.done();
  }
  object.done();
  return file;
}

std::string text_of(const json& document) { return document.dump(1) + "\n"; }

}  // namespace

std::string due_text(const DueFile& file) { return text_of(to_json(file)); }

std::string sweep_text(const SweepFile& file) {
  json visits = json::array(), pairs = json::array();
  for (const auto& visit : file.visits) visits.push_back(to_json(visit));
  for (const auto& visit : file.pairs) pairs.push_back(to_json(visit));
  return text_of({{"schema", kSweepSchema},
                  {"plan", to_json(file.plan)},
                  {"visits", std::move(visits)},
                  {"pairs", std::move(pairs)},
                  {"runs", file.runs},
                  {"findings", file.findings}});
}

std::expected<DueFile, InputError> read_due(std::string_view text, const std::string& where) {
  const auto document = parse_json(text, where);
  if (!document) return std::unexpected(document.error());
  return read_strictly(where, [&] { return due_from(*document, ""); });
}

std::expected<SweepFile, InputError> read_sweep(std::string_view text, const std::string& where) {
  const auto document = parse_json(text, where);
  if (!document) return std::unexpected(document.error());
  return read_strictly(where, [&] {
    StrictObject object(*document, "", kSweepHint);
    if (object.text("schema") != kSweepSchema) object.refuse("schema", "is not assay.sweep/1");
    SweepFile file{.plan = due_from(object.need("plan"), "plan")};
    std::size_t number = 0;
    for (const auto& visit : object.list("visits"))
      file.visits.push_back(visit_from(StrictObject(visit, fmt::format("visits[{}]", number++), kSweepHint)));
    number = 0;
    for (const auto& visit : pairs_of(object))
      file.pairs.push_back(pair_visit_from(StrictObject(visit, fmt::format("pairs[{}]", number++), kSweepHint)));
    file.runs = object.texts("runs");
    file.findings = object.texts("findings");
    object.done();
    return file;
  });
}

std::string visit_text(const NodeVisit& visit) {
  json document = to_json(visit);
  document["schema"] = kVisitSchema;
  return text_of(document);
}

std::expected<NodeVisit, InputError> read_visit(std::string_view text, const std::string& where) {
  const auto document = parse_json(text, where);
  if (!document) return std::unexpected(document.error());
  return read_strictly(where, [&] {
    StrictObject object(*document, "", kSweepHint);
    if (object.text("schema") != kVisitSchema) object.refuse("schema", "is not assay.visit/1");
    return visit_from(std::move(object));
  });
}

std::string pair_text(const PairVisit& visit) {
  json document = to_json(visit);
  document["schema"] = kPairSchema;
  return text_of(document);
}

std::expected<PairVisit, InputError> read_pair(std::string_view text, const std::string& where) {
  const auto document = parse_json(text, where);
  if (!document) return std::unexpected(document.error());
  return read_strictly(where, [&] {
    StrictObject object(*document, "", kSweepHint);
    if (object.text("schema") != kPairSchema) object.refuse("schema", "is not assay.pair-visit/1");
    return pair_visit_from(std::move(object));
  });
}

std::expected<bool, InputError> claim(const std::string& path) {
  std::error_code problem;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), problem);
  if (::mkdir(path.c_str(), 0755) == 0) return true;
  if (errno == EEXIST) return false;
  return std::unexpected(InputError{path, fmt::format("cannot be made: {}", std::strerror(errno)),
                                    "the sweep's folder must lie on a file system that all nodes share"});
}

}  // namespace assay::sweep
