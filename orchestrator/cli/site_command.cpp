// site_command: `assay site`: writing site files and comparing nodes.
#include "orchestrator/cli/site_command.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>

#include <fmt/ranges.h>
#include <boost/asio/io_context.hpp>

#include "orchestrator/cli/commands.h"
#include "orchestrator/cli/run_stages.h"
#include "orchestrator/files/child.h"
#include "orchestrator/launch/agent.h"
#include "orchestrator/launch/slurm.h"
#include "orchestrator/plan/programs.h"
#include "orchestrator/run/all_of.h"
#include "orchestrator/site/check.h"
#include "orchestrator/site/site_file.h"
#include "orchestrator/site/topology.h"
#include "probes/core/record_reader.h"
#include "probes/core/text.h"
#include "probes/core/utc_time.h"

namespace assay::cli {
namespace {

namespace asio = boost::asio;

constexpr Seconds kListDeadline{60};  // for scontrol or kubectl to print a list

/// What `tool` of this machine prints.
std::expected<std::string, InputError> output_of(const std::string& tool, const std::vector<std::string>& arguments) {
  const std::string program = files::find_in_path(tool);
  if (program.empty())
    return std::unexpected(
        InputError{tool, "is not installed", fmt::format("`assay site --from` gets the list of nodes from {}", tool)});
  auto printed = files::run_child(program, arguments, kListDeadline);
  if (!printed) return std::unexpected(printed.error());
  if (printed->exit_code != 0)
    return std::unexpected(
        InputError{tool, fmt::format("exited with code {}", printed->exit_code), "its error message is printed above"});
  return std::move(printed->output);
}

std::expected<nlohmann::ordered_json, InputError> document_from(const SiteSource& source) {
  if (source.from == "hostfile" || source.from == "ssh-config") {
    if (source.file.empty())
      return std::unexpected(
          InputError{"--from " + source.from, "needs a file", fmt::format("assay site --from {} FILE", source.from)});
    const auto text = read_file(source.file);
    if (!text) return std::unexpected(text.error());
    return source.from == "hostfile" ? site::site_from_hostfile(*text, source.file, source.options)
                                     : site::site_from_ssh_config(*text, source.file, source.options);
  }
  if (!source.file.empty())
    return std::unexpected(InputError{"--from " + source.from, "reads no file", "leave FILE out"});
  if (source.from == "slurm") {
    std::vector<std::string> arguments = {"--oneliner", "show", "nodes"};
    const char* const own = std::getenv("SLURM_JOB_NODELIST");  // inside an allocation: its nodes and no others
    if (own != nullptr && *own != '\0') {
      const auto names = site::expand_host_list(own);
      if (!names)
        return std::unexpected(
            InputError{"SLURM_JOB_NODELIST", names.error(), "it should be Slurm's list of the nodes of this job"});
      arguments.emplace_back(own);
    }
    const auto printed = output_of("scontrol", arguments);
    if (!printed) return std::unexpected(printed.error());
    return site::site_from_scontrol(*printed, "scontrol", source.options);
  }
  std::vector<std::string> arguments;
  if (!source.kube_namespace.empty()) arguments.push_back("--namespace=" + source.kube_namespace);
  arguments.insert(arguments.end(), {"get", "pods", "--output=json", "--selector=" + source.selector});
  const auto printed = output_of("kubectl", arguments);
  if (!printed) return std::unexpected(printed.error());
  return site::site_from_pods(*printed, "kubectl", source.options);
}

/// What `lldpctl -f json` printed on each node: the files NODE.json of a folder.
std::expected<std::map<std::string, std::string>, InputError> texts_in(const std::string& folder) {
  std::map<std::string, std::string> texts;
  std::error_code failed;
  std::filesystem::directory_iterator entry(folder, failed);
  for (; !failed && entry != std::filesystem::directory_iterator(); entry.increment(failed)) {
    if (entry->path().extension() != ".json") continue;
    auto text = read_file(entry->path());
    if (!text) return std::unexpected(text.error());
    texts[entry->path().stem()] = std::move(*text);
  }
  if (failed)
    return std::unexpected(InputError{folder, failed.message(), "name a folder with one file NODE.json per node"});
  return texts;
}

std::expected<site::Topology, InputError> topology_from(const SiteSource& source, const site::Site& site) {
  if (source.from == "lldp") {
    const auto texts = texts_in(source.file);
    if (!texts) return std::unexpected(texts.error());
    return site::topology_from_lldp(*texts, source.file, site);
  }
  const auto text = read_file(source.file);
  if (!text) return std::unexpected(text.error());
  return site::topology_from_ibnetdiscover(*text, source.file, site);
}

/// When the first line of a record was written, in seconds since 1970, by the clock of the node; nothing if it has no
/// time.
std::optional<double> seconds_of_first_line(std::string_view output) {
  const auto line = parse_json(output.substr(0, output.find('\n')), "record");
  if (!line || !line->is_object() || !line->contains("time") || !line->at("time").is_string()) return std::nullopt;
  const auto time = utc_time(line->at("time").get<std::string>());
  if (!time) return std::nullopt;
  return std::chrono::duration<double>(time->time_since_epoch()).count();
}

double now_s() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

/// Runs `program` on a node, and keeps its record; the reason when there is none. The first tells the node's clock.
asio::awaitable<std::string> take_record(launch::Agent& agent, const plan::Program& program, site::NodeAnswer& answer,
                                         std::vector<Record>& records) {
  const std::string missing = "no record of " + program.name + ": ";
  const auto build = program.builds.find(agent.machine());
  if (build == program.builds.end())
    co_return missing + fmt::format("it is not part of this build for {}", agent.machine());
  const auto delivered = co_await agent.deliver(build->second.sha256, build->second.path);
  if (!delivered) co_return missing + delivered.error().reason;
  launch::RunRequest request{.id = "site-check",
                             .sha256 = build->second.sha256,
                             .deadline = {60},
                             .limits = {.memory = {1ULL << 30}, .output = {16 << 20}, .cpu = {60}}};
  const double before = now_s();
  const launch::RunResult result = co_await agent.run(std::move(request));
  const double after = now_s();
  if (result.outcome != AttemptOutcome::exited) co_return missing + result.reason;
  auto record = read_record(result.output, program.description);
  if (!record) co_return missing + record.error().text();
  const auto there = answer.clock_offset_s ? std::nullopt : seconds_of_first_line(result.output);
  if (there) answer.clock_offset_s = site::clock_offset(before, *there, after);
  if (record->end.status != Status::complete) co_return missing + record->end.reason;
  records.push_back(std::move(*record));
  co_return "";
}

class Checker {
 public:
  Checker(const site::Site& site, int fan_out) : site_(site), fan_out_(fan_out) {}

