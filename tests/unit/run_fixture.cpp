// run_fixture: probes that do not exist measure nodes that do not exist.
#include "tests/unit/run_fixture.h"

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include <fmt/format.h>

#include "orchestrator/files/digest.h"
#include "orchestrator/judge/run_verdict.h"
#include "orchestrator/plan/catalogue.h"
#include "probes/core/recorder.h"
#include "probes/core/utc_time.h"

namespace assay::fixture {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr Parameter kParameters[] = {
    {.name = "size", .unit = "B", .fallback = "512MiB", .meaning = "size of one array"}};
constexpr Metric kMemoryMetrics[] = {{.name = "copy_bandwidth",
                                      .unit = "B/s",
                                      .better = Better::higher,
                                      .meaning = "bytes read and written over the time of one pass",
                                      .instrument = 0.001},
                                     {.name = "load_latency",
                                      .unit = "s",
                                      .better = Better::lower,
                                      .meaning = "time of one dependent load",
                                      .instrument = 0.002}};
constexpr ConditionSpec kMemoryConditions[] = {
    {.name = "numa_bound", .meaning = "whether every page lay on the thread's own NUMA node"},
    {.name = "huge_pages", .meaning = "share of the arrays on huge pages"}};
constexpr ProbeSpec kMemory{.name = "example_memory",
                            .revision = 3,
                            .measures = "Sustained copy bandwidth and load latency of main memory.",
                            .method =
                                "Every core copies its own part of an array that is four times as large as the "
                                "last-level cache. Counted are the bytes of both "
                                "the read and the written array; write-allocate traffic is not counted. A sample is "
                                "one pass over the whole array.",
                            .source = "STREAM (McCalpin 1995), kernel Copy.",
                            .typical = {5},
                            .parameters = kParameters,
                            .metrics = kMemoryMetrics,
                            .conditions = kMemoryConditions};
constexpr Metric kDeviceMetrics[] = {{.name = "throughput",
                                      .unit = "FLOP/s",
                                      .better = Better::higher,
                                      .meaning = "2 n^3 over the time of one product",
                                      .instrument = 0.0005}};
constexpr ConditionSpec kDeviceConditions[] = {
    {.name = "throttle_ns", .meaning = "nanoseconds of throttling during the samples"}};
constexpr ProbeSpec kDevice{.name = "example_gemm",
                            .revision = 1,
                            .measures = "Matrix product throughput of each accelerator.",
                            .method = "Square products of random matrices, timed by device events around one product.",
                            .source = "A test fixture.",
                            .typical = {20},
                            .parameters = kParameters,
                            .metrics = kDeviceMetrics,
                            .conditions = kDeviceConditions};

constexpr const char* kProfile = R"json({
 "schema": "assay.profile/1", "name": "example", "title": "Example node with two accelerators", "revision": 4, "node": {"gpu": 2, "drive": 8},
 "peaks": {"fp16": {"value": 1.0e15, "unit": "FLOP/s", "source": {"document": "Example data sheet 7", "status": "sourced"}}},
 "requirements": [
  {"id": "memory.copy", "title": "Main memory bandwidth", "probe": "example_memory", "metric": "copy_bandwidth", "scope": "node", "repeat": {"attempts": 1, "more_attempts": 0},
   "reproducibility": {"u": 0.002, "source": {"document": "Measured on the pilot system", "status": "inferred"}},
   "limit": {"at_least": 4.5e11, "unit": "B/s"}, "conditions": [{"name": "numa_bound", "equals": true}, {"name": "huge_pages", "at_least": 0.9}],
   "source": {"document": "Purchase contract 2025-117, annex B", "figure": "450 GB/s", "date": "2025-11-03", "method": "STREAM Copy, all cores", "status": "sourced"}},
  {"id": "memory.latency", "title": "Main memory latency", "probe": "example_memory", "metric": "load_latency", "scope": "node", "repeat": {"attempts": 1, "more_attempts": 0},
   "reproducibility": {"u": 0.002, "source": {"document": "Measured on the pilot system", "status": "inferred"}},
   "limit": {"at_most": 1.1e-7, "unit": "s"}, "severity": "advisory",
   "source": {"document": "Measured on the pilot system", "status": "inferred"}},
  {"id": "gemm.fp16", "title": "Half-precision matrix product", "probe": "example_gemm", "metric": "throughput", "scope": "gpu", "repeat": {"attempts": 1, "more_attempts": 0},
   "reproducibility": {"u": 0.002, "source": {"document": "Measured on the pilot system", "status": "inferred"}},
   "limit": {"at_least": 0.7, "unit": "FLOP/s", "of": "peak:fp16"}, "conditions": [{"name": "throttle_ns", "at_most": 0}],
   "source": {"document": "Purchase contract 2025-117, annex B", "figure": "70 % of peak", "status": "sourced"}}@EXTRA@
 ]})json";

