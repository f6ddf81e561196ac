// site: reading the launchers' fields, site files, and what differs between nodes.
#include "orchestrator/site/site.h"

#include <filesystem>
#include <fstream>

#include <stdlib.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "orchestrator/site/check.h"
#include "orchestrator/site/site_file.h"
#include "probes/core/description.h"

namespace assay::site {
namespace {

using nlohmann::json;

std::string error_of(const std::string& nodes, const std::string& more = "") {
  const auto site =
      read_site(R"({"schema": "assay.site/1", "name": "s", )" + more + R"("nodes": )" + nodes + "}", "s.json");
  return site ? "accepted" : site.error().text();
}

TEST(Site, nodes_of_slurm_are_all_of_one_machine_and_others_may_be_mixed) {
  EXPECT_EQ(error_of(R"([{"name": "a", "launcher": "ssh", "machine": "aarch64"}, {"name": "b", "launcher": "ssh"}])"),
            "accepted");
  EXPECT_EQ(error_of(R"([{"name": "a", "launcher": "slurm", "machine": "aarch64"},
                         {"name": "b", "launcher": "slurm", "machine": "aarch64"}])"),
            "accepted");
  const std::string mixed = error_of(R"([{"name": "a", "launcher": "slurm", "machine": "aarch64"},
                                         {"name": "b", "launcher": "slurm"}])");
  EXPECT_NE(mixed.find("nodes[1].machine: b has no machine and a has aarch64"), std::string::npos) << mixed;
  EXPECT_NE(mixed.find("write a site for each kind"), std::string::npos) << mixed;
  EXPECT_NE(error_of(R"([{"name": "a", "launcher": "ssh", "machine": "sparc"}])").find("machine"), std::string::npos);
}

TEST(Site, parts_are_stated_by_number_or_by_name) {
  const auto site = read_site(R"({"schema": "assay.site/1", "name": "s", "nodes": [{"name": "n1", "launcher": "ssh",
      "parts": {"gpu": 8, "gpu_instance": 56, "nic": ["mlx5_0", "0000:18:00.0"]}}]})",
                              "s.json");
  ASSERT_TRUE(site) << site.error().text();
  EXPECT_EQ(site->nodes[0].parts, (std::map<std::string, int>{{"gpu", 8}, {"gpu_instance", 56}, {"nic", 2}}));
  EXPECT_EQ(site->nodes[0].part_names.at("nic"), (std::vector<std::string>{"mlx5_0", "0000:18:00.0"}));
  EXPECT_EQ(to_json(read_site(to_json(*site).dump(), "again").value()), to_json(*site));
  for (const char* bad :
       {R"({"nic": []})", R"({"nic": ["a", "a"]})", R"({"gpu_instance": ["MIG-a"]})", R"({"nic": ["a b"]})"})
    EXPECT_NE(error_of(R"([{"name": "n1", "launcher": "ssh", "parts": )" + std::string(bad) + "}]"), "accepted") << bad;
}

TEST(Site, every_launcher_comes_back_from_its_own_document) {
  const char* const text = R"({"schema": "assay.site/1", "name": "s",
    "slurm": {"partition": "gpu", "account": "lab", "gres": "gpu:8", "time": "2:00:00", "wait_s": 900, "port": 28699},
    "nodes": [{"name": "n1", "launcher": "slurm"},
              {"name": "n2", "launcher": "kubernetes", "pod": "assay-x7", "namespace": "lab", "container": "assay", "context": "admin@hall"},
              {"name": "n3", "launcher": "kubernetes"},
              {"name": "n4", "launcher": "ssh", "jump": {"address": "login", "user": "bench", "host_key": "ssh-ed25519 AAAA"}}]})";
  const auto site = read_site(text, "s.json");
  ASSERT_TRUE(site) << site.error().text();
  EXPECT_EQ(site->slurm.partition, "gpu");
  EXPECT_EQ(site->slurm.wait.count, 900);
  EXPECT_EQ(site->slurm.bcast_directory, "/tmp");
  EXPECT_EQ(site->nodes[2].pod, "n3");
  EXPECT_EQ(site->nodes[3].jump->address, "login");
  EXPECT_EQ(site->nodes[3].jump->port, 22);
  const auto again = read_site(to_json(*site).dump(), "again");
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(to_json(*again), to_json(*site));
}

