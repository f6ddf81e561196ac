// nightly_commands: exports of a history for operators.
#include <chrono>
#include <filesystem>
#include <iostream>

#include <fmt/format.h>

#include "orchestrator/files/atomic_file.h"
#include "orchestrator/files/exit_codes.h"
#include "probes/core/command.h"
#include "probes/core/text.h"
#include "probes/core/utc_time.h"
#include "reports/cli/signer_options.h"
#include "reports/dossier/keys.h"
#include "reports/dossier/opened_run.h"
#include "reports/exports/exports.h"
#include "reports/fleet/commands.h"
#include "reports/nightly/fleet_page.h"
#include "reports/nightly/prometheus.h"
#include "reports/nightly/rma.h"
#include "reports/nightly/unit_page.h"
#include "reports/page/pdf.h"

namespace assay::report_cli {
namespace {

constexpr std::size_t kMostNights = 3660;  // ten years
const std::vector<std::string> kKinds = {"prom", "openmetrics", "alertmanager", "webhook", "grafana", "junit",
                                         "ctrf", "ocp",         "csv",          "knees",   "pdf"};

int failed(const history::Failure& failure) {
  return failure.exit_code == files::kExitRefused ? refused(failure.error) : bad_input(failure.error);
}

std::expected<drift::DriftReport, InputError> report_in(const std::string& path) {
  const auto text = read_file(path);
  if (!text) return std::unexpected(text.error());
  return drift::read_report(*text, path);
}

/// A report and the history that it was made from; another one would show other nights than those that were judged.
struct Opened {
  drift::DriftReport report;
  history::History history;
};

history::Result<Opened> open_both(const std::string& database, const std::string& drift) {
  auto report = report_in(drift);
  if (!report) return std::unexpected(history::Failure{.error = report.error(), .exit_code = files::kExitBadInput});
  auto history = history::History::open(database, history::Access::read);
  if (!history) return std::unexpected(history.error());
  if (history->simulated() != report->simulated) {
    return std::unexpected(history::Failure{
        .error = {drift, "and the database are not of the same fleet: one is a simulation, the other is not",
                  "judge this database with `assay drift judge`"},
        .exit_code = files::kExitBadInput});
  }
  return Opened{.report = std::move(*report), .history = std::move(*history)};
}

/// Prints `text`, or writes it to `out`, which is replaced whole.
int deliver(const std::string& out, const std::string& text) {
  if (out == "-") {
    std::cout << harmless_page(text);
    return files::kExitSuccess;
  }
  if (const auto error = files::replace_file(out, text)) return bad_input(*error);
  std::cout << fmt::format("wrote {}\n", harmless(out));
  return files::kExitSuccess;
}

int deliver_grafana(const std::string& out) {
  if (out == "-") return deliver(out, nightly::grafana_dashboard());
  const std::string folder = without_slash(out);
  const auto absolute = std::filesystem::absolute(folder).lexically_normal().string();
  if (const int code = deliver(folder + "/assay-nightly.json", nightly::grafana_dashboard()); code != 0) return code;
  return deliver(folder + "/assay.yaml", nightly::grafana_provider(absolute));
}

int run_trend(const TrendArguments& given) {
  if (given.fleet != given.unit.empty())
    return bad_input({"trend", "needs a unit, a node or --fleet, and only one of them",
                      "for the whole fleet: assay trend --fleet …"});
  const auto opened = open_both(given.database, given.drift);
  if (!opened) return failed(opened.error());
  if (given.fleet) {
    const auto overview = nightly::overview_of(opened->history, opened->report, given.nights);
    return overview ? deliver(given.out, nightly::fleet_page(*overview, opened->report)) : failed(overview.error());
  }
  const auto trends = nightly::trends_of(opened->history, opened->report, given.unit, given.nights);
  return trends ? deliver(given.out, nightly::unit_page(given.unit, *trends, opened->report, given.nights))
                : failed(trends.error());
}

int run_export(const ExportArguments& given) {
  const bool of_run = std::ranges::find(kRunKinds, given.kind) != kRunKinds.end();
  if (of_run && (given.kind != "openmetrics" || !given.run.directory.empty()))
    return export_run(given.kind, given.run, given.out);
  if (!given.run.directory.empty()) {
    return bad_input({"export " + given.kind, "is of nights, not of a run",
                      "of a run there are junit, ctrf, ocp, csv, knees, openmetrics and pdf"});
  }
  if (given.kind == "grafana") return deliver_grafana(given.out);
  if (given.drift.empty())
    return bad_input({"export " + given.kind, "needs --drift", "`assay drift judge --out drift.json` makes it"});
  const bool of_history = given.kind == "openmetrics" || given.kind == "prom";
  if (of_history && given.database.empty())
    return bad_input({"export " + given.kind, "needs --db", "the database of `assay history add`"});
  if (!of_history) {
    const auto report = report_in(given.drift);
    if (!report) return bad_input(report.error());
    return deliver(given.out,
                   given.kind == "webhook" ? nightly::webhook_message(*report) : nightly::alertmanager_alerts(*report));
  }
  const auto opened = open_both(given.database, given.drift);
  if (!opened) return failed(opened.error());
  if (given.kind == "openmetrics") {
    const auto text = nightly::open_metrics(opened->history, opened->report.as_of, given.nights);
    return text ? deliver(given.out, *text) : failed(text.error());
  }
  const auto sweeps = opened->history.sweeps();
  if (!sweeps) return failed(sweeps.error());
  std::string last;
  for (const auto& sweep : *sweeps) last = std::max(last, sweep.started);
  return deliver(given.out, nightly::textfile(opened->report, last));
}

int check_rma_folder(const RmaArguments& given) {
  const auto key = dossier::load_public_key(given.signer.key);
  if (!key) return bad_input(key.error());
  if (!is_folder(given.check)) return bad_input(not_a_folder(given.check));
  if (const auto error = nightly::check_rma(without_slash(given.check), *key)) return refused(*error);
  std::cout << fmt::format("signed by {}; every file is as it was signed\n", key->fingerprint());
  return files::kExitSuccess;
}

std::expected<std::vector<nightly::Attachment>, InputError> attachments_of(const std::vector<std::string>& given) {
  std::vector<nightly::Attachment> all;
  for (const auto& one : given) {
    const auto equals = one.find('=');
    if (equals == std::string::npos || equals + 1 == one.size()) {
      std::string kinds;
      for (const auto& item : nightly::rma_checklist()) kinds += (kinds.empty() ? "" : ", ") + item.kind;
      return std::unexpected(InputError{"--attach " + one, "is not of the form KIND=FILE", "kinds are: " + kinds});
    }
    all.push_back({.kind = one.substr(0, equals), .path = one.substr(equals + 1)});
  }
  return all;
}

int run_rma(const RmaArguments& given) {
  if (!given.check.empty()) return check_rma_folder(given);
  if (given.unit.empty() || given.database.empty() || given.drift.empty() || given.out.empty())
    return bad_input(
        {"rma", "needs a unit, --db, --drift and --out", "or --check DIR --key FILE for a folder that you were given"});
  const auto attachments = attachments_of(given.attachments);
  if (!attachments) return bad_input(attachments.error());
  std::unique_ptr<dossier::Signer> key;
  if (!given.signer.key.empty()) {
    auto loaded = dossier::load_signer(given.signer);
    if (!loaded) return bad_input(loaded.error());
    key = std::move(*loaded);
  }
  const auto opened = open_both(given.database, given.drift);
  if (!opened) return failed(opened.error());
  auto trends = nightly::trends_of(opened->history, opened->report, given.unit, given.nights);
  if (!trends) return failed(trends.error());
  if (trends->size() != 1)
    return bad_input({given.unit, fmt::format("is a node with {} units", trends->size()),
                      "name the unit by its id, as in drift.json"});
  const nightly::RmaInput input{.trend = std::move(trends->front()),
                                .attachments = *attachments,
                                .made = utc_text(std::chrono::system_clock::now())};
  if (const auto error = nightly::write_rma(input, opened->report, key.get(), without_slash(given.out), given.nights))
    return bad_input(*error);
  std::cout << fmt::format("wrote {}{}\n", harmless(given.out), key ? "" : ", NOT SIGNED: give --key");
  return files::kExitSuccess;
}

/// The run, and its allowed signers.
void add_run_options(Command& command, ExportRunArguments& given) {
  add_option(command, "--run", given.directory, "DIR",
             "of junit, ctrf, ocp, csv, knees, openmetrics, pdf: a run or dossier");
  add_repeated(command, "--key", given.keys, "FILE", "with --run: refuse a dossier that none of these keys signed");
  add_option(command, "--policy", given.policy, "FILE", "with --run: refuse what this trust policy does not count");
  add_repeated(command, "--waiver", given.waivers, "FILE",
               "of pdf, with --policy: a waiver for the first page; may be repeated");
}

/// Prints the report with a browser of this machine.
int write_pdf(dossier::OpenedRun run, const ExportRunArguments& given, const std::string& out) {
  constexpr Seconds kDeadline{600};  // chromium takes a second for twenty pages, a large fleet has thousands
  if (out == "-") return bad_input({"--out", "is missing: a PDF is no text", "name the file: -o report.pdf"});
  if (!given.waivers.empty()) {
    if (const auto code = show_waivers(run.content, given.waivers, given.policy)) return *code;
  }
  if (const auto problem = page::write_pdf(run.content, {run.standing, run.signers}, out, kDeadline))
    return bad_input(*problem);
  std::cerr << fmt::format("wrote {}\n", harmless(out));
  return files::kExitSuccess;
}

std::string text_of(const std::string& kind, const dossier::OpenedRun& run) {
  if (kind == "junit") return exports::junit(run);
  if (kind == "ctrf") return exports::ctrf(run);
  if (kind == "knees") return exports::knees_csv(run);
  return kind == "csv" ? exports::csv(run) : exports::run_metrics(run);
}

int write_folder(const std::map<std::string, std::string>& all, const std::string& out) {
  if (out == "-") {
    return bad_input({"--out", "is missing: OCP diagnostics have a file for each node", "name a new folder"});
  }
  const std::string folder = without_slash(out);
  std::error_code failure;
  if (!std::filesystem::create_directory(folder, failure)) {
    return bad_input({folder, failure ? failure.message() : "exists already", "name a new folder"});
  }
  for (const auto& [name, text] : all) {
    if (const auto problem = files::create_file(folder + "/" + name, text, 0644)) return bad_input(*problem);
  }
  std::cout << fmt::format("wrote {} files to {}\n", all.size(), harmless(folder));
  return files::kExitSuccess;
}

}  // namespace

void add_nightly_commands(Command& app, NightlyArguments& given, Action& action) {
  const auto sources = [](Command& command, std::string& database, std::string& drift, std::size_t& nights) {
    add_option(command, "--db", database, "FILE", "database of `assay history`");
    add_option(command, "--drift", drift, "FILE", "report of `assay drift judge`");
    command.add_option("--nights", nights, "nights that are shown, up to the report's")
        ->with_default()
        ->between(std::size_t{2}, kMostNights);
  };
  auto& trend = app.add_command("trend", "write a page over nights: of the fleet, of a node or of a unit");
  add_option(trend, "unit", given.trend.unit, "UNIT", "id of a unit, or name of a node");
  trend.add_flag("--fleet", given.trend.fleet, "the whole fleet: flags, coverage, and a map of nodes and nights");
  sources(trend, given.trend.database, given.trend.drift, given.trend.nights);
  for (const char* needed : {"--db", "--drift"}) trend.option(needed)->required();
  add_option(trend, "--out,-o", given.trend.out, "FILE", "HTML file to write")->required();
  end_command(trend, "Example: assay trend --fleet --db history.db --drift drift.json -o fleet.html", action,
              [&] { return run_trend(given.trend); });

  auto& exported = app.add_command(
      "export", "a run, or flags and nights, for other programs: " + fmt::format("{}", fmt::join(kKinds, ", ")));
  add_option(exported, "kind", given.exported.kind, "KIND", "what to write")->required()->one_of(kKinds);
  sources(exported, given.exported.database, given.exported.drift, given.exported.nights);
  add_run_options(exported, given.exported.run);
  add_option(exported, "--out,-o", given.exported.out, "FILE",
             "file to replace; of grafana and ocp a folder; - for stdout")
      ->with_default();
  end_command(exported,
              "Example: assay export junit --run run/dossier --key lab.key.pub -o junit.xml\n"
              "         assay export prom --db history.db --drift drift.json -o /var/lib/node_exporter/assay.prom",
              action, [&] { return run_export(given.exported); });

  auto& rma = app.add_command("rma", "write the signed folder that a vendor asks for with a faulty part, or check one");
  add_option(rma, "unit", given.rma.unit, "UNIT", "id of the unit, or name of a node with one unit");
  sources(rma, given.rma.database, given.rma.drift, given.rma.nights);
  add_option(rma, "--out,-o", given.rma.out, "DIR", "new folder");
  add_signer_options(rma, given.rma.signer, " of the sender, with --check the public one");
  add_repeated(rma, "--attach", given.rma.attachments, "KIND=FILE", "a log or proof to add; may be repeated");
  add_option(rma, "--check", given.rma.check, "DIR", "check this folder in place of writing one")
      ->needs(rma.option("--key"));
  end_command(rma,
              "Example: assay rma gpu:1324523049871 --db history.db --drift drift.json --key lab.key --attach "
              "kernel-log=dmesg.txt -o rma",
              action, [&] { return run_rma(given.rma); });
}

int export_run(const std::string& kind, const ExportRunArguments& given, const std::string& out) {
  if (given.directory.empty())
    return bad_input({"export " + kind, "needs --run", "the folder of a run or of a dossier"});
  if (!given.waivers.empty() && (kind != "pdf" || given.policy.empty())) {
    return bad_input({"--waiver", "needs --policy, and is of pdf alone",
                      "the page of a report has an option of its own: assay-report report DIR --waiver FILE"});
  }
  if (!is_folder(given.directory)) return bad_input(not_a_folder(given.directory));
  const std::string directory = without_slash(given.directory);
  if (const auto problem = check_run_is_over(directory)) return bad_input(*problem);
  const auto signers = allowed_signers(given.keys, given.policy);
  if (!signers) return bad_input(signers.error());
  auto run = dossier::open_run(directory, *signers);
  if (!run) return refused(run.error());
  if (kind == "ocp") return write_folder(exports::ocp(*run), out);
  if (kind == "pdf") return write_pdf(std::move(*run), given, out);
  const std::string text = text_of(kind, *run);
  if (out == "-") {
    std::cout << harmless_page(text);
    return files::kExitSuccess;
  }
  if (const auto problem = files::replace_file(out, text)) return bad_input(*problem);
  std::cerr << fmt::format("wrote {}\n", harmless(out));
  return files::kExitSuccess;
}

}  // namespace assay::report_cli