  std::expected<std::vector<site::NodeAnswer>, InputError> run() {
    auto programs = plan::installed_programs({site::kComparedProbes.begin(), site::kComparedProbes.end()});
    if (!programs) return std::unexpected(programs.error());
    for (const auto name : site::kComparedProbes) {
      const auto found = std::ranges::find(*programs, name, &plan::Program::name);
      if (found != programs->end()) {
        compared_.push_back(&*found);
      } else {
        std::cerr << fmt::format("assay: {} is not part of this installation; its facts are not compared\n", name);
      }
    }
    answers_.resize(site_.nodes.size());
    std::vector<std::string> by_slurm;
    for (const auto& node : site_.nodes) {
      if (node.launcher == site::Launcher::slurm) by_slurm.push_back(node.name);
    }
    if (!by_slurm.empty()) {
      launch::SlurmTools tools{.agent = launch::agent_for(agents(), site_.node(by_slurm.front())->machine)};
      slurm_ = std::make_unique<launch::SlurmLauncher>(io_.get_executor(), site_, std::move(by_slurm), std::move(tools),
                                                       [](const std::string& who, const std::string& what) {
                                                         std::cerr
                                                             << fmt::format("{}: {}\n", harmless(who), harmless(what));
                                                       });
    }
    std::exception_ptr failure;
    asio::co_spawn(io_, check_all(), [&failure](const std::exception_ptr& thrown) { failure = thrown; });
    io_.run();
    if (failure) std::rethrow_exception(failure);
    return std::move(answers_);
  }

 private:
  asio::awaitable<void> check_all() {
    const std::size_t workers = std::min(site_.nodes.size(), static_cast<std::size_t>(fan_out_));
    const auto worker = [this](std::size_t) { return work(); };
    co_await run::side_by_side(workers, worker);
    if (slurm_) co_await slurm_->close();
    slurm_.reset();
  }

  asio::awaitable<void> work() {
    while (next_ < site_.nodes.size()) {
      const std::size_t index = next_++;
      co_await check_node(site_.nodes[index], answers_[index]);
    }
  }

  asio::awaitable<void> check_node(const site::Node& node, site::NodeAnswer& answer) {
    answer.node = node.name;
    launch::LaunchOptions options = agents();
    options.slurm = slurm_.get();
    auto agent = co_await launch::Agent::start(node, site_, options);
    if (!agent) {
      answer.failure = agent.error().kind;
      answer.reason = agent.error().reason;
      co_return;
    }
    std::vector<Record> records;
    for (const plan::Program* program : compared_) {
      const auto missing = co_await take_record(**agent, *program, answer, records);
      if (!missing.empty()) answer.reason += (answer.reason.empty() ? "" : "; ") + missing;
    }
    answer.facts = site::facts_of((*agent)->facts(), records);
    co_await (*agent)->close();
  }

  static launch::LaunchOptions agents() {
    const plan::Installation here = plan::installation();
    return {.agent = here.binaries + "/assay-node", .agents = here.agents()};
  }