/// What a record of host_memory_latency needs of it; the plan has its whole description.
constexpr Metric kLatencyMetrics[] = {{.name = "latency", .unit = "s", .better = Better::lower, .meaning = "one load"}};
constexpr ProbeSpec kLatency{.name = "host_memory_latency", .metrics = kLatencyMetrics};

constexpr const char* kKnownProfile = R"json({
 "schema": "assay.profile/1", "name": "latency", "title": "Example node", "revision": 1,
 "requirements": [
  {"id": "memory.latency", "title": "Main memory latency", "probe": "host_memory_latency", "metric": "latency", "scope": "node", "repeat": {"attempts": 1, "more_attempts": 0},
   "reproducibility": {"u": 0.002, "source": {"document": "Measured on the pilot system", "status": "inferred"}},
   "limit": {"at_most": 1.1e-7, "unit": "s"}, "source": {"document": "Purchase contract 2025-117, annex B", "status": "sourced"}}
 ]})json";

/// The same of health_inventory.
constexpr Metric kInventoryMetrics[] = {
    {.name = "cpus_online", .unit = "1", .better = Better::higher, .meaning = "cores"}};
constexpr ConditionSpec kInventoryConditions[] = {{.name = "product_serial", .meaning = "of the machine"}};
constexpr ProbeSpec kInventory{
    .name = "health_inventory", .metrics = kInventoryMetrics, .conditions = kInventoryConditions};

constexpr const char* kInventoryProfile = R"json({
 "schema": "assay.profile/1", "name": "inventory", "title": "Example node", "revision": 1,
 "requirements": [
  {"id": "cpus", "title": "Its cores", "probe": "health_inventory", "metric": "cpus_online", "scope": "node", "statistic": "min",
   "repeat": {"n": 1}, "limit": {"at_least": 64, "unit": "1"}, "source": {"document": "Purchase contract 2025-117, annex B", "status": "sourced"}}
 ]})json";

/// Limits of which one refers to the fleet.
constexpr const char* kFleetProfile = R"json({
 "schema": "assay.profile/1", "name": "fleet", "title": "Example node", "revision": @REVISION@,
 "requirements": [
  {"id": "cpus", "title": "Its cores", "probe": "health_inventory", "metric": "cpus_online", "scope": "node", "statistic": "min",
   "repeat": {"n": 1}, "limit": {"at_least": 64, "unit": "1"}, "source": {"document": "Purchase contract 2025-117, annex B", "status": "sourced"}},
  {"id": "memory.copy", "title": "Main memory bandwidth", "probe": "example_memory", "metric": "copy_bandwidth", "scope": "node", "repeat": {"attempts": 1, "more_attempts": 0},
   "reproducibility": {"u": 0.002, "source": {"document": "Measured on the pilot system", "status": "inferred"}},
   "limit": {"at_least": 3.0e11, "unit": "B/s"}, "source": {"document": "Purchase contract 2025-117, annex B", "status": "sourced"}},
  {"id": "memory.alike", "title": "Main memory bandwidth beside the others", "probe": "example_memory", "metric": "copy_bandwidth", "scope": "node", "repeat": {"attempts": 1, "more_attempts": 0},
   "reproducibility": {"u": 0.002, "source": {"document": "Measured on the pilot system", "status": "inferred"}},
   "limit": {"at_least": 0.95, "unit": "B/s", "of": "fleet_median"}, "source": {"document": "Purchase contract 2025-117, annex B", "status": "sourced"}}
 ]})json";

