// main: the command line of assay.
#include <algorithm>
#include <exception>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

#include <fmt/ranges.h>

#include "orchestrator/cli/bundle.h"
#include "orchestrator/cli/commands.h"
#include "orchestrator/cli/completion.h"
#include "orchestrator/cli/options.h"
#include "orchestrator/cli/passed_on.h"
#include "orchestrator/cli/run_stages.h"
#include "orchestrator/cli/signing.h"
#include "orchestrator/plan/programs.h"
#include "probes/core/command.h"
#include "probes/core/manual.h"
#include "probes/core/suggest.h"
#include "probes/core/text.h"

namespace assay::cli {
namespace {

/// The other program whose command these words are; nothing if it is one of assay.
const char* program_of(int argc, char** argv) {
  if (argc < 2) return nullptr;
  const std::string_view command = argv[1];
  const bool of_nights = std::any_of(argv + 2, argv + argc, [](const char* word) {
    return std::string_view(word).substr(0, std::string_view(word).find('=')) == "--nights";
  });
  if (command == "simulate" && of_nights) return kFleetProgram;
  const auto* found = std::ranges::find(kPassedOn, command, &PassedOn::name);
  return found == kPassedOn.end() ? nullptr : found->program;
}

int pass_on(const char* name, char** argv) {
  const std::string program = plan::installation().binaries + "/" + name;
  argv[0] = const_cast<char*>(name);  // execv takes char* and does not write
  ::execv(program.c_str(), argv);
  return report_error({program, "cannot be started",
                       "it is installed beside assay; in a clone where only `./quickstart accept` ran, `./quickstart "
                       "build` makes it"});
}

struct AcceptArguments {
  PlanRequest request;
  RunSettings settings;
  KeyRequest key;
  std::string out;
};

void add_accept(Command& app, AcceptArguments& given, Action& action) {
  auto& command = app.add_command("accept", "plan, run, judge, report and sign in one command");
  add_plan_options(command, given.request);
  add_option(command, "--out", given.out, "DIR", "run directory [assay-run-<time>]");
  add_key_options(command, given.key, "this machine's own key");
  add_fan_out(command, given.settings.fan_out);
  add_run_options(command, given.settings);
  end_command(command, "Example: assay accept --profile host --site site.json --out run --key lab.key", action,
              [&] { return command_accept(given.request, given.settings, given.out, given.key); });
}

struct PlanArguments {
  PlanRequest request;
  std::string out;
  bool json = false;
};

void add_plan(Command& app, PlanArguments& given, Action& action) {
  auto& command = app.add_command("plan", "write the plan: every step of a run");
  add_plan_options(command, given.request);
  add_option(command, "--out", given.out, "FILE", "file [stdout]");
  command.add_flag("--json", given.json, "with --out or --dry-run: print the steps as JSON");
  end_command(command, "Example: assay plan --profile host --site site.json --out plan.json", action,
              [&] { return command_plan(given.request, given.out, given.json); });
}

struct RunArguments {
  RunSettings settings;
  KeyRequest key;
  std::string plan_file, resume, out;
};

int run_or_resume(const RunArguments& given) {
  if (!given.resume.empty()) return command_resume(given.resume, given.settings, given.key);
  if (given.plan_file.empty())
    return report_error({"assay run", "needs a plan or --resume", "assay run plan.json --out run"});
  return command_run(given.plan_file, given.out, given.settings, given.key);
}

void add_run(Command& app, RunArguments& given, Action& action) {
  auto& command = app.add_command("run", "run a plan, or resume an interrupted run; then judge");
  auto* plan_file = add_option(command, "plan", given.plan_file, "FILE", "plan.json");
  add_option(command, "--resume", given.resume, "DIR", "run directory to resume")->excludes(plan_file);
  add_option(command, "--out", given.out, "DIR", "run directory [assay-run-<time>]");
  add_key_options(command, given.key, "do not report and sign");
  command.add_flag("--allow-settings", given.settings.allow_settings,
                   "run also a plan that changes settings of machines and puts them back");
  command.add_flag("--sign", given.key.sign, "report and sign, without --key with this machine's own key");
  add_fan_out(command, given.settings.fan_out);
  add_run_options(command, given.settings);
  end_command(command, "Example: assay run plan.json --out run; assay run --resume run --key lab.key", action,
              [&] { return run_or_resume(given); });
}

/// Of commands that read one thing.
struct ReadArguments {
  std::string name;
  bool json = false, all = false;
};

void add_judge(Command& app, ReadArguments& given, Action& action) {
  auto& command = app.add_command("judge", "judge a run again from its evidence");
  add_option(command, "directory", given.name, "DIR", "run directory")->required();
  command.add_flag("--all", given.all, "print a line for each cell, not for each requirement");
  command.add_flag("--json", given.json, "print verdict.json");
  end_command(command, "Example: assay judge run", action,
              [&] { return command_judge(given.name, given.json, given.all); });
}

void add_status(Command& app, ReadArguments& given, Action& action) {
  auto& command = app.add_command("status", "print the progress of a run");
  add_option(command, "directory", given.name, "DIR", "run directory")->required();
  command.add_flag("--json", given.json, "print one JSON object");
  end_command(command, "Example: assay status run", action, [&] { return command_status(given.name, given.json); });
}

struct ListArguments {
  std::string what = "probes";
  bool json = false, markdown = false;
};

int list(const ListArguments& given) {
  if (given.what == "profiles") return command_list_profiles(given.json);
  return command_list(given.markdown ? ListForm::markdown : given.json ? ListForm::json : ListForm::text);
}

void add_list(Command& app, ListArguments& given, Action& action) {
  auto& command = app.add_command("list", "list the probes, or the built-in profiles");
  add_option(command, "what", given.what, "", "probes or profiles [probes]")->one_of({"probes", "profiles"});
  command.add_flag("--json", given.json, "print every description as JSON");
  command.add_flag("--markdown", given.markdown, "probes: print a Markdown table");
  end_command(command, "Example: assay list; assay list profiles", action, [&] { return list(given); });
}

void add_doctor(Command& app, ReadArguments& given, Action& action) {
  auto& command = app.add_command("doctor", "say what is missing on this machine for which probe");
  add_option(command, "--directory", given.name, "DIR",
             "where the probes put their files, on the storage under test [the temporary one]");
  command.add_flag("--json", given.json, "print one JSON object");
  end_command(command, "Every probe is started for at most two seconds.\nExample: assay doctor --directory /scratch",
              action, [&] { return command_doctor(given.name, given.json); });
}

void add_describe(Command& app, ReadArguments& given, Action& action) {
  auto& command = app.add_command("describe",
                                  "print the method, parameters, metrics and conditions of a probe, the "
                                  "requirements of a profile, or the table of advisories or actions");
  add_option(command, "name", given.name, "NAME|FILE", "name of a probe or profile, or a profile's file")->required();
  command.add_flag("--json", given.json, "print the description as JSON");
  end_command(command, "Example: assay describe host_gemm; assay describe host; assay describe actions", action,
              [&] { return command_describe(given.name, given.json); });
}

struct BundleArguments {
  BundleRequest contents;
  std::string out;
  bool dry_run = false, json = false;
};

void add_bundle(Command& app, BundleArguments& given, Action& action) {
  auto& command = app.add_command("bundle", "pack this installation for machines with only a driver installed");
  add_option(command, "--out", given.out, "FILE", "folder, or FILE.tar; reproducible byte for byte");
  add_option(command, "--probe", given.contents.probes, "NAME", "only these probes [all]");
  command.add_flag("--with-libraries", given.contents.with_libraries,
                   "include libcublasLt and libnccl, under NVIDIA's terms");
  add_option(command, "--library-path", given.contents.library_paths, "DIR",
             "folder of those libraries; may be repeated [the usual places]");
  command.add_flag("--dry-run", given.dry_run, "list what would be packed, without writing it");
  command.add_flag("--json", given.json, "print the list as JSON");
  end_command(command, "Example: assay bundle --out assay.tar --with-libraries", action,
              [&] { return command_bundle(given.contents, given.out, given.dry_run, given.json); });
}

/// Prints the structure of the command line.
void add_texts(Command& app, std::string& shell, Action& action) {
  auto& completion = app.add_command("completion", "print a completion script for bash, zsh or fish");
  add_option(completion, "shell", shell, "", "bash, zsh or fish [bash]")->one_of({"bash", "zsh", "fish"});
  completion.end_help("Example: assay completion > ~/.local/share/bash-completion/completions/assay");
  completion.when_chosen([&] {
    action = [&] {
      std::cout << harmless_page(completion_script(shell, app, names_passed_on()));
      return files::kExitSuccess;
    };
  });
  auto& manual = app.add_command("manual", "print the manual page");
  manual.end_help("Example: assay manual | man -l -");
  manual.when_chosen([&] {
    action = [&] {
      std::cout << harmless_page(manual_page(app));
      return files::kExitSuccess;
    };
  });
}

int run(int argc, char** argv) {
  Command app{
      "assay measures AI-cluster hardware, compares the results with design targets, and signs a report with its "
      "evidence.",
      "assay"};
  app.need_commands(0, 1);
  app.add_version(std::string("assay ") + ASSAY_VERSION);
  AcceptArguments accept;
  PlanArguments plan;
  RunArguments run;
  ReadArguments judge, status, describe, doctor;
  ListArguments list;
  SiteArguments site;
  BundleArguments bundle;
  std::string shell = "bash";
  Action action;
  add_accept(app, accept, action);
  add_plan(app, plan, action);
  add_run(app, run, action);
  add_judge(app, judge, action);
  add_status(app, status, action);
  add_list(app, list, action);
  add_describe(app, describe, action);
  add_doctor(app, doctor, action);
  add_site(app, site, action);
  add_bundle(app, bundle, action);
  add_texts(app, shell, action);
  app.end_help(footer());  // commands that are added later would inherit it
  return run_command_line(app, action, argc, argv, names_passed_on());
}

}  // namespace
}  // namespace assay::cli

int main(int argc, char** argv) {
  namespace cli = assay::cli;
  // `assay help` and `assay help accept` are `assay --help` and `assay accept --help`.
  std::string option = "--help";
  if (argc > 1 && std::string_view(argv[1]) == "help") {
    if (argc > 2) argv[1] = argv[2];
    argv[argc > 2 ? 2 : 1] = option.data();
    argc = std::min(argc, 3);
  }
  if (const char* program = cli::program_of(argc, argv)) return cli::pass_on(program, argv);
  try {
    return cli::run(argc, argv);
  } catch (const std::exception& error) {
    return cli::report_error({"", error.what(), "unexpected error: please report it with the command that was run"});
  }
}
