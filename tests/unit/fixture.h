// fixture: a small profile, probe, plan and journal made in memory, for tests of what happens to them.
#pragma once

#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "orchestrator/files/digest.h"
#include "orchestrator/judge/evidence/evidence.h"
#include "orchestrator/plan/plan.h"
#include "probes/core/recorder.h"

namespace assay::fixture {

inline constexpr Parameter kParameters[] = {
    {.name = "size", .unit = "1", .fallback = "4", .quick = "2", .meaning = "size"}};
inline constexpr Metric kMetrics[] = {
    {.name = "bandwidth", .unit = "B/s", .better = Better::higher, .meaning = "bytes over time"},
    {.name = "raw_bandwidth", .unit = "B/s", .better = Better::higher, .meaning = "the same without checks"},
    {.name = "mismatches", .unit = "1", .better = Better::lower, .meaning = "wrong bytes"},
};
inline constexpr ConditionSpec kConditions[] = {
    {.name = "direct_io", .meaning = "whether the cache was passed by"},
    {.name = "driver_version", .meaning = "version of the driver", .recorded = Recorded::if_reported},
    {.name = "nvml_driver", .meaning = "the same by another way", .recorded = Recorded::if_reported},
    {.name = "firmware", .meaning = "firmware of a drive", .recorded = Recorded::if_reported}};
inline constexpr ProbeSpec kSpec{.name = "disk",
                                 .scope = Scope::node,
                                 .measures = "A disk.",
                                 .method = "None.",
                                 .source = "None.",
                                 .parameters = kParameters,
                                 .metrics = kMetrics,
                                 .conditions = kConditions};

/// The same probe, run by several nodes together.
inline constexpr ProbeSpec kFabricSpec{.name = "fabric",
                                       .scope = Scope::group,
                                       .measures = "A fabric.",
                                       .method = "None.",
                                       .source = "None.",
                                       .parameters = kParameters,
                                       .metrics = kMetrics,
                                       .conditions = kConditions};

/// A probe that tells what it found wrong, at each of its sizes, and what share of the possible it reached.
inline constexpr Parameter kCheckedParameters[] = {{.name = "sizes", .fallback = "1,2", .meaning = "sizes"}};
inline constexpr Metric kCheckedMetrics[] = {
    {.name = "bandwidth", .unit = "B/s", .better = Better::higher, .meaning = "bytes over time"},
    {.name = "share",
     .unit = "1",
     .better = Better::higher,
     .meaning = "bandwidth over what the port carries",
     .kind = MetricKind::share},
    {.name = "mismatches", .unit = "1", .better = Better::lower, .meaning = "wrong bytes", .kind = MetricKind::fault},
};
inline constexpr ConditionSpec kCheckedConditions[] = {
    {.name = "direct_io", .meaning = "whether the cache was passed by"},
    {.name = "link_speed_max",
     .meaning = "rate of the fastest mode, where the driver lists its modes",
     .recorded = Recorded::if_reported},
    {.name = "nonce", .meaning = "what the payload is keyed by", .recorded = Recorded::rank_0}};
inline constexpr ProbeSpec kCheckedSpec{.name = "checked",
                                        .scope = Scope::group,
                                        .measures = "A checked fabric.",
                                        .method = "None.",
                                        .source = "None.",
                                        .parameters = kCheckedParameters,
                                        .metrics = kCheckedMetrics,
                                        .conditions = kCheckedConditions};

/// Requirements of every pair of nodes, and of all nodes together.
inline constexpr const char* kPairs =
    R"({"probe": "fabric", "scope": "pair", "limit": {"at_least": 100, "unit": "B/s"}})";
inline constexpr const char* kWhole =
    R"({"probe": "fabric", "scope": "cluster", "limit": {"at_least": 100, "unit": "B/s"}})";

/// Relative standard uncertainty between runs of what these tests make up: next to nothing.
inline constexpr double kBetweenRuns = 1e-9;

inline Description description() { return *read_description(describe(kSpec).dump(), "disk"); }

/// A profile text with one requirement per entry of `requirements`, each a JSON object without the common fields, and
/// as many subjects of each kind on a node as `per_node` says. Each is measured once, unless it says otherwise.
inline std::string profile_text(const std::vector<std::string>& requirements,
                                const std::map<std::string, int>& per_node = {}) {
  const nlohmann::json source = {{"document", "The data sheet"}, {"status", "sourced"}};
  nlohmann::json list = nlohmann::json::array();
  int number = 0;
  for (const auto& text : requirements) {
    nlohmann::json requirement = {{"id", "r" + std::to_string(number++)},
                                  {"title", "A promise"},
                                  {"probe", "disk"},
                                  {"metric", "bandwidth"},
                                  {"scope", "node"},
                                  {"repeat", {{"attempts", 1}, {"more_attempts", 0}}},
                                  {"reproducibility", {{"u", kBetweenRuns}, {"source", source}}},
                                  {"source", source}};
    const auto given = nlohmann::json::parse(text);
    if (given.contains("demand")) {
      for (const char* name : {"metric", "repeat", "reproducibility"}) requirement.erase(name);
    }
    requirement.update(given, true);
    list.push_back(std::move(requirement));
  }
  nlohmann::json node = nlohmann::json::object();
  for (const auto& [kind, count] : per_node)
    node[kind] = count == plan::kOfSite ? nlohmann::json("site") : nlohmann::json(count);
  return nlohmann::json{
      {"schema", "assay.profile/1"}, {"name", "p"},         {"title", "P"}, {"revision", 1}, {"node", node},
      {"relative_only", "a test"},   {"requirements", list}}
      .dump();
}

inline plan::Profile profile(const std::vector<std::string>& requirements,
                             const std::map<std::string, int>& per_node = {}) {
  auto result = plan::read_profile(profile_text(requirements, per_node), "p.json",
                                   [](const std::string&) { return std::nullopt; });
  if (!result) throw std::runtime_error(result.error().text());
  return *result;
}

inline site::Site site(int nodes) {
  site::Site result{.name = "s", .known_hosts = "", .nodes = {}};
  for (int i = 1; i <= nodes; ++i) {
    const std::string name = "n" + std::to_string(i);
    result.nodes.push_back({.name = name,
                            .launcher = site::Launcher::ssh,
                            .address = name,
                            .directory = "/var/tmp/assay",
                            .rack = i % 2 == 1 ? "odd" : "even",
                            .rendezvous = name});
  }
  return result;
}

/// Both probes as they are at hand when planning.
inline std::vector<plan::Program> programs() {
  return {{.name = "disk", .sha256 = std::string(64, 'a'), .path = "/p/disk", .description = description()},
          {.name = "fabric",
           .sha256 = std::string(64, 'b'),
           .path = "/p/fabric",
           .description = *read_description(describe(kFabricSpec).dump(), "fabric")},
          {.name = "checked",
           .sha256 = std::string(64, 'c'),
           .path = "/p/checked",
           .description = *read_description(describe(kCheckedSpec).dump(), "checked")}};
}

/// A run in memory: the plan, its journal, and evidence by path.
struct MemoryRun {
  plan::Plan plan;
  judge::Journal journal;
  std::map<std::string, std::string> files;

