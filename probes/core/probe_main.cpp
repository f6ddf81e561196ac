// probe_main: the shell around every measurement: flags in, record out, one place that catches.
#include <atomic>
#include <csignal>
#include <functional>
#include <iostream>
#include <thread>

#include <unistd.h>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "probes/core/description.h"
#include "probes/core/host_facts.h"
#include "probes/core/leaving.h"
#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "probes/core/rendezvous.h"
#include "probes/core/text.h"

namespace assay {
namespace {

volatile std::sig_atomic_t stop_flag = 0;  // signal handlers can reach nothing but a global

void on_stop(int) { stop_flag = 1; }

std::atomic<Recorder*> open_record = nullptr;  // for leave_stuck, which any thread may call

struct Given {
  bool describe = false;
  bool quick = false;
  Placement placement;
  std::map<std::string, std::string> texts;
};

std::string flag_of(std::string_view name) {
  std::string flag = "--" + std::string(name);
  std::ranges::replace(flag, '_', '-');
  return flag;
}

/// Reads argv; an exit code when there is nothing to measure.
std::optional<int> read_flags(int argc, char** argv, const ProbeSpec& spec, Given& given) {
  CLI::App app{fmt::format("{}: {}", spec.name, spec.measures)};
  app.footer(
      fmt::format("Example: {} --quick\nPrints a record (JSON Lines) on stdout; `assay describe {}` prints more.",
                  spec.name, spec.name));
  app.add_flag("--describe", given.describe, "print parameters, metrics, conditions and method as JSON");
  app.add_flag("--quick", given.quick, "use the quick values of parameters that are not given");
  Placement& placement = given.placement;
  app.add_option("--rank", placement.rank, "rank of this process")->check(CLI::NonNegativeNumber);
  app.add_option("--world", placement.world, "number of ranks")->check(CLI::PositiveNumber);
  app.add_option("--rendezvous", placement.rendezvous, "host:port where rank 0 listens and the others dial");
  app.add_option("--token", placement.token, "one-time token of the ranks, in hexadecimal")->envname("ASSAY_TOKEN");
  app.add_option("--challenge", placement.challenge,
                 "for a probe that asks the TPM or GPUs: NONCE, and :CREDENTIAL for a TPM");
  for (const auto& parameter : all_parameters(spec)) {
    app.add_option(flag_of(parameter.name), given.texts[std::string(parameter.name)],
                   fmt::format("{} [{}]", parameter.meaning, parameter.fallback));
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error, std::cerr, std::cerr) == 0 ? kExitComplete : kExitUsage;
  }
  return std::nullopt;
}

Values read_values(const ProbeSpec& spec, const Given& given) {
  Values values;
  for (const auto& parameter : all_parameters(spec)) {
    const std::string name(parameter.name);
    const std::string& text = given.texts.at(name);
    const std::string_view otherwise = given.quick && !parameter.quick.empty() ? parameter.quick : parameter.fallback;
    values.emplace(name, parse_parameter(parameter, text.empty() ? otherwise : text));
  }
  return values;
}

/// A group needs its ranks in order and a way to meet. Throws BadParameter.
void check_placement(const Placement& placement) {
  if (placement.rank >= placement.world) {
    throw BadParameter(fmt::format("rank: {} is not from 0 to {}", placement.rank, placement.world - 1));
  }
  if (placement.world == 1) return;
  (void)parse_endpoint(placement.rendezvous);  // throws for an invalid text
  check_token(placement.token);
}

void record_surroundings(Recorder& record, const LoadMeter& load) {
  if (const auto shares = load.read()) {
    record.condition("cpu_load_by_others", shares->others);
    record.condition("cpu_steal", shares->steal);
  }
  if (const auto synchronised = clock_synchronised()) record.condition("clock_synchronised", *synchronised);
}

}  // namespace

namespace {
std::function<void(const std::string&, bool)> last_words;  // set before a rank's first request
}  // namespace

void before_leaving(std::function<void(const std::string&, bool)> tell) { last_words = std::move(tell); }

void leave_stuck(const std::string& reason, bool waits) noexcept {
  try {
    if (Recorder* record = open_record.exchange(nullptr)) {
      record->end({.status = Status::error, .reason = reason});
      std::cout.flush();
    } else if (last_words) {
      last_words(reason, waits);
    }
    std::cerr << "error: " << harmless(reason) << std::endl;
  } catch (...) {  // NOLINT(bugprone-empty-catch): there is nowhere to report it
  }
  _exit(kExitError);
}

void leave_stuck(const std::string& reason) noexcept { leave_stuck(reason, false); }

bool stop_requested() { return stop_flag != 0; }

void sleep_until_stopped(std::chrono::duration<double> time) {
  constexpr std::chrono::milliseconds kSlice{20};  // the longest a stop goes unnoticed
  const auto end = std::chrono::steady_clock::now() + time;
  while (!stop_requested() && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(
        std::min<std::chrono::duration<double>>(kSlice, end - std::chrono::steady_clock::now()));
  }
}

namespace {

using Measure = std::function<void(const Parameters&, const Placement&, Recorder&)>;

int run_probe(int argc, char** argv, const ProbeSpec& spec, const Measure& measure, bool ranks_meet) {
  Given given;
  if (const auto code = read_flags(argc, argv, spec, given)) return *code;
  if (given.describe) {
    std::cout << describe(spec).dump(2) << '\n';
    return kExitComplete;
  }
  (void)std::signal(SIGTERM, on_stop);  // fails only for numbers that are no signals
  (void)std::signal(SIGINT, on_stop);
  try {
    if (ranks_meet) check_placement(given.placement);
    const Parameters parameters(read_values(spec, given));
    Recorder record(std::cout, spec,
                    Start{.probe = std::string(spec.name),
                          .revision = spec.revision,
                          .parameters = parameters.values(),
                          .rank = given.placement.rank,
                          .world = given.placement.world,
                          .host = host_facts()});
    const LoadMeter load;
    open_record = &record;
    const auto finish = [&](const End& end) {
      if (open_record.exchange(nullptr) != nullptr) record.end(end);
    };
    try {
      measure(parameters, given.placement, record);
      // It may have ended early: of a load that was cut short, and of a soak, the samples so far are no result.
      if (stop_requested() && !spec.companion) throw std::runtime_error("stopped by a signal before its end");
      record_surroundings(record, load);
      finish({.status = Status::complete, .reason = ""});
      return kExitComplete;
    } catch (const Skip& skip) {
      finish({.status = Status::skip, .reason = skip.what()});
      std::cerr << spec.name << ": skipped: " << harmless(skip.what()) << '\n';
      return kExitSkip;
    } catch (const std::exception& error) {
      finish({.status = Status::error, .reason = error.what()});
      std::cerr << spec.name << ": error: " << harmless(error.what()) << '\n';
      return kExitError;
    }
  } catch (const BadParameter& error) {
    std::cerr << spec.name << ": " << harmless(error.what()) << '\n';
    return kExitUsage;
  } catch (const std::exception& error) {
    std::cerr << spec.name << ": error: " << harmless(error.what()) << '\n';
    return kExitError;
  }
}

}  // namespace

int probe_main(int argc, char** argv, const ProbeSpec& spec, void (*measure)(const Parameters&, Recorder&)) {
  const auto alone = [measure](const Parameters& given, const Placement&, Recorder& record) { measure(given, record); };
  return run_probe(argc, argv, spec, alone, false);
}

int probe_main(int argc, char** argv, const ProbeSpec& spec,
               void (*measure)(const Parameters&, const Placement&, Recorder&)) {
  return run_probe(argc, argv, spec, measure, true);
}

}  // namespace assay
