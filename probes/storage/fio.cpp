// fio: version, space and filesystem are checked before anything is written; every failure carries fio's own words.
#include "probes/storage/fio.h"

#include <filesystem>
#include <fstream>
#include <limits>

#include <fmt/format.h>

#include "probes/core/child.h"
#include "probes/core/host_facts.h"
#include "probes/core/sha256.h"
#include "probes/core/text.h"

namespace assay::storage {
namespace {

constexpr int kMajorVersion = 3;  // the JSON of fio 2 lacks clat_ns and bw_bytes
constexpr Bytes kLayoutBlock = {1 << 20};
constexpr std::int64_t kLayoutDepth = 32;
constexpr double kSlowestLayout = 20e6;  // B/s; a device slower than this is not worth waiting for
constexpr const char* kOutputFile = "output.json";
constexpr const char* kJobFile = "job.fio";
constexpr const char* kLogFile = "fio.log";
constexpr std::size_t kWordsMax = 400;  // of fio's own words in a reason

/// A fio run that did not give a number, as opposed to a stop that was asked for.
struct FioFailed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// What `fio --version` says; its output passes through a file in `directory`.
std::string ask_version(const std::string& program, const std::string& directory, Seconds grace) {
  const OwnFolder scratch(directory);
  const std::string log = scratch.path() + "/version";
  const auto outcome =
      run_child(program, {"--version"}, grace, {.directory = scratch.path(), .log = log, .stop = stop_requested});
  const std::string said = read_fact(log).value_or("");
  if (outcome.end != ChildEnd::exited || outcome.code != 0) {
    throw FioFailed(fmt::format("{} --version did not end well (exit code {}): {}", program, outcome.code,
                                said.substr(0, kWordsMax)));
  }
  return said.substr(0, said.find('\n'));
}

/// How far fio's rates are above its count over the requested time, since it cannot run shorter. fio is a program of
/// the node: a rate that another part of its own report contradicts is not believed.
double ratio_of(const FioResult& result, const FioJob& job) {
  const auto bytes = static_cast<double>(result.moved.count), completions = static_cast<double>(result.completions);
  if (bytes <= 0 || completions <= 0) return std::numeric_limits<double>::max();  // JSON has no infinity
  return std::max({result.bandwidth * job.runtime.count / bytes, result.iops * job.runtime.count / completions,
                   completions * static_cast<double>(job.block.count) / bytes});
}

}  // namespace

FioPlan fio_plan(const Parameters& given) {
  FioPlan plan{.directory = given.text("directory"),
               .engine = given.text("engine"),
               .file_size = given.bytes("file_size"),
               .ramp = given.seconds("ramp"),
               .runtime = given.seconds("runtime"),
               .samples = given.count("samples")};
  demand_positive(given, {"samples", "runtime", "file_size"});
  return plan;
}

void demand_positive(const Parameters& given, std::initializer_list<std::string_view> names) {
  for (const auto name : names) {
    const Value& value = given.values().at(std::string(name));
    const auto* const count = std::get_if<std::int64_t>(&value);
    const auto* const seconds = std::get_if<double>(&value);
    if ((count != nullptr && *count <= 0) || (seconds != nullptr && *seconds <= 0)) {
      throw BadParameter(fmt::format("{}: must be more than 0", name));
    }
  }
}

Fio::Fio(const FioPlan& plan) : plan_(plan) {
  const auto program = find_program("fio");
  if (!program) throw Skip("fio is not on PATH; install fio 3");
  program_ = *program;
  version_ = ask_version(program_, plan_.directory, plan_.grace);
  if (fio_major_version(version_) != kMajorVersion) {
    throw Skip(fmt::format("{} is '{}', not fio {}", program_, version_, kMajorVersion));
  }
  facts_ = filesystem_facts(plan_.directory);
  demand_storage(facts_, plan_.directory, plan_.file_size);
  scratch_.emplace(plan_.directory);
  lay_out();
  before_ = device_traffic();
}

void Fio::lay_out() {
  FioJob job{.direction = Direction::write,
             .block = kLayoutBlock,
             .depth = kLayoutDepth,
             .engine = plan_.engine,
             .file_size = plan_.file_size,
             .ramp = {0},
             .runtime = {0}};
  try {
    (void)run_once(job);  // only the file matters; its speed includes allocation
  } catch (const FioFailed& failed) {
    if (plan_.engine == "libaio") throw;
    fallback_note_ = fmt::format("fio could not use {} and libaio is used instead: {}", plan_.engine, failed.what());
    job.engine = plan_.engine = "libaio";
    (void)run_once(job);
  }
}

std::string Fio::last_words() const {
  std::string words = read_fact(scratch_->path() + "/" + kLogFile).value_or("");
  if (words.size() > kWordsMax) words = "…" + words.substr(words.size() - kWordsMax);
  return words.empty() ? "it said nothing" : "it said: " + words;
}

FioResult Fio::run_once(const FioJob& job) {
  const std::string& directory = scratch_->path();
  const std::string output = directory + "/" + kOutputFile;
  std::ofstream(directory + "/" + kJobFile) << job_file(job);
  std::filesystem::remove(output);  // a result of the run before is never taken for this one's
  Seconds deadline{plan_.grace.count + job.ramp.count + job.runtime.count};
  if (job.runtime.count <= 0) deadline.count += static_cast<double>(job.file_size.count) / kSlowestLayout;
  const auto outcome =
      run_child(program_, {"--output-format=json+", fmt::format("--output={}", kOutputFile), kJobFile}, deadline,
                {.directory = directory, .log = directory + "/" + kLogFile, .stop = stop_requested});
  if (outcome.end == ChildEnd::stopped) throw std::runtime_error("stopped by a signal while fio ran; fio was killed");
  if (outcome.end == ChildEnd::overdue) {
    throw std::runtime_error(fmt::format("fio did not end within {:.1f} s and was killed with its process group; {}",
                                         deadline.count, last_words()));
  }
  if (outcome.code != 0) throw FioFailed(fmt::format("fio ended with exit code {}; {}", outcome.code, last_words()));
  const auto text = read_file(output);
  if (!text) throw FioFailed(text.error().text());
  auto result = read_fio_output(*text, job.direction, kOutputFile);
  if (!result) throw FioFailed(result.error().text() + "; " + last_words());
  return *result;
}

FioResult Fio::run(FioJob job) {
  job.engine = plan_.engine;
  job.file_size = plan_.file_size;
  job.ramp = plan_.ramp;
  job.runtime = plan_.runtime;
  FioResult result = run_once(job);
  direct_reported_ = direct_reported_ && result.direct;
  completions_min_ = std::min(completions_min_.value_or(result.completions), result.completions);
  rate_ratio_ = std::max(rate_ratio_, ratio_of(result, job));
  auto& moved = job.direction == Direction::read ? expected_.read : expected_.written;
  moved.count += result.moved.count;
  plan_.engine = result.engine;
  return result;
}

std::vector<std::vector<FioResult>> Fio::run_in_turn(std::span<const FioJob> jobs) {
  std::vector<std::vector<FioResult>> results(jobs.size());
  for (std::int64_t sample = 0; sample < plan_.samples; ++sample) {
    for (std::size_t i = 0; i < jobs.size(); ++i) results[i].push_back(run(jobs[i]));
  }
  return results;
}

void Fio::record_conditions(Recorder& record) const {
  const auto resident = resident_pages(scratch_->path() + "/" + kFioDataFile);
  const auto now = device_traffic();
  bool moved_by_device = true;
  if (facts_.block_device && before_ && now) {
    moved_by_device = now->read.count - before_->read.count >= expected_.read.count &&
                      now->written.count - before_->written.count >= expected_.written.count;
  }
  record.condition("fio_version", version_);
  const auto program = read_file(program_);
  if (program) record.condition("fio_sha256", to_hexadecimal(sha256_of(*program)));
  record.condition("rate_ratio", rate_ratio_);
  record.condition("engine", plan_.engine);
  record.condition("direct_io", direct_reported_ && resident == 0 && moved_by_device);
  record.condition("resident_pages", static_cast<std::int64_t>(resident));
  record_filesystem(facts_, record);
  record.condition("device", facts_.device);
  if (facts_.rotational) record.condition("rotational", *facts_.rotational);
  record.condition("file_size", static_cast<std::int64_t>(plan_.file_size.count));
  record.condition("data_pattern", std::string("random, refilled for every block"));
  record.condition("completions_min", completions_min_.value_or(0));
  if (!fallback_note_.empty()) record.note(fallback_note_);
}

Sampling samples_of(std::span<const FioResult> results, double FioResult::*field) {
  Sampling sampling{.samples = {}, .warmup = {}, .stopped = "fixed"};
  for (const auto& result : results) sampling.samples.push_back(result.*field);
  return sampling;
}

}  // namespace assay::storage