  explicit MemoryRun(const std::vector<std::string>& requirements, int nodes = 1,
                     const std::map<std::string, int>& per_node = {}) {
    plan = *plan::make_plan(profile(requirements, per_node), site(nodes), programs(), {});
    journal.run_id = "run";
    journal.finished = true;
    for (const auto& node : plan.site.nodes) journal.node_facts[node.name] = {{"name", node.name}};
  }

  /// A whole record of `node` with these samples of bandwidth.
  [[nodiscard]] std::string record(const std::string& node, const std::vector<double>& samples, bool direct_io = true,
                                   const std::vector<double>& raw = {}) const {
    std::ostringstream out;
    Recorder recorder(
        out, kSpec,
        {.probe = "disk", .revision = 1, .parameters = plan.steps.front().parameters, .host = {{"name", node}}});
    recorder.measurement("bandwidth", Sampling{.samples = samples, .warmup = {}, .stopped = "stable"});
    if (!raw.empty())
      recorder.measurement("raw_bandwidth", Sampling{.samples = raw, .warmup = {}, .stopped = "stable"});
    recorder.measurement("mismatches", 0.0);
    recorder.condition("direct_io", direct_io);
    recorder.end({.status = Status::complete, .reason = ""});
    return out.str();
  }

  /// A whole record of `node` with these samples of bandwidth on each of the drives d1 to d`drives`.
  [[nodiscard]] std::string record_of_drives(int drives, const std::vector<double>& samples,
                                             const std::string& node = "n1") const {
    std::ostringstream out;
    Recorder recorder(
        out, kSpec,
        {.probe = "disk", .revision = 1, .parameters = plan.steps.front().parameters, .host = {{"name", node}}});
    for (int i = 1; i <= drives; ++i) {
      recorder.measurement("bandwidth", Sampling{.samples = samples, .warmup = {}, .stopped = "stable"},
                           {"drive", "d" + std::to_string(i)});
    }
    recorder.end({.status = Status::complete, .reason = ""});
    return out.str();
  }

