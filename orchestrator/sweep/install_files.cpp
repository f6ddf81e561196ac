// install_files: texts of the files.
#include "orchestrator/sweep/install_files.h"

#include <cmath>
#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "orchestrator/sweep/night.h"
#include "orchestrator/sweep/verdict_cache.h"
#include "probes/core/text.h"

namespace assay::sweep {
namespace {

using nlohmann::ordered_json;
using Files = std::map<std::string, std::string>;

constexpr int kGrace_s = 360;                                // besides the budget, for the end of a sweep and judging
constexpr int kLongestWait_s = 4 * 3600;                     // of a pod for a node without other pods
constexpr int kPluginTimeout_s = 5, kPluginInterval_s = 30;  // node-problem-detector's defaults

std::optional<InputError> check(const InstallRequest& request) {
  const auto wrong = [](const char* option, const std::string& value, const char* hint) {
    return InputError{option, fmt::format("'{}' has a character that is not allowed here", printable(value)), hint};
  };
  const std::string history = history_of(request);
  for (const auto& [option, value] : {std::pair<const char*, const std::string*>{"the program", &request.assay},
                                      {"--site", &request.site},
                                      {"--folder", &request.folder},
                                      {"--history", &history}}) {
    if (!is_plain_absolute_path(*value))
      return wrong(option, *value, "give an absolute path of letters, digits and /._-");
  }
  if (!is_plain_absolute_path(request.profile) && !is_run_id(request.profile))
    return wrong("--profile", request.profile, "a name, or an absolute path");
  if (request.budget.empty() || !has_only(request.budget, ".")) return wrong("--budget", request.budget, "write 5min");
  const auto now = std::chrono::system_clock::time_point{};
  for (const auto& time : {request.at, request.until}) {
    if (!next_time(time, now, std::chrono::seconds(0))) return wrong("--at, --until", time, "write 01:00");
  }
  if (request.image.empty() || !has_only(request.image, ".:/@_-"))
    return wrong("--image", request.image, "an image's name");
  if (request.kube_namespace.empty() || !has_only(request.kube_namespace, "-"))
    return wrong("--namespace", request.kube_namespace, "a namespace's name");
  if (request.gpu_resource.find('/') == std::string::npos || !has_only(request.gpu_resource, "./_-"))
    return wrong("--gpu-resource", request.gpu_resource, "a resource's name: nvidia.com/gpu, amd.com/gpu");
  return std::nullopt;
}

/// Makes the folder of a database that is named.
std::string folder_words(const InstallRequest& request) {
  if (request.history.empty()) return "";
  return fmt::format("mkdir -p {}; ", std::filesystem::path(request.history).parent_path().string());
}

/// The sweep's command, with a folder for each night; `more` goes behind it.
std::string sweep_words(const InstallRequest& request, const std::string& out, const std::string& more) {
  return fmt::format(
      "{0} sweep --quiet --site {1} --profile {2} --budget {3} --until {4} --state {5}/state --history {6} --out "
      "{7}{8}",
      request.assay, request.site, request.profile, request.budget, request.until, request.folder, history_of(request),
      out, more);
}

std::string judge_words(const InstallRequest& request) {
  return fmt::format("{0} drift judge --db {2} -o {1}/drift.json", request.assay, request.folder, history_of(request));
}

/// The commands of a night in the words of a shell, `$` as `dollar`: a sweep, first of the nodes that the last
/// judgement watches, and the judgement with it, whatever the sweep missed. Exit code: the judgement's if it is not 0,
/// else that of the sweep.
std::string night_words(const InstallRequest& request, const std::string& out, const std::string& more,
                        const char* dollar) {
  return fmt::format(
      "{4}report={0}/drift.json; {1} {2}([ -e {2}report ] && echo --drift {2}report); swept={2}?; {3} && exit {2}swept",
      request.folder, sweep_words(request, out, more), dollar, judge_words(request), folder_words(request));
}

Files timer_files(const InstallRequest& request) {
  // No Nice= and no CPUWeight=: they would falsify the measurement. No catching up at boot, in working hours. %% is a
  // percent sign for systemd; `date` makes the night's own folder.
  const std::string out = request.folder + "/sweeps/$$(date +%%Y%%m%%dT%%H%%M%%S)";
  return {{"assay-sweep.service",
           fmt::format("[Unit]\nDescription=assay: nightly sweep and its "
                       "judgement\nDocumentation=file:///usr/share/doc/assay/GUIDE.md\n\n"
                       "[Service]\nType=oneshot\nTimeoutStartSec={}\nKillSignal=SIGTERM\nTimeoutStopSec=10\n"
                       "ExecStart=/bin/sh -c '{}'\n",
                       static_cast<int>(std::ceil(request.budget_s)) + kGrace_s, night_words(request, out, "", "$$"))},
          {"assay-sweep.timer",
           fmt::format("[Unit]\nDescription=assay: every night\n\n[Timer]\nOnCalendar=*-*-* {}\nRandomizedDelaySec=2h\n"
                       "FixedRandomDelay=true\nPersistent=false\n\n[Install]\nWantedBy=timers.target\n",
                       request.at)}};
}

/// A script that prints the cached verdict and takes its exit code.
std::string reader_script(const InstallRequest& request) {
  return fmt::format(
      "#!/bin/sh\n# Reads the verdict that was cached; it measures nothing and changes nothing.\n"
      "exec {} verdict --file {} ${{NODE_NAME:+--node \"$NODE_NAME\"}}\n",
      request.assay, kVerdictPath);
}

Files slurm_files(const InstallRequest& request) {
  const std::string out = request.folder + "/sweeps/$(date +%Y%m%dT%H%M%S)";
  // Slurm's HealthCheckProgram takes no action on an exit code; drains are those of `assay drain`.
  return {
      {"assay-sweep.sh",
       fmt::format("#!/bin/sh\n# Every night at the head: from cron, scrontab or a timer at {}.\n{}\n", request.at,
                   night_words(request, out, " --slurm", "$"))},
      {"assay-healthcheck.sh",
       fmt::format("#!/bin/sh\n# HealthCheckProgram: writes the cached verdict to the system's log. It measures "
                   "nothing and drains nothing.\n"
                   "line=$({} verdict --file {} ${{SLURMD_NODENAME:+--node \"$SLURMD_NODENAME\"}})\ncode=$?\n[ $code "
                   "-eq 0 ] || logger -t assay \"$line\"\nexit 0\n",
                   request.assay, kVerdictPath)},
      {"slurm.conf.assay",
       fmt::format(
           "# Lines for slurm.conf; the health check only reads a file.\nHealthCheckProgram={}/assay-healthcheck.sh\n"
           "HealthCheckInterval=300\nHealthCheckNodeState=ANY,CYCLE\n",
           request.folder)}};
}

ordered_json container_of(const InstallRequest& request, const char* name, const std::string& command) {
  ordered_json container = {
      {"name", name},
      {"image", request.image},
      {"command", {"/bin/sh", "-c", command}},
      {"env",
       ordered_json::array({{{"name", "NODE_NAME"}, {"valueFrom", {{"fieldRef", {{"fieldPath", "spec.nodeName"}}}}}}})},
      {"volumeMounts", ordered_json::array({{{"name", "assay"}, {"mountPath", request.folder}}})}};
  return container;
}

/// The name of the Job that a pod belongs to: every pod of one night finds the same folder by it.
ordered_json job_name() {
  return {{"name", "JOB_NAME"}, {"valueFrom", {{"fieldRef", {{"fieldPath", "metadata.labels['job-name']"}}}}}};
}

/// A pod that is never begun twice, with the shared folder.
ordered_json pod_of(const ordered_json& containers) {
  return {{"restartPolicy", "Never"},
          {"containers", containers},
          {"volumes", ordered_json::array({{{"name", "assay"}, {"persistentVolumeClaim", {{"claimName", "assay"}}}}})}};
}

/// The pod that collects and judges; a database outside of the shared folder has a volume of its own.
ordered_json collect_pod(const InstallRequest& request) {
  const std::string collect = fmt::format(
      "{4}for d in {0}/sweeps/*; do [ -e $d/sweep.json ] || {1} sweep --collect $d --state {0}/state --history {3}; "
      "done; {2}",
      request.folder, request.assay, judge_words(request), history_of(request), folder_words(request));
  ordered_json container = container_of(request, "collect", collect);
  if (history_of(request).starts_with(request.folder + "/")) return pod_of(ordered_json::array({container}));
  const std::string mount = std::filesystem::path(request.history).parent_path();
  container["volumeMounts"].push_back({{"name", "history"}, {"mountPath", mount}});
  ordered_json pod = pod_of(ordered_json::array({container}));
  pod["volumes"].push_back({{"name", "history"}, {"persistentVolumeClaim", {{"claimName", "assay-history"}}}});
  return pod;
}

/// A CronJob at `time`, "01:00", of which no two run at the same time.
ordered_json cron_job(const InstallRequest& request, const char* name, const std::string& time, ordered_json job,
                      const ordered_json& pod) {
  const int hour = std::stoi(time.substr(0, 2)), minute = std::stoi(time.substr(3, 2));
  job["template"] = {{"metadata", {{"labels", {{"app", name}}}}}, {"spec", pod}};
  return {{"apiVersion", "batch/v1"},
          {"kind", "CronJob"},
          {"metadata", {{"name", name}, {"namespace", request.kube_namespace}}},
          {"spec",
           {{"schedule", fmt::format("{} {} * * *", minute, hour)},
            {"concurrencyPolicy", "Forbid"},
            {"startingDeadlineSeconds", 1800},
            {"jobTemplate", {{"spec", std::move(job)}}}}}};
}

/// The pods of one night: each takes all GPUs of a node, and no two are on one node.
ordered_json sweep_pod(const InstallRequest& request) {
  const std::string out = request.folder + "/sweeps/$JOB_NAME";
  // The first pod makes the due list; the others wait for it.
  ordered_json init = container_of(request, "prepare",
                                   fmt::format("[ -e {0}/due.json ] || {1} || for i in $(seq 60); do [ -e {0}/due.json "
                                               "] && exit 0; sleep 1; done; [ -e {0}/due.json ]",
                                               out, sweep_words(request, out, " --prepare")));
  // The node's result is in its visit.json: a pod that fails would end all others of the Job.
  ordered_json worker = container_of(
      request, "sweep",
      fmt::format("{} sweep --worker {} & p=$!; trap \"kill $p\" TERM; wait $p; wait $p; exit 0", request.assay, out));
  init["env"].push_back(job_name());
  worker["env"].push_back(job_name());
  worker["securityContext"] = {{"privileged", true}};
  if (request.gpus > 0) worker["resources"] = {{"limits", {{request.gpu_resource, request.gpus}}}};
  const ordered_json other = {{"labelSelector", {{"matchLabels", {{"app", "assay-sweep"}}}}},
                              {"topologyKey", "kubernetes.io/hostname"}};
  ordered_json pod = pod_of(ordered_json::array({worker}));
  pod["priorityClassName"] = "assay-sweep";
  pod["affinity"] = {
      {"podAntiAffinity", {{"requiredDuringSchedulingIgnoredDuringExecution", ordered_json::array({other})}}}};
  pod["tolerations"] = ordered_json::array({{{"key", "assay.dev/drift"}, {"operator", "Exists"}}});
  pod["initContainers"] = ordered_json::array({init});
  return pod;
}

Files cron_files(const InstallRequest& request) {
  const ordered_json job = {{"completions", request.nodes},
                            {"parallelism", request.nodes},
                            {"completionMode", "Indexed"},
                            {"backoffLimit", 0},
                            {"activeDeadlineSeconds", static_cast<int>(std::ceil(request.budget_s)) + kLongestWait_s}};
  const ordered_json priority = {
      {"apiVersion", "scheduling.k8s.io/v1"},  {"kind", "PriorityClass"},
      {"metadata", {{"name", "assay-sweep"}}}, {"value", -1000},
      {"preemptionPolicy", "Never"},           {"description", "nightly sweeps of assay give way to everything"}};
  return {
      {"assay-cronjob.json", cron_job(request, "assay-sweep", request.at, job, sweep_pod(request)).dump(2) + "\n"},
      {"assay-collect.json",
       cron_job(request, "assay-collect", request.until, {{"backoffLimit", 0}}, collect_pod(request)).dump(2) + "\n"},
      {"assay-priority.json", priority.dump(2) + "\n"}};
}

Files npd_files(const InstallRequest& request) {
  const ordered_json plugin = {
      {"plugin", "custom"},
      {"pluginConfig",
       {{"invoke_interval", fmt::format("{}s", kPluginInterval_s)},
        {"timeout", fmt::format("{}s", kPluginTimeout_s)},
        {"max_output_length", kLongestVerdict},
        {"concurrency", 1},
        {"enable_message_change_based_condition_update", true}}},
      {"source", "assay"},
      {"conditions",
       ordered_json::array(
           {{{"type", "AssayDrift"}, {"reason", "AssayHealthy"}, {"message", "assay sees no drift of this node"}}})},
      {"rules", ordered_json::array({{{"type", "permanent"},
                                      {"condition", "AssayDrift"},
                                      {"reason", "AssayFlagged"},
                                      {"path", "/usr/local/lib/assay/assay-verdict.sh"}}})}};
  return {{"assay-plugin.json", plugin.dump(2) + "\n"}, {"assay-verdict.sh", reader_script(request)}};
}

}  // namespace

std::string history_of(const InstallRequest& request) {
  return request.history.empty() ? request.folder + "/history.db" : request.history;
}

std::expected<Files, InputError> install_files(InstallKind kind, const InstallRequest& request) {
  if (auto problem = check(request)) return std::unexpected(*problem);
  switch (kind) {
    case InstallKind::timer:
      return timer_files(request);
    case InstallKind::slurm:
      return slurm_files(request);
    case InstallKind::cron:
      return cron_files(request);
    case InstallKind::npd:
      break;
  }
  return npd_files(request);
}

}  // namespace assay::sweep