// Worker jobs of a sweep go to nodes that are measured by ssh, too; the site is written once and read back by each job.
TEST(Site, options_of_slurm_are_kept_where_nodes_are_reached_by_ssh) {
  const auto text = [](const char* slurm) {
    return std::string(R"({"schema": "assay.site/1", "name": "s", "known_hosts": "/k", )") + slurm +
           R"("nodes": [{"name": "n1", "launcher": "ssh", "directory": "/d"}]})";
  };
  const auto site = read_site(text(R"("slurm": {"partition": "night", "account": "ops"}, )"), "s.json");
  ASSERT_TRUE(site.has_value()) << site.error().text();
  const auto again = read_site(to_json(*site).dump(), "again");
  ASSERT_TRUE(again.has_value()) << again.error().text();
  EXPECT_EQ(again->slurm.partition, "night");
  EXPECT_EQ(again->slurm.account, "ops");
  EXPECT_FALSE(to_json(*read_site(text(""), "s.json")).contains("slurm"));
  EXPECT_FALSE(to_json(Site{.name = "made without a file"}).contains("slurm"));
}

TEST(Site, a_field_of_another_launcher_is_refused) {
  EXPECT_EQ(error_of(R"([{"name": "n1", "launcher": "ssh", "pod": "x"}])"),
            "s.json: nodes[0].pod: is not a field of launcher ssh\nhint: it belongs to nodes of launcher kubernetes");
  EXPECT_EQ(error_of(R"([{"name": "n1", "launcher": "slurm", "port": 22}])"),
            "s.json: nodes[0].port: is not a field of launcher slurm\nhint: it belongs to nodes of launcher ssh");
  EXPECT_EQ(error_of(R"([{"name": "n1", "launcher": "local", "jump": {"address": "login"}}])"),
            "s.json: nodes[0].jump: is not a field of launcher local\nhint: it belongs to nodes of launcher ssh");
}

TEST(Site, words_that_srun_or_kubectl_could_misread_are_refused) {
  EXPECT_NE(
      error_of(R"([{"name": "n1", "launcher": "slurm"}])", R"("slurm": {"partition": "-x"}, )").find("slurm.partition"),
      std::string::npos);
  EXPECT_NE(
      error_of(R"([{"name": "n1", "launcher": "slurm"}])", R"("slurm": {"options": ["--uid=0"]}, )").find("'options'"),
      std::string::npos);
  EXPECT_NE(
      error_of(R"([{"name": "n1", "launcher": "slurm"}])", R"("slurm": {"agent": "assay-node"}, )").find("slurm.agent"),
      std::string::npos);
  EXPECT_NE(error_of(R"([{"name": "n1", "launcher": "slurm"}])", R"("slurm": {"wait_s": 0}, )").find("slurm.wait_s"),
            std::string::npos);
  EXPECT_NE(error_of(R"([{"name": "n1", "launcher": "kubernetes", "pod": "A b"}])").find("nodes[0].pod"),
            std::string::npos);
  EXPECT_NE(error_of(R"([{"name": "n1", "launcher": "kubernetes", "context": "-x"}])").find("nodes[0].context"),
            std::string::npos);
  EXPECT_NE(error_of(R"([{"name": "n1", "launcher": "ssh", "jump": {"address": "-oProxyCommand=x"}}])")
                .find("nodes[0].jump.address"),
            std::string::npos);
}

TEST(Site, one_pod_under_two_names_is_one_machine) {
  EXPECT_NE(
      error_of(
          R"([{"name": "n1", "launcher": "kubernetes", "pod": "p"}, {"name": "n2", "launcher": "kubernetes", "pod": "p"}])")
          .find("appears twice, under two names"),
      std::string::npos);
}

NodeAnswer answer(const std::string& node, std::map<std::string, std::string> facts,
                  std::optional<double> clock = 0.0) {
  return {.node = node, .facts = std::move(facts), .clock_offset_s = clock};
}