constexpr const char* kExtraRequirement = R"json(,
  {"id": "drive.read", "title": "Drive read bandwidth", "probe": "example_drive", "metric": "read_bandwidth", "scope": "drive", "repeat": {"attempts": 1, "more_attempts": 0},
   "reproducibility": {"u": 0.002, "source": {"document": "Measured on the pilot system", "status": "inferred"}},
   "limit": {"at_least": 6.0e9, "unit": "B/s"}, "source": {"document": "Drive data sheet", "status": "sourced"}})json";

constexpr const char* kSite = R"json({"schema": "assay.site/1", "name": "hall-2-row-b",
 "nodes": [{"name": "n01", "launcher": "ssh", "rack": "b1"}, {"name": "n02", "launcher": "ssh", "rack": "b1"}, {"name": "n03", "launcher": "ssh", "rack": "b2"}]})json";

template <class T>
T need(std::expected<T, InputError> value) {
  if (!value) throw std::runtime_error(value.error().text());
  return std::move(*value);
}

/// Counts moments, so that the same run has the same bytes.
std::string moment(int& tick) {
  constexpr auto kBegin = std::chrono::sys_days(std::chrono::year_month_day(
                              std::chrono::year(2026), std::chrono::month(1), std::chrono::day(5))) +
                          std::chrono::hours(6) + std::chrono::minutes(30);
  return utc_text(std::chrono::time_point_cast<std::chrono::system_clock::duration>(kBegin) +
                  std::chrono::milliseconds(7211) * tick++);
}

/// Gives each JSON line a moment of the fixture's own.
std::string with_moments(const std::string& lines, int& tick) {
  std::istringstream in(lines);
  std::string out;
  for (std::string line; std::getline(in, line);) {
    auto object = ordered_json::parse(line);
    object["time"] = moment(tick);
    out += object.dump() + "\n";
  }
  return out;
}

/// `count` samples that scatter by 0.3 % around `centre` without any randomness.
Sampling samples(double centre, int count = 16) {
  Sampling sampling{.samples = {}, .warmup = {centre * 0.97}, .stopped = "stable"};
  for (int i = 0; i < count; ++i) sampling.samples.push_back(centre * (1 + 0.003 * std::sin(2.4 * i + centre)));
  return sampling;
}

struct Maker {
  std::string directory;
  Kind kind;
  plan::Plan plan;
  FleetPart part = {};  ///< of the profile `fleet`
  int tick = 0;

  [[nodiscard]] bool mixed() const { return kind == Kind::mixed; }

  /// Nodes of a fleet have a model of processor.
  [[nodiscard]] Start start_of(const plan::Step& step, const std::string& node) const {
    Start start{.probe = step.probe, .revision = plan.probes.at(step.probe).description.revision};
    start.parameters = step.parameters;
    start.host = {{"name", node}};
    if (plan.profile.name == "fleet") start.host["cpu_model"] = "Example processor";
    return start;
  }

  std::string memory_record(const plan::Step& step, const std::string& node) {
    std::ostringstream out;
    Recorder record(out, kMemory, start_of(step, node));
    const double copy = plan.profile.name == "fleet" ? part.level
                        : !mixed() || node == "n01"  ? 4.62e11
                        : node == "n02"              ? 4.503e11
                                                     : 4.31e11;
    record.measurement("copy_bandwidth", samples(copy));
    record.measurement("load_latency", samples(mixed() && node == "n03" ? 1.1003e-7 : 0.987e-7));
    record.condition("numa_bound", true);
    record.condition("huge_pages", 0.98);
    if (mixed() && node == "n02") record.note(kHostile);
    record.end({.status = Status::complete, .reason = ""});
    return with_moments(out.str(), tick);
  }

  std::string device_record(const plan::Step& step, const std::string& node) {
    std::ostringstream out;
    Recorder record(out, kDevice, start_of(step, node));
    for (const std::string id : {"GPU-1f", "GPU-2e"}) {
      const bool throttled = mixed() && node == "n02" && id == "GPU-2e";
      const Subject subject{.kind = "gpu", .id = throttled ? kHostile : node + "-" + id};
      record.measurement("throughput", samples(throttled ? 7.13e14 : 7.41e14), subject);
      record.condition("throttle_ns", std::int64_t{throttled ? 1'800'000 : 0}, subject);
    }
    record.end({.status = Status::complete, .reason = ""});
    return with_moments(out.str(), tick);
  }

