// Words for Slurm, and the files of `assay install`.
#include <algorithm>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "orchestrator/sweep/install_files.h"
#include "orchestrator/sweep/worker_jobs.h"

namespace assay::sweep {
namespace {

WorkerJob job() {
  return {.script = "/s/worker.sh", .log = "/s/%j.log", .exclude = {"n02", "n03"}, .target = "", .budget_s = 300};
}

bool has(const std::vector<std::string>& words, const std::string& word) {
  return std::ranges::find(words, word) != words.end();
}

InstallRequest request() {
  return {.assay = "/opt/assay/bin/assay",
          .site = "/etc/assay/site.json",
          .profile = "nightly-5m",
          .budget = "5min",
          .budget_s = 300,
          .at = "01:30",
          .until = "06:00",
          .folder = "/var/lib/assay",
          .image = "assay:0.1.0",
          .kube_namespace = "lab",
          .gpus = 8,
          .nodes = 3};
}

}  // namespace

TEST(WorkerJobs, a_job_takes_a_whole_node_gives_way_to_all_others_and_is_not_begun_twice) {
  const auto words = sbatch_arguments(job(), {.partition = "gpu"});
  ASSERT_TRUE(words);
  for (const char* word : {"--nodes=1", "--exclusive", "--mem=0", "--no-requeue", "--nice=10000", "--time=7",
                           "--partition=gpu", "--exclude=n02,n03"})
    EXPECT_TRUE(has(*words, word)) << word;
  EXPECT_EQ(words->back(), "/s/worker.sh");
}

TEST(WorkerJobs, a_targeted_job_names_its_node_and_excludes_none) {
  auto one = job();
  one.target = "n07";
  const auto words = sbatch_arguments(one, {});
  EXPECT_TRUE(has(*words, "--nodelist=n07"));
  EXPECT_FALSE(std::ranges::any_of(*words, [](const auto& word) { return word.starts_with("--exclude"); }));
}

TEST(WorkerJobs, a_job_of_a_pair_takes_both_whole_nodes_and_names_the_pair_to_its_worker) {
  auto one = job();
  one.pair = {"n04", "n07"};
  const auto words = sbatch_arguments(one, {});
  ASSERT_TRUE(words);
  for (const char* word : {"--nodes=2", "--ntasks=2", "--ntasks-per-node=1", "--exclusive", "--mem=0", "--no-requeue",
                           "--nice=10000", "--nodelist=n04,n07", "--time=7"})
    EXPECT_TRUE(has(*words, word)) << word;
  EXPECT_FALSE(has(*words, "--nodes=1"));
  EXPECT_FALSE(std::ranges::any_of(*words, [](const auto& word) { return word.starts_with("--exclude"); }));
  EXPECT_EQ(std::vector<std::string>(words->end() - 3, words->end()),
            (std::vector<std::string>{"/s/worker.sh", "--pair", "n04,n07"}));
  EXPECT_NE(worker_script("/bin/assay", "/s")->find("exec /bin/assay sweep --worker /s \"$@\"\n"), std::string::npos);
}

TEST(WorkerJobs, no_option_of_a_site_or_path_gets_past_the_words) {
  EXPECT_FALSE(sbatch_arguments(job(), {.partition = "gpu --wrap=id"}));
  auto one = job();
  one.script = "/s/$(id)";
  EXPECT_FALSE(sbatch_arguments(one, {}));
  one = job();
  one.exclude = {"n01 --wrap"};
  EXPECT_FALSE(sbatch_arguments(one, {}));
  one = job();
  one.pair = {"n04", "n07 --wrap=id"};
  EXPECT_FALSE(sbatch_arguments(one, {}));
  EXPECT_FALSE(worker_script("/bin/assay", "/s; rm -r /"));
}

TEST(WorkerJobs, there_are_at_most_200_jobs_and_at_least_one) {
  EXPECT_EQ(jobs_for(1), 1U);
  EXPECT_EQ(jobs_for(8), 2U);
  EXPECT_EQ(jobs_for(10'000), 200U);
}

TEST(WorkerJobs, ids_and_states_are_read_and_anything_else_is_passed_over) {
  EXPECT_EQ(job_id_in("4711\n"), "4711");
  EXPECT_EQ(job_id_in("4711;cluster\n"), "4711");
  EXPECT_EQ(job_id_in("Submitted batch job 4711"), std::nullopt);
  EXPECT_EQ(jobs_in("12 PENDING\nslurm: error\n13 RUNNING\n"),
            (std::map<std::string, std::string>{{"12", "PENDING"}, {"13", "RUNNING"}}));
}

TEST(InstallFiles, no_path_gets_past_the_units) {
  auto one = request();
  one.folder = "/var/lib/assay'; id; '";
  EXPECT_FALSE(install_files(InstallKind::timer, one));
  one = request();
  one.at = "25:00";
  EXPECT_EQ(install_files(InstallKind::timer, one).error().where, "--at, --until");
}

TEST(InstallFiles, a_cron_job_takes_all_gpus_of_a_node_and_never_preempts) {
  const auto files = install_files(InstallKind::cron, request());
  ASSERT_TRUE(files);
  const auto cron = nlohmann::json::parse(files->at("assay-cronjob.json"));
  EXPECT_EQ(cron["spec"]["schedule"], "30 1 * * *");
  EXPECT_EQ(cron["spec"]["concurrencyPolicy"], "Forbid");
  const auto& pod = cron["spec"]["jobTemplate"]["spec"]["template"]["spec"];
  EXPECT_EQ(pod["containers"][0]["resources"]["limits"]["nvidia.com/gpu"], 8);
  InstallRequest amd = request();
  amd.gpu_resource = "amd.com/gpu";
  EXPECT_NE(install_files(InstallKind::cron, amd)->at("assay-cronjob.json").find("\"amd.com/gpu\": 8"),
            std::string::npos);
  amd.gpu_resource = "gpu";
  EXPECT_EQ(install_files(InstallKind::cron, amd).error().where, "--gpu-resource");
  const auto priority = nlohmann::json::parse(files->at("assay-priority.json"));
  EXPECT_LT(priority["value"], 0);
  EXPECT_EQ(priority["preemptionPolicy"], "Never");
  const auto collect = nlohmann::json::parse(files->at("assay-collect.json"));
  EXPECT_EQ(collect["spec"]["schedule"], "0 6 * * *");
}

TEST(InstallFiles, a_database_of_its_own_place_is_named_to_every_command_and_its_folder_is_made) {
  auto one = request();
  EXPECT_EQ(history_of(one), "/var/lib/assay/history.db");
  EXPECT_EQ(install_files(InstallKind::slurm, one)->at("assay-sweep.sh").find("mkdir"), std::string::npos);
  one.history = "/local/nights/h.db";
  for (const auto& [kind, file] :
       {std::pair(InstallKind::timer, "assay-sweep.service"), std::pair(InstallKind::slurm, "assay-sweep.sh")}) {
    const auto text = install_files(kind, one)->at(file);
    for (const char* word :
         {"mkdir -p /local/nights; report=", "--state /var/lib/assay/state --history /local/nights/h.db ",
          "drift judge --db /local/nights/h.db -o /var/lib/assay/drift.json"})
      EXPECT_NE(text.find(word), std::string::npos) << word << " in " << text;
    EXPECT_EQ(text.find("history.db"), std::string::npos) << text;
  }
  one.history = "h.db; id";
  EXPECT_EQ(install_files(InstallKind::slurm, one).error().where, "--history");
}

TEST(InstallFiles, a_cron_job_has_a_volume_for_a_database_outside_of_the_shared_folder) {
  auto one = request();
  const auto pod = [&] {
    const auto collect = nlohmann::json::parse(install_files(InstallKind::cron, one)->at("assay-collect.json"));
    return collect["spec"]["jobTemplate"]["spec"]["template"]["spec"];
  };
  EXPECT_EQ(pod()["volumes"].size(), 1U);
  one.history = "/local/nights/h.db";
  EXPECT_EQ(pod()["volumes"][1]["persistentVolumeClaim"]["claimName"], "assay-history");
  const auto container = pod()["containers"][0];
  EXPECT_EQ(container["volumeMounts"][1]["mountPath"], "/local/nights");
  const auto command = container["command"][2].get<std::string>();
  EXPECT_NE(command.find("--state /var/lib/assay/state --history /local/nights/h.db; done;"), std::string::npos);
  EXPECT_NE(command.find("drift judge --db /local/nights/h.db"), std::string::npos);
}

TEST(InstallFiles, a_health_check_reads_the_cached_verdict_and_measures_nothing) {
  const auto slurm = install_files(InstallKind::slurm, request());
  EXPECT_NE(slurm->at("assay-healthcheck.sh").find("verdict --file /run/assay/verdict.json"), std::string::npos);
  EXPECT_EQ(slurm->at("assay-healthcheck.sh").find(" sweep "), std::string::npos);
  const auto plugin = nlohmann::json::parse(install_files(InstallKind::npd, request())->at("assay-plugin.json"));
  EXPECT_EQ(plugin["conditions"][0]["type"], "AssayDrift");
  EXPECT_EQ(plugin["pluginConfig"]["max_output_length"], 80);
}

}  // namespace assay::sweep