TEST(SiteCheck, the_node_that_is_unlike_the_others_is_named) {
  const SiteCheck check = compare_nodes(
      {answer("n1", {{"kernel", "6.1"}, {"gpus_total", "8"}}), answer("n2", {{"kernel", "6.1"}, {"gpus_total", "7"}}),
       answer("n3", {{"kernel", "6.1"}, {"gpus_total", "8"}, {"driver_version", "580"}})});
  EXPECT_FALSE(check.alike());
  EXPECT_EQ(check.same, (std::map<std::string, std::string>{{"kernel", "6.1"}}));
  EXPECT_EQ(check_text(check),
            "driver_version: 2 nodes absent; n3 580\ngpus_total: 2 nodes 8; n2 7\n3 of 3 nodes reached; 1 fact the "
            "same, 2 differ\n");
}

/// Values of nodes n01, n02, …, in their order.
std::map<std::string, std::string> by_node(const std::vector<std::string>& values) {
  std::map<std::string, std::string> all;
  for (const auto& value : values) all[fmt::format("n{:02}", all.size() + 1)] = value;
  return all;
}

std::string line_of(const std::string& fact, const std::map<std::string, std::string>& values) {
  const auto difference = difference_of(fact, values);
  return difference ? fmt::format("{}: {}", fact, difference_words(*difference, values.size())) : "alike";
}

TEST(SiteCheck, a_fact_that_differs_is_one_line_however_many_nodes_there_are) {
  std::vector<std::string> modes(32, "passthrough");
  EXPECT_EQ(line_of("iommu_mode", by_node(modes)), "alike");
  modes[6] = modes[11] = "translated";
  EXPECT_EQ(line_of("iommu_mode", by_node(modes)), "iommu_mode: 30 nodes passthrough; n07 and n12 translated");
  for (std::size_t i = 16; i < 24; ++i) modes[i] = "off";
  EXPECT_EQ(line_of("iommu_mode", by_node(modes)),
            "iommu_mode: 22 nodes passthrough; 8 nodes (n17, n18, ...) off; n07 and n12 translated");
  EXPECT_EQ(line_of("kernel", by_node({"6.1", "6.5"})), "kernel: n01 6.1; n02 6.5");
  EXPECT_EQ(line_of("nic max_read_request", by_node({"8 x 4096", "8 x 4096", "7 x 4096, 1 x 512"})),
            "nic max_read_request: 2 nodes \"8 x 4096\"; n03 \"7 x 4096, 1 x 512\"");
}

TEST(SiteCheck, of_long_values_a_line_has_what_differs_and_of_many_values_the_most_frequent) {
  std::string parameters;
  for (int i = 0; i < 20; ++i) parameters += fmt::format("Parameter{}=0 ", i);
  EXPECT_EQ(
      line_of("nvidia_parameters", by_node({parameters + "Peer=1", parameters + "Peer=1", parameters + "Peer=0"})),
      "nvidia_parameters: 2 nodes \"... Peer=1 ...\"; n03 \"... Peer=0 ...\"");
  // A difference behind the first hundreds of characters is one.
  EXPECT_EQ(line_of("nvidia_parameters", by_node({parameters, parameters, "absent"})),
            "nvidia_parameters: 2 nodes \"" + parameters.substr(0, 80) + " ...\"; n03 absent");
  std::vector<std::string> serials;
  for (int i = 0; i < 9; ++i) serials.push_back(fmt::format("s{}", i));
  EXPECT_EQ(line_of("serial", by_node(serials)),
            "serial: n01 s0; n02 s1; n03 s2; n04 s3; n05 s4; n06 s5; 3 nodes 3 other values");
}

TEST(SiteCheck, equal_machines_are_alike_whatever_their_loads_are) {
  const json host = {{"kernel", "6.1"}, {"cpus", 2}};
  std::vector<NodeAnswer> answers;
  for (int i = 1; i <= 2; ++i) {
    const std::string node = "n" + std::to_string(i);
    Record inventory;
    for (const auto& condition : common_conditions()) {
      if (condition.name == "clock_synchronised")
        inventory.conditions.push_back({.name = "clock_synchronised", .subject = {"node", node}, .value = true});
      else
        inventory.conditions.push_back(
            {.name = std::string(condition.name), .subject = {"node", node}, .value = 0.07 * i});
    }
    // A kernel that does not count the time of other machines reports it on one node alone.
    if (i == 2) std::erase_if(inventory.conditions, [](const Condition& one) { return one.name == "cpu_steal"; });
    answers.push_back(answer(node, facts_of(host, {inventory})));
  }
  const SiteCheck check = compare_nodes(answers);
  EXPECT_TRUE(check.alike()) << check_text(check);
  EXPECT_TRUE(check.same.contains("clock_synchronised"));
}