  std::string latency_record(const plan::Step& step, const std::string& node) {
    std::ostringstream out;
    Recorder record(out, kLatency, start_of(step, node));
    record.measurement("latency", samples(0.987e-7));
    record.end({.status = Status::complete, .reason = ""});
    return with_moments(out.str(), tick);
  }

  std::string inventory_record(const plan::Step& step, const std::string& node) {
    std::ostringstream out;
    Recorder record(out, kInventory, start_of(step, node));
    record.measurement("cpus_online", Sampling{.samples = {64}, .warmup = {}, .stopped = "fixed"});
    record.condition("product_serial", plan.profile.name == "fleet" ? part.serials + node.substr(1) : "SN-" + node);
    record.end({.status = Status::complete, .reason = ""});
    return with_moments(out.str(), tick);
  }

  std::string record_of(const plan::Step& step, const std::string& node) {
    if (step.probe == kInventory.name) return inventory_record(step, node);
    if (step.probe == "example_memory") return memory_record(step, node);
    return step.probe == "example_gemm" ? device_record(step, node) : latency_record(step, node);
  }

  judge::Attempt attempt(const plan::Step& step, int number, const std::string& node) {
    judge::Attempt done{.step = step.id,
                        .number = number,
                        .node = node,
                        .outcome = AttemptOutcome::exited,
                        .reason = "",
                        .begin = "",
                        .end = "",
                        .evidence = {}};
    const auto keep = [&](const std::string& path, const std::string& bytes) {
      write(directory + "/" + path, bytes);
      done.evidence.push_back({.path = path, .sha256 = files::sha256(bytes), .bytes = bytes.size()});
    };
    keep(judge::record_path(step.id, number), record_of(step, node));
    keep(judge::log_path(step.id, number), "example probe on " + node + "\n");
    if (mixed() && step.probe == "example_gemm" && node == "n03") {
      done.outcome = AttemptOutcome::crashed;
      done.reason = "killed by signal 11";
    }
    return done;
  }

  void run() {
    plan.assay_version = "0.0.0";  // golden bytes outlive releases
    const std::string text = plan::plan_text(plan);
    write(directory + "/plan.json", text);
    const std::string path = directory + "/journal.jsonl";
    {
      judge::JournalWriter journal(path);
      journal.write(judge::JournalEntry::run_begin(
          plan.profile.name == "fleet" ? part.run_id : "5f0c3c1e-8a51-4f0e-9b64-0b1d5a7e2c11", files::sha256(text)));
      for (const auto& node : plan.site.nodes) {
        journal.write(judge::JournalEntry::node_up(
            node.name, {{"name", node.name},
                        {"kernel", "Linux 6.8.0"},
                        {"cores", 64},
                        {"cpu_model", mixed() && node.name == "n02" ? kHostile : "Example CPU 9000"}}));
      }
      for (const auto& step : plan.steps) {
        const std::string& node = step.nodes.front();
        const bool again = mixed() && step.probe == "example_memory" && node == "n01";
        if (again) {
          journal.write(judge::JournalEntry::attempt_begin(step.id, 1, node));
          journal.write(judge::JournalEntry::run_resume());
        }
        journal.write(judge::JournalEntry::attempt_begin(step.id, again ? 2 : 1, node));
        journal.write(judge::JournalEntry::attempt_end(attempt(step, again ? 2 : 1, node)));
      }
      journal.write(judge::JournalEntry::run_end());
    }
    int journal_tick = 0;
    write(path, with_moments(read(path), journal_tick));
    const judge::Run done = need(judge::read_run(directory));
    write(directory + "/verdict.json", judge::verdict_text(need(judge::judge_run(
                                           done.plan, done.plan_sha256, done.journal, judge::evidence_in(directory)))));
  }
};

