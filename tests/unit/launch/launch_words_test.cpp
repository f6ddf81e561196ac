// launch_words: what srun, sinfo and kubectl are called with, and the words with which agents report.
#include <algorithm>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "orchestrator/launch/kubernetes.h"
#include "orchestrator/launch/slurm_arguments.h"
#include "orchestrator/launch/ssh.h"
#include "orchestrator/wire/protocol.h"

namespace assay::launch {
namespace {

const std::string kPin(64, 'a');
const std::string kToken(64, '7');

bool contains(const std::vector<std::string>& words, const std::string& word) {
  return std::ranges::find(words, word) != words.end();
}

SrunRequest two_nodes() {
  return {.agent = "/opt/assay/bin/assay-node",
          .nodes = {"n01", "n02"},
          .directory = "/scratch/assay",
          .endpoints = {"10.0.0.1:4711", "[fd00::1]:4711"},
          .pin = kPin};
}

site::SlurmOptions options() {
  site::SlurmOptions options{.partition = "gpu", .account = "lab", .time = "2:00:00", .gres = "gpu:8"};
  options.bcast_directory = "/tmp";
  return options;
}

TEST(LaunchSlurm, one_srun_starts_one_agent_on_each_node) {
  const auto argv = srun_arguments(two_nodes(), options(), "srun").value();
  for (const char* word : {"--nodes=2", "--ntasks=2", "--ntasks-per-node=1", "--nodelist=n01,n02", "--no-kill",
                           "--kill-on-bad-exit=0", "--wait=0", "--cpu-bind=none", "--export=NONE", "--partition=gpu",
                           "--account=lab", "--time=2:00:00", "--gres=gpu:8", "--exclusive", "--bcast=/tmp/"}) {
    EXPECT_TRUE(contains(argv, word)) << word;
  }
  const auto program = std::ranges::find(argv, "--");
  const std::vector<std::string> agent(program + 1, argv.end());
  EXPECT_EQ(agent, (std::vector<std::string>{"/opt/assay/bin/assay-node", "--directory", "/scratch/assay", "--pin",
                                             kPin, "--dial", "10.0.0.1:4711", "--dial", "[fd00::1]:4711", "--patience",
                                             "121", "--remove-self"}));
}

TEST(LaunchSlurm, inside_an_allocation_it_is_a_step_and_asks_for_none) {
  SrunRequest request = two_nodes();
  request.inside = true;
  const auto argv = srun_arguments(request, options(), "srun").value();
  EXPECT_TRUE(contains(argv, "--overlap"));
  EXPECT_TRUE(contains(argv, "--gres=gpu:8"));  // a step that names none gets none
  for (const char* word : {"--exclusive", "--partition=gpu", "--account=lab", "--time=2:00:00"})
    EXPECT_FALSE(contains(argv, word)) << word;
}

TEST(LaunchSlurm, a_shared_agent_is_neither_copied_nor_removed) {
  site::SlurmOptions shared = options();
  shared.agent = "/shared/assay/bin/assay-node";
  const auto argv = srun_arguments(two_nodes(), shared, "srun").value();
  EXPECT_TRUE(contains(argv, "/shared/assay/bin/assay-node"));
  EXPECT_FALSE(contains(argv, "--remove-self"));
  EXPECT_TRUE(std::ranges::none_of(argv, [](const std::string& word) { return word.starts_with("--bcast"); }));
}

TEST(LaunchSlurm, words_of_another_alphabet_are_refused) {
  for (const char* node : {"", "-x", "n1,n2", "n[1-3]", "n 1", "$(id)"}) {
    SrunRequest request = two_nodes();
    request.nodes = {node};
    EXPECT_FALSE(srun_arguments(request, options(), "srun")) << node;
  }
  SrunRequest request = two_nodes();
  request.directory = "/tmp/$(id)";
  EXPECT_FALSE(srun_arguments(request, options(), "srun"));
  site::SlurmOptions wrong = options();
  wrong.partition = "gpu --uid=0";
  EXPECT_EQ(srun_arguments(two_nodes(), wrong, "srun").error(),
            "slurm.partition 'gpu --uid=0' has a character that is not allowed");
  wrong = options();
  wrong.gres = "gpu:8 x";
  EXPECT_FALSE(srun_arguments(two_nodes(), wrong, "srun"));
  wrong = options();
  wrong.agent = "assay-node";
  EXPECT_FALSE(srun_arguments(two_nodes(), wrong, "srun"));
}

TEST(LaunchSlurm, nodes_that_slurm_cannot_use_are_told_from_busy_ones) {
  const auto found = unusable_nodes(
      "n01 idle\nn02 down\nn03 idle*\nn04 drained\nn05 draining\nn06 allocated\nn07 mixed\nn08 unknown\nn09 "
      "down*\n\nn10\n");
  EXPECT_EQ(found, (std::map<std::string, std::string>{
                       {"n02", "down"}, {"n03", "idle*"}, {"n04", "drained"}, {"n08", "unknown"}, {"n09", "down*"}}));
}

TEST(Dial, a_greeting_is_one_line_and_nothing_else_is_one) {
  const std::string line = wire::to_line({.token = kToken, .node = "n01"});
  EXPECT_EQ(line, "assay-dial/1 " + kToken + " n01\n");
  const auto back = wire::greeting_from(line.substr(0, line.size() - 1));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->token, kToken);
  EXPECT_EQ(back->node, "n01");
  for (const std::string& wrong :
       {std::string(), std::string("GET / HTTP/1.1"), "assay-dial/2 " + kToken + " n01", "assay-dial/1 " + kToken,
        "assay-dial/1 " + kToken + " ", "assay-dial/1 " + kToken.substr(1) + " n01", "assay-dial/1 " + kToken + " -n01",
        "assay-dial/1 " + kToken + " n01 x", "assay-dial/1 " + std::string(64, 'G') + " n01"}) {
    EXPECT_FALSE(wire::greeting_from(wrong)) << wrong;
  }
}

site::Node example_pod() {
  return {.name = "n01",
          .launcher = site::Launcher::kubernetes,
          .address = "n01",
          .directory = "/var/tmp/assay",
          .pod = "assay-x7k2p",
          .kube_namespace = "lab",
          .container = "assay",
          .context = "admin@hall-2"};
}

TEST(LaunchKubernetes, kubectl_executes_one_script_in_one_pod) {
  EXPECT_EQ(kubectl_arguments(example_pod(), "kubectl", "true").value(),
            (std::vector<std::string>{"kubectl", "--context=admin@hall-2", "--namespace=lab", "exec", "-i",
                                      "assay-x7k2p", "--container=assay", "--", "/bin/sh", "-c", "true"}));
  site::Node bare = example_pod();
  bare.kube_namespace = bare.container = bare.context = "";
  EXPECT_EQ(kubectl_arguments(bare, "kubectl", "true").value(),
            (std::vector<std::string>{"kubectl", "exec", "-i", "assay-x7k2p", "--", "/bin/sh", "-c", "true"}));
}

TEST(LaunchKubernetes, names_that_kubernetes_does_not_have_are_refused) {
  for (const char* pod : {"", "-o", "a b", "A", "pod/x", "x;id"}) {
    site::Node node = example_pod();
    node.pod = pod;
    EXPECT_FALSE(kubectl_arguments(node, "kubectl", "true")) << pod;
  }
  site::Node node = example_pod();
  node.kube_namespace = "lab_1";
  EXPECT_FALSE(kubectl_arguments(node, "kubectl", "true"));
  node = example_pod();
  node.container = "x y";
  EXPECT_FALSE(kubectl_arguments(node, "kubectl", "true"));
  node = example_pod();
  node.context = "-x";
  EXPECT_FALSE(kubectl_arguments(node, "kubectl", "true"));
}

TEST(LaunchKubernetes, the_last_words_tell_the_kind_of_failure) {
  EXPECT_EQ(kubectl_failure("Error from server (NotFound): pods \"x\" not found\n", 1).kind,
            LaunchFailure::unreachable);
  EXPECT_EQ(kubectl_failure("Error from server (Forbidden): pods \"x\" is forbidden\n", 1).kind,
            LaunchFailure::refused);
  EXPECT_EQ(
      kubectl_failure(
          "The connection to the server localhost:8080 was refused - did you specify the right host or port?\n", 1)
          .kind,
      LaunchFailure::unreachable);
  for (const char* gone : {"error: cannot exec into a container in a completed pod; current phase is Failed\n",
                           "Error from server: error dialing backend: dial tcp 10.0.0.3:10250: no route to host\n"})
    EXPECT_EQ(kubectl_failure(gone, 1).kind, LaunchFailure::unreachable) << gone;
  EXPECT_EQ(kubectl_failure("", 73).reason, "kubectl, or the agent in the pod, ended with exit code 73");
  EXPECT_EQ(kubectl_failure("", std::nullopt).kind, LaunchFailure::unreachable);
}

const AgentPods kAgentPods{.image = "registry.lab/assay:1", .kube_namespace = "lab", .directory = "/scratch/assay"};

TEST(LaunchKubernetes, a_manifest_is_a_daemon_set_that_keeps_the_nodes_own_name) {
  const auto manifest = nlohmann::json::parse(kubernetes_manifest(kAgentPods).value());
  EXPECT_EQ(manifest.at("kind"), "DaemonSet");
  const auto& pod = manifest.at("spec").at("template").at("spec");
  EXPECT_EQ(pod.at("hostNetwork"), true);
  EXPECT_EQ(pod.at("tolerations"), nlohmann::json::parse(R"([{"operator": "Exists"}])"));
  EXPECT_EQ(pod.at("containers").at(0).at("image"), "registry.lab/assay:1");
  EXPECT_EQ(pod.at("containers").at(0).at("command").at(0), "/bin/sh");
  EXPECT_EQ(pod.at("containers").at(0).at("volumeMounts").at(0).at("mountPath"), "/scratch/assay");
  EXPECT_EQ(pod.at("volumes").at(0).at("hostPath").at("path"), "/scratch/assay");
  EXPECT_EQ(manifest.at("spec").at("selector").at("matchLabels"),
            manifest.at("spec").at("template").at("metadata").at("labels"));
}

TEST(LaunchKubernetes, a_job_has_a_pod_for_each_node_and_a_job_set_has_that_job) {
  AgentPods pods = kAgentPods;
  pods.workload = Workload::job;
  pods.nodes = 4;
  pods.gpus = 8;
  pods.queue = "hall-2";
  const auto job = nlohmann::json::parse(kubernetes_manifest(pods).value());
  EXPECT_EQ(job.at("metadata").at("labels").at("kueue.x-k8s.io/queue-name"), "hall-2");
  EXPECT_EQ(job.at("spec").at("suspend"), true);
  EXPECT_EQ(job.at("spec").at("completionMode"), "Indexed");
  EXPECT_EQ(job.at("spec").at("completions"), 4);
  EXPECT_EQ(job.at("spec").at("parallelism"), 4);
  const auto& pod = job.at("spec").at("template").at("spec");
  EXPECT_EQ(pod.at("restartPolicy"), "Never");
  EXPECT_EQ(pod.at("containers").at(0).at("resources").at("limits"), nlohmann::json::parse(R"({"nvidia.com/gpu": 8})"));
  EXPECT_EQ(pod.at("tolerations"), nlohmann::json::parse(R"([{"operator": "Exists", "key": "assay.dev/drift"},
                                                             {"key": "nvidia.com/gpu", "operator": "Exists"}])"));
  const auto& others = pod.at("affinity").at("podAntiAffinity").at("requiredDuringSchedulingIgnoredDuringExecution");
  EXPECT_EQ(others.at(0).at("labelSelector").at("matchLabels"),
            job.at("spec").at("template").at("metadata").at("labels"));
  pods.workload = Workload::job_set;
  const auto set = nlohmann::json::parse(kubernetes_manifest(pods).value());
  EXPECT_EQ(set.at("spec").at("suspend"), true);
  auto same = job.at("spec");
  same.erase("suspend");
  EXPECT_EQ(set.at("spec").at("replicatedJobs").at(0).at("template").at("spec"), same);
}

TEST(LaunchKubernetes, a_manifest_with_a_wrong_name_or_number_is_refused) {
  const auto reason = [](auto change) {
    AgentPods pods = kAgentPods;
    change(pods);
    const auto made = kubernetes_manifest(pods);
    return made ? std::string("none") : made.error();
  };
  EXPECT_EQ(reason([](AgentPods&) {}), "none");
  EXPECT_EQ(reason([](AgentPods& pods) { pods.image = "x y"; }), "image 'x y' is not a valid image name");
  EXPECT_EQ(reason([](AgentPods& pods) { pods.kube_namespace = "a_1"; }),
            "namespace 'a_1' is not a valid namespace name");
  EXPECT_EQ(reason([](AgentPods& pods) { pods.queue = "-q"; }), "queue '-q' is not a valid queue name");
  EXPECT_EQ(reason([](AgentPods& pods) { pods.gpu_resource = "a b"; }), "resource 'a b' is not a valid resource name");
  EXPECT_EQ(reason([](AgentPods& pods) { pods.nodes = 4; }),
            "a DaemonSet has a pod on every node: nodes, gpus and queue are of job and jobset");
  EXPECT_EQ(reason([](AgentPods& pods) { pods.workload = Workload::job_set; }), "a jobset needs its number of nodes");
}

TEST(LaunchSsh, a_jump_host_is_pinned_and_asked_by_the_same_rules) {
  const site::Node node{.name = "n01",
                        .launcher = site::Launcher::ssh,
                        .address = "10.0.0.1",
                        .port = 2222,
                        .host_key = "ssh-ed25519 AAAA",
                        .directory = "/var/tmp/assay",
                        .jump = site::JumpHost{.address = "login.lab",
                                               .port = 22,
                                               .user = "bench",
                                               .identity_file = "/keys/jump",
                                               .host_key = "ssh-ed25519 BBBB"}};
  EXPECT_EQ(known_hosts_lines(node).value(),
            "assay-pinned-node ssh-ed25519 AAAA\nassay-pinned-jump ssh-ed25519 BBBB\n");
  const auto argv = ssh_arguments(node, LaunchOptions{.agent = ""}, {.node = "/k", .jump = "/j"}, "true").value();
  const auto proxy =
      std::ranges::find_if(argv, [](const std::string& word) { return word.starts_with("ProxyCommand="); });
  ASSERT_NE(proxy, argv.end());
  EXPECT_TRUE(proxy->starts_with("ProxyCommand=ssh -F none -T -a -x -o BatchMode=yes -o StrictHostKeyChecking=yes "))
      << *proxy;
  EXPECT_TRUE(
      proxy->ends_with(" -o HostKeyAlias=assay-pinned-jump -o IdentitiesOnly=yes -i /keys/jump -p 22 -l bench -W "
                       "10.0.0.1:2222 -- login.lab"))
      << *proxy;
  EXPECT_NE(proxy->find(" -o UserKnownHostsFile=/j "), std::string::npos) << *proxy;
  EXPECT_EQ(proxy->find_first_of("$`;|&'\"\\%~"), std::string::npos) << *proxy;  // it goes through a shell
}

TEST(LaunchSsh, a_jump_host_of_another_alphabet_is_refused) {
  site::Node node{.name = "n01",
                  .launcher = site::Launcher::ssh,
                  .address = "10.0.0.1",
                  .directory = "/var/tmp/assay",
                  .jump = site::JumpHost{.address = "x;id"}};
  EXPECT_FALSE(ssh_arguments(node, LaunchOptions{.agent = ""}, {.node = "/k", .jump = "/j"}, "true"));
  node.jump = site::JumpHost{.address = "login.lab", .identity_file = "/keys/$(id)"};
  EXPECT_EQ(ssh_arguments(node, LaunchOptions{.agent = ""}, {.node = "/k", .jump = "/j"}, "true").error(),
            "jump: identity_file '/keys/$(id)' has a character that ssh would expand");
  node.jump = site::JumpHost{.address = "login.lab", .host_key = "x"};
  EXPECT_FALSE(known_hosts_lines(node));
}

}  // namespace
}  // namespace assay::launch