TEST(SiteCheck, without_a_majority_every_node_is_listed) {
  const SiteCheck check = compare_nodes({answer("n1", {{"kernel", "6.1"}}), answer("n2", {{"kernel", "6.5"}})});
  EXPECT_EQ(check_document(check).at("differences").dump(), R"([{"fact":"kernel","nodes":{"n1":"6.1","n2":"6.5"}}])");
}

TEST(SiteCheck, memory_may_differ_by_what_firmware_takes) {
  EXPECT_TRUE(compare_nodes({answer("n1", {{"memory", "1007.53 GiB"}}), answer("n2", {{"memory", "1007.41 GiB"}}),
                             answer("n3", {{"memory", "1007.47 GiB"}})})
                  .alike());
  EXPECT_FALSE(compare_nodes({answer("n1", {{"memory", "1007.53 GiB"}}), answer("n2", {{"memory", "1007.41 GiB"}}),
                              answer("n3", {{"memory", "943.41 GiB"}})})
                   .alike());
}

TEST(SiteCheck, a_clock_is_off_by_the_least_that_must_be_true) {
  EXPECT_EQ(clock_offset(100, 100.5, 101), 0);
  EXPECT_EQ(clock_offset(100, 98, 101), -2);
  EXPECT_EQ(clock_offset(100, 104, 101), 3);
  const SiteCheck check = compare_nodes({answer("n1", {}, 0.4), answer("n2", {}, -3.0)});
  EXPECT_EQ(check.clocks, (std::map<std::string, double>{{"n2", -3.0}}));
  EXPECT_EQ(check_text(check),
            "n2: clock is behind by at least 3.0 s\n2 of 2 nodes reached; 0 facts the same, 1 differ\n");
}

TEST(SiteCheck, a_node_that_is_not_reached_is_named_and_not_compared) {
  NodeAnswer gone{.node = "n2", .failure = LaunchFailure::unreachable, .reason = "no route"};
  const SiteCheck check = compare_nodes({answer("n1", {{"kernel", "6.1"}}), gone});
  EXPECT_TRUE(check.alike());
  EXPECT_EQ(check_text(check),
            "n2: not reached (unreachable): no route\n1 of 2 nodes reached; 1 fact the same, 0 differ\n");
}

TEST(SiteCheck, parts_are_counted_and_what_is_a_machines_own_is_left_out) {
  const json host = {
      {"name", "n01"}, {"boot_id", "b"}, {"kernel", "6.1"}, {"memory", 1024LL * 1024 * 1024 * 4}, {"cpus", 2}};
  Record inventory;
  inventory.conditions = {{.name = "driver_version", .subject = {}, .value = std::string("580.1")},
                          {.name = "model", .subject = {"gpu", "GPU-1"}, .value = std::string("H200")},
                          {.name = "model", .subject = {"gpu", "GPU-2"}, .value = std::string("H200")},
                          {.name = "model", .subject = {"gpu", "GPU-3"}, .value = std::string("H100")},
                          {.name = "serial", .subject = {"gpu", "GPU-1"}, .value = std::string("165")},
                          // Of the moment, and of every record.
                          {.name = "cpu_load_by_others", .subject = {"node", "n01"}, .value = 0.83},
                          {.name = "cpu_steal", .subject = {"node", "n01"}, .value = 0.01}};
  inventory.measurements = {{.metric = "gpus_total", .unit = "1", .subject = {}, .samples = {3}},
                            {.metric = "link_rate", .unit = "B/s", .subject = {"nic", "mlx5_0"}, .samples = {5e10}}};
  EXPECT_EQ(facts_of(host, {inventory}), (std::map<std::string, std::string>{{"cpus", "2"},
                                                                             {"driver_version", "580.1"},
                                                                             {"gpu model", "1 x H100, 2 x H200"},
                                                                             {"gpus_total", "3"},
                                                                             {"kernel", "6.1"},
                                                                             {"memory", "4.00 GiB"},
                                                                             {"nic link_rate", "400 Gb/s"}}));
}