std::string profile_of(Kind kind) {
  if (kind == Kind::known) return kKnownProfile;
  if (kind == Kind::inventory) return kInventoryProfile;
  std::string text = kProfile;
  text.replace(text.find("@EXTRA@"), 7, kind == Kind::mixed ? kExtraRequirement : "");
  const std::string name = "\"name\": \"example\"";
  if (kind == Kind::lookalike) text.replace(text.find(name), name.size(), "\"name\": \"host\"");
  return text;
}

/// The probes of the examples, and one of ours as the catalogue describes it.
std::vector<plan::Program> programs() {
  std::vector<plan::Program> all;
  for (const ProbeSpec* spec : {&kMemory, &kDevice}) {
    const std::string name(spec->name);
    all.push_back({.name = name,
                   .sha256 = files::sha256(name),
                   .path = "",
                   .description = need(read_description(describe(*spec).dump(), name))});
  }
  for (const auto& known : plan::known_probes()) {
    if (known.name != kLatency.name && known.name != kInventory.name) continue;
    all.push_back({.name = known.name,
                   .sha256 = files::sha256(known.name),
                   .path = "",
                   .description = need(read_description(known.document.dump(), known.name))});
  }
  return all;
}

}  // namespace

TemporaryFolder::TemporaryFolder() : path_((fs::temp_directory_path() / "assay-test-XXXXXX").string()) {
  if (::mkdtemp(path_.data()) == nullptr) throw std::runtime_error("no temporary folder");
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;  // a leftover in the temporary folder harms no test
  fs::remove_all(path_, ignored);
}

void make_run(const std::string& directory, Kind kind) {
  const auto library = [](const std::string&) -> std::optional<std::string> { return std::nullopt; };
  fs::create_directories(directory);
  Maker{.directory = directory,
        .kind = kind,
        .plan = need(plan::make_plan(need(plan::read_profile(profile_of(kind), "profile", library)),
                                     need(site::read_site(kSite, "site")), programs(),
                                     {.challenge = kind == Kind::inventory ? files::sha256("challenge") : ""}))}
      .run();
}

void make_fleet(const std::string& directory, const FleetPart& part) {
  const auto library = [](const std::string&) -> std::optional<std::string> { return std::nullopt; };
  fs::create_directories(directory);
  nlohmann::json site = {{"schema", "assay.site/1"}, {"name", part.site}, {"nodes", nlohmann::json::array()}};
  for (int i = 0; i < part.count; ++i)
    site["nodes"].push_back({{"name", fmt::format("r{:02}", part.first + i)}, {"launcher", "ssh"}});
  std::string profile = kFleetProfile;
  profile.replace(profile.find("@REVISION@"), 10, std::to_string(part.revision));
  Maker{.directory = directory,
        .kind = Kind::accepted,
        .plan = need(plan::make_plan(need(plan::read_profile(profile, "profile", library)),
                                     need(site::read_site(site.dump(), "site")), programs(), {})),
        .part = part}
      .run();
}

void write(const std::string& path, const std::string& bytes) {
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << bytes;
  if (!file.flush()) throw std::runtime_error("cannot write " + path);
}

std::vector<std::string> long_numbers(std::string_view text) {
  constexpr std::size_t kMostDigits = 6;  // four, and what tells a value from its limit
  std::string words;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text.substr(at).starts_with("<style>")) at = text.find("</style>", at);
    if (text[at] == '<') at = std::min(text.find('>', at), text.size() - 1);
    words += text[at] == '>' ? ' ' : text[at];
  }
  std::vector<std::string> found;
  for (std::size_t at = words.find_first_of("0123456789"); at != std::string::npos;) {
    const std::size_t end = std::min(words.find_first_not_of("0123456789.", at), words.size());
    std::string number = words.substr(at, end - at);
    if (number.ends_with('.')) number.pop_back();
    std::string digits = number;
    std::erase(digits, '.');
    digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size()));
    if (digits.size() > kMostDigits && number.find('.') != std::string::npos) found.push_back(number);
    at = words.find_first_of("0123456789", end);
  }
  return found;
}

std::string read(const std::string& path) { return need(read_file(path)); }

}  // namespace assay::fixture