  /// A whole record of one rank of the first step, of several nodes; rank 0's has these samples.
  [[nodiscard]] std::string record_of_rank(int rank, const std::vector<double>& samples, bool direct_io = true) const {
    const plan::Step& step = plan.steps.front();
    std::ostringstream out;
    Recorder recorder(out, kFabricSpec,
                      {.probe = "fabric",
                       .revision = 1,
                       .parameters = step.parameters,
                       .rank = rank,
                       .world = static_cast<int>(step.nodes.size()),
                       .host = {{"name", step.nodes[static_cast<std::size_t>(rank)]}}});
    if (rank == 0)
      recorder.measurement("bandwidth", Sampling{.samples = samples, .warmup = {}, .stopped = "stable"},
                           {"group", "all"});
    recorder.condition("direct_io", direct_io);
    recorder.end({.status = Status::complete, .reason = ""});
    return out.str();
  }

  /// One ended attempt of step `index` that left `bytes` as its record.
  void attempt(std::size_t index, const std::string& outcome, const std::string& bytes,
               const std::string& reason = "") {
    const plan::Step& step = plan.steps.at(index);
    const int number = static_cast<int>(journal.attempts.of(step.id).size()) + 1;
    judge::Attempt ended{.step = step.id,
                         .number = number,
                         .node = step.nodes.front(),
                         .outcome = from_word<AttemptOutcome>(outcome).value(),
                         .reason = reason,
                         .begin = "b",
                         .end = "e",
                         .evidence = {}};
    ended.second_stage = journal.second_stage;
    if (!bytes.empty()) {
      const std::string path = judge::record_path(step.id, number);
      files[path] = bytes;
      ended.evidence.push_back({.path = path, .sha256 = files::sha256(bytes), .bytes = bytes.size()});
    }
    journal.attempts.push_back(std::move(ended));
  }

  /// The record of another rank of the last attempt.
  void add_rank(int rank, const std::string& bytes) {
    journal.attempts.change_last([&](judge::Attempt& last) {
      const std::string path = judge::record_path(last.step, last.number, rank);
      files[path] = bytes;
      last.evidence.push_back({.path = path, .sha256 = files::sha256(bytes), .bytes = bytes.size()});
    });
  }

  [[nodiscard]] judge::EvidenceReader reader() const {
    return [this](const judge::EvidenceFile& file) -> std::expected<std::string, InputError> {
      const auto found = files.find(file.path);
      if (found == files.end()) return std::unexpected(InputError{file.path, "is missing", ""});
      return found->second;
    };
  }
};

}  // namespace assay::fixture