/// A folder of this test with files in it.
class SiteFile : public testing::Test {
 protected:
  SiteFile() {
    std::string pattern = "/tmp/assay-site-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  ~SiteFile() override { std::filesystem::remove_all(folder_); }
  [[nodiscard]] std::string write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(folder_ + "/" + name).parent_path());
    std::ofstream(folder_ + "/" + name) << text;
    return folder_ + "/" + name;
  }
  std::string folder_;
};

TEST_F(SiteFile, relative_paths_are_of_the_folder_of_the_file) {
  (void)write("known_hosts", "n1 ssh-ed25519 AAAA\n");
  (void)write("id", "key");
  const auto site =
      read_site_file(write("site.json", R"({"schema": "assay.site/1", "name": "s", "known_hosts": "known_hosts",
      "nodes": [{"name": "n1", "launcher": "ssh", "identity_file": "id"}]})"));
  ASSERT_TRUE(site) << site.error().text();
  EXPECT_EQ(site->known_hosts, folder_ + "/known_hosts");
  EXPECT_EQ(site->nodes[0].identity_file, folder_ + "/id");
}

TEST_F(SiteFile, the_home_of_a_key_is_the_users) {
  const std::string key = write("home/.ssh/id", "k");
  const std::string text = R"({"schema": "assay.site/1", "name": "s",
      "nodes": [{"name": "n1", "launcher": "ssh", "identity_file": "~/.ssh/id"}]})";
  const std::string before = home_directory();
  ASSERT_EQ(::setenv("HOME", (folder_ + "/home").c_str(), 1), 0);
  const auto site = read_site_file(write("site.json", text));
  ASSERT_EQ(::setenv("HOME", before.c_str(), 1), 0);
  ASSERT_TRUE(site) << site.error().text();
  EXPECT_EQ(site->nodes[0].identity_file, key);
}

TEST_F(SiteFile, a_file_of_keys_that_is_not_there_is_named) {
  const auto site =
      read_site_file(write("site.json", R"({"schema": "assay.site/1", "name": "s", "known_hosts": "known_hosts",
      "nodes": [{"name": "n1", "launcher": "ssh"}]})"));
  ASSERT_FALSE(site);
  EXPECT_EQ(site.error().text(),
            folder_ + "/site.json: known_hosts: no such file: " + folder_ +
                "/known_hosts\nhint: a relative path is relative to the site file, and ~ is $HOME");
}

TEST(Site, each_node_is_found_whatever_the_order_and_the_form_of_their_names) {
  const std::vector<std::vector<std::string>> orders = {{},
                                                        {"n1"},
                                                        {"n001", "n002", "n003", "n004", "n005"},
                                                        {"n1", "n2", "n9", "n10", "n11", "n100"},
                                                        {"n1", "n10", "n11", "n2", "n9"},
                                                        {"login", "gpu-b-1", "gpu-a-12", "x", "gpu-a-2", "n01"},
                                                        {"n5", "n4", "n3", "n2", "n1"}};
  for (const auto& names : orders) {
    Site site;
    for (const auto& name : names) site.nodes.push_back({.name = name});
    for (std::size_t i = 0; i < names.size(); ++i) EXPECT_EQ(site.node(names[i]), &site.nodes[i]) << names[i];
    for (const char* none : {"", "a", "n", "n0", "n6", "n0000", "zz", "n99999"}) EXPECT_EQ(site.node(none), nullptr);
  }
}

TEST_F(SiteFile, every_user_has_a_directory_of_their_own_unless_the_file_names_one) {
  const auto site = read_site_file(write("site.json", R"({"schema": "assay.site/1", "name": "s", "nodes": [
      {"name": "n1", "launcher": "ssh"}, {"name": "n2", "launcher": "ssh", "user": "ada"},
      {"name": "n3", "launcher": "ssh", "directory": "/scratch/a"}, {"name": "n4", "launcher": "kubernetes"}]})"));
  ASSERT_TRUE(site) << site.error().text();
  EXPECT_EQ(site->nodes[0].directory, "/var/tmp/assay-" + std::to_string(::geteuid()));
  EXPECT_EQ(site->nodes[1].directory, "/var/tmp/assay-ada");
  EXPECT_EQ(site->nodes[2].directory, "/scratch/a");
  EXPECT_EQ(site->nodes[3].directory, "/var/tmp/assay");
  EXPECT_EQ(this_machine().nodes[0].directory, "/var/tmp/assay-" + std::to_string(::geteuid()));
}

}  // namespace
}  // namespace assay::site