  const site::Site& site_;
  int fan_out_;
  std::vector<const plan::Program*> compared_;
  asio::io_context io_{1};
  std::unique_ptr<launch::SlurmLauncher> slurm_;
  std::vector<site::NodeAnswer> answers_;
  std::size_t next_ = 0;
};

std::expected<site::Site, InputError> site_in(const std::string& file) {
  return file.empty() ? site::this_machine() : site::read_site_file(file);
}

}  // namespace

int command_site_from(SiteSource source) {
  source.options.home = site::home_directory();
  std::vector<std::string> notes;
  source.options.notes = &notes;
  auto document = document_from(source);
  if (!document) return report_error(document.error());
  for (const auto& note : notes) std::cerr << fmt::format("assay: {}\n", harmless(note));
  if (!source.directory.empty()) {
    for (auto& node : document->at("nodes")) node["directory"] = source.directory;
  }
  // Bytes that are not UTF-8 become a character that no name may have.
  const std::string text = document->dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  if (const auto site = site::read_site(text, source.from); !site) return report_error(site.error());
  std::cout << ascii_json(text);
  return files::kExitSuccess;
}

int command_site_cables(const SiteSource& source, const std::string& site_file) {
  const std::string what = "--from " + source.from;
  if (source.file.empty())
    return report_error({what, "needs a file or folder",
                         fmt::format("assay site --from {} {} --site site.json", source.from,
                                     source.from == "lldp" ? "FOLDER" : "FILE")});
  if (site_file.empty())
    return report_error({what, "needs --site", "leaves and switch ports are added to an existing site file"});
  const auto given = read_file(site_file);
  if (!given) return report_error(given.error());
  const auto site = site::read_site(*given, site_file);  // with its paths as they are: it is printed again
  if (!site) return report_error(site.error());
  const auto topology = topology_from(source, *site);
  if (!topology) return report_error(topology.error());
  for (const auto& note : topology->notes) std::cerr << fmt::format("assay: {}\n", harmless(note));
  const site::Cabled cabled = site::with_cables(*site, *topology, source.plane);
  for (const auto& finding : cabled.findings) std::cerr << harmless(finding) << '\n';
  if (!cabled.findings.empty()) return files::kExitRejected;
  const std::string text = to_json(cabled.site).dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  if (const auto again = site::read_site(text, source.from); !again) return report_error(again.error());
  std::cout << ascii_json(text);
  return files::kExitSuccess;
}

int command_site_check(const std::string& file, int fan_out, bool json) {
  const auto site = site_in(file);
  if (!site) return report_error(site.error());
  const auto answers = Checker(*site, fan_out).run();
  if (!answers) return report_error(answers.error());
  const site::SiteCheck check = site::compare_nodes(*answers);
  std::cout << (json ? site::check_document(check).dump(1, ' ', true) + "\n" : harmless_page(site::check_text(check)));
  if (!check.alike()) return files::kExitRejected;
  return check.unreachable.empty() && check.partial.empty() ? files::kExitSuccess : files::kExitIncomplete;
}

int command_site_sbatch(const std::string& file, const std::string& profile) {
  const auto site = site_in(file);
  if (!site) return report_error(site.error());
  std::vector<std::string> nodes;
  for (const auto& node : site->nodes) {
    if (node.launcher == site::Launcher::slurm) nodes.push_back(node.name);
  }
  if (nodes.empty())
    return report_error({file.empty() ? "--site" : file, "has no node of launcher slurm",
                         "`assay site --from slurm` writes such a site file"});
  const auto is_plain = [](const std::string& text) { return text.find_first_of("'\n") == std::string::npos; };
  const std::string path = std::filesystem::absolute(file);
  if (!is_plain(path) || !is_plain(profile))
    return report_error({path, "has a quote or an end of line in its name", "rename it"});
  std::cout << "#!/bin/bash\n# Written by `assay site sbatch`. Submit it with `sbatch`; the verdict is the job's exit "
               "code.\n";
  const auto print_option = [](std::string_view option, const std::string& value) {
    if (!value.empty()) std::cout << fmt::format("#SBATCH --{}={}\n", option, value);
  };
  const site::SlurmOptions& slurm = site->slurm;
  print_option("job-name", "assay-accept");
  print_option("nodes", std::to_string(nodes.size()));
  print_option("nodelist", fmt::format("{}", fmt::join(nodes, ",")));
  print_option("partition", slurm.partition);
  print_option("account", slurm.account);
  print_option("qos", slurm.qos);
  print_option("reservation", slurm.reservation);
  print_option("constraint", slurm.constraint);
  print_option("time", slurm.time);
  print_option("gres", slurm.gres);
  if (slurm.gpus_per_node > 0) print_option("gpus-per-node", std::to_string(slurm.gpus_per_node));
  print_option("output", "assay-%j.log");
  std::cout
      << "#SBATCH --exclusive\n#SBATCH --no-kill\n# Two minutes before the time limit: running steps finish, then "
         "the run is judged.\n#SBATCH --signal=B:INT@120\n"
      << fmt::format("exec assay accept --profile '{}' --site '{}' --out \"assay-run-$SLURM_JOB_ID\"\n", profile, path)
      << "# After a time-out, in a second job of this kind: assay run --resume assay-run-<id of the first job>\n";
  return files::kExitSuccess;
}

int command_site_manifest(const launch::AgentPods& pods) {
  const auto manifest = launch::kubernetes_manifest(pods);
  if (!manifest) return report_error({"assay site manifest", manifest.error(), "`assay site manifest --help`"});
  std::cout << *manifest;
  return files::kExitSuccess;
}

}  // namespace assay::cli
