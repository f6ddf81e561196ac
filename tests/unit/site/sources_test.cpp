// sources: documents made from other tools' lists of machines.
#include "orchestrator/site/sources.h"

#include <gtest/gtest.h>

#include "orchestrator/site/site_file.h"
#include "tests/unit/fake_tree.h"

namespace assay::site {
namespace {

using nlohmann::ordered_json;
using Notes = std::vector<std::string>;

/// The document, or the text of the error.
std::string text_of(const std::expected<ordered_json, InputError>& made) {
  return made ? made->dump() : made.error().text();
}

TEST(HostList, ranges_keep_their_zeros) {
  EXPECT_EQ(expand_host_list("n[01-03,7],gpu1").value(), (std::vector<std::string>{"n01", "n02", "n03", "n7", "gpu1"}));
  EXPECT_EQ(expand_host_list("r[1-2]-ib").value(), (std::vector<std::string>{"r1-ib", "r2-ib"}));
  EXPECT_EQ(expand_host_list("n[098-101]").value(), (std::vector<std::string>{"n098", "n099", "n100", "n101"}));
  for (const char* wrong : {"n[3-1]", "n[1-", "n1]", "n[]", "n[a-b]", "n[[1-2]]", "n[1-[2-3]]", "", "a,,b",
                            "n[1-999999999]", "a[1-400]b[1-400]", "-x", "a b"})
    EXPECT_FALSE(expand_host_list(wrong)) << wrong;
}

TEST(HostList, several_brackets_and_lists_of_lists_are_read_as_slurm_does) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(expand_host_list("rack[0-1]_blade[0-1]").value(),
            (Names{"rack0_blade0", "rack0_blade1", "rack1_blade0", "rack1_blade1"}));
  EXPECT_EQ(expand_host_list("c457-[011-012],c438-[062,104]").value(),
            (Names{"c457-011", "c457-012", "c438-062", "c438-104"}));
  EXPECT_EQ(expand_host_list("a,b[001,003],c").value(), (Names{"a", "b001", "b003", "c"}));
  EXPECT_EQ(expand_host_list("n[1-3][1-2]").value().size(), 6U);
  EXPECT_EQ(expand_host_list("r[1,3-4]c[0-1]s[08-09]").value().size(), 12U);
  EXPECT_EQ(expand_host_list("r[1]c[09-10]").value(), (Names{"r1c09", "r1c10"}));
}

TEST(SiteFrom, a_host_file_of_mpi_becomes_ssh_nodes) {
  EXPECT_EQ(
      text_of(site_from_hostfile("# the hall\nn[01-02] slots=8\n\nbench@n03:4 # spare\n", "hosts",
                                 {.name = "hall", .known_hosts = "/etc/kh"})),
      R"({"schema":"assay.site/1","name":"hall","known_hosts":"/etc/kh","nodes":[{"name":"n01","launcher":"ssh"},{"name":"n02","launcher":"ssh"},)"
      R"({"name":"n03","launcher":"ssh","user":"bench"}]})");
}

TEST(SiteFrom, a_host_file_gives_addresses_as_ansible_does) {
  EXPECT_EQ(text_of(site_from_hostfile("n01 address=10.0.0.1 slots=8\nops@n02 ansible_host=fd00::2\n", "hosts", {})),
            R"({"schema":"assay.site/1","name":"site","nodes":[{"name":"n01","launcher":"ssh","address":"10.0.0.1"},)"
            R"({"name":"n02","launcher":"ssh","address":"fd00::2","user":"ops"}]})");
}

/// Names of the nodes of a host file, with user, address and port where they have one.
std::string hosts_in(const std::string& file) {
  const auto site = site_from_hostfile(file, "hosts", {});
  if (!site) return site.error().text();
  std::string all;
  for (const auto& node : site->at("nodes")) {
    all += (all.empty() ? "" : " ") + node.value("user", "") + (node.contains("user") ? "@" : "") +
           node.at("name").get<std::string>();
    if (node.contains("address")) all += "=" + node.at("address").get<std::string>();
    if (node.contains("port")) all += ":" + node.at("port").dump();
  }
  return all;
}

TEST(SiteFrom, host_files_of_other_tools_are_read) {
  for (const auto& [file, hosts] : std::vector<std::pair<std::string, std::string>>{
           {"n01\nn01\nn02\nn02\n", "n01 n02"},                                 // a line a slot, as PBS gives a job
           {"n01:8\nn02:8\n", "n01 n02"},                                       // MPICH
           {"n01:8,n02:8,m1:4\n", "n01 n02 m1"},                                // mpirun -H
           {"n01 slots=8 max_slots=8\nn02  cpu=8\n", "n01 n02"},                // Open MPI, DeepSpeed
           {"n01 8 all.q@n01 UNDEFINED\nn02 8 all.q@n02 <NULL>\n", "n01 n02"},  // Grid Engine
           {"[gpu]\nn[01:02].hall ansible_user=ops\n\n[all_of]\nn3 ansible_host=10.0.0.3 ansible_port=2222\n",
            "ops@n01.hall ops@n02.hall n3=10.0.0.3:2222"},
           {"rack[0-1]_blade[0-1]\n", "rack0_blade0 rack0_blade1 rack1_blade0 rack1_blade1"},
           {"c[011-012],d[062,104]\na,b[1,3],ops@c:8\n", "c011 c012 d062 d104 a b1 b3 ops@c"},
           {"n01\r\nn02\r\n\r\n", "n01 n02"},
           {"\xEF\xBB\xBFn01\nn02 # spare\n", "n01 n02"},
           {"n01 address=2001:db8::11\n", "n01=2001:db8::11"},
           {"n01\n\nn[01-02]\n", "n01 n02"},
       })
    EXPECT_EQ(hosts_in(file), hosts) << file;
}

TEST(SiteFrom, what_a_host_file_cannot_say_is_refused_with_a_hint_that_fits) {
  const auto starts = [](const std::string& file, const std::string& text) {
    EXPECT_EQ(hosts_in(file).substr(0, text.size()), text);
  };
  for (const char* address : {"2001:db8::11", "fe80::1%eth0", "[2001:db8::11]:22", "2001:db8:0:1:2:3:4:5"})
    starts(address,
           std::string("hosts: line 1: '") + address + "' is an address and no name\nhint: write NAME address=");
  starts("n02 address=fe80::1%eth0", "hosts: line 1: 'fe80::1%eth0' is a link-local address\nhint: it is only known");
  starts("n02 8", "hosts: line 1: '8' is not a known option\nhint: if it is a number of slots, write slots=8");
  starts("[gpu:vars]\nansible_user=x\n",
         "hosts: line 1: '[gpu:vars]' is no host\nhint: write the hosts of an Ansible inventory");
  starts("n02 slots=all", "hosts: line 1: 'slots=all' has no such value");
  starts("n02 ansible_port=ssh", "hosts: line 1: 'ansible_port=ssh' has no such value");
  starts("n[01:04:2]", "hosts: line 1: '01:04:2' in 'n[01:04:2]' is not a range of numbers");
  starts("[", "hosts: line 1: '[' is no host");
  starts("n01\nops@n01\n", "hosts: line 2: 'n01' is already in line 1, with another address or user");
  starts(std::string("\xFF\xFEn\0", 4), "hosts: is UTF-16\nhint: save it as UTF-8");
  starts("[gpu]\n", "hosts: contains no host");
}

TEST(SiteFrom, a_host_file_that_is_not_understood_is_refused_with_its_line) {
  const auto second_line = [](const std::string& line) {
    return text_of(site_from_hostfile("n01\n" + line + "\n", "hosts", {}));
  };
  EXPECT_EQ(
      second_line("n02 ansible_become=yes"),
      "hosts: line 2: 'ansible_become=yes' is not a known option\nhint: a line is HOST, USER@HOST or HOST:SLOTS, or "
      "such a list with commas, optionally followed by slots=N and address=A; ports and keys of ssh are read from "
      "an ssh configuration, with --from ssh-config");
  EXPECT_EQ(second_line("n02 10.0.0.2"),
            "hosts: line 2: '10.0.0.2' is not a known option\nhint: if that is its address, write address=10.0.0.2");
  EXPECT_EQ(second_line("n[02-03] address=10.0.0.2").substr(0, 45), "hosts: line 2: gives 2 hosts one address\nhint");
  EXPECT_EQ(text_of(site_from_hostfile("# nobody\n", "hosts", {})).substr(0, 23), "hosts: contains no host");
}

/// The ssh configuration of a user whose home has some files.
class SshConfig : public testing::Test {
 protected:
  [[nodiscard]] std::string write(const std::string& name, const std::string& text) const {
    home_.file(name, text);
    return folder_ + "/" + name;
  }
  [[nodiscard]] std::expected<ordered_json, InputError> from_ssh(const std::string& config,
                                                                 Notes* notes = nullptr) const {
    return site_from_ssh_config(config, "config", {.home = folder_, .notes = notes});
  }
  const FakeTree home_;
  const std::string folder_ = home_.path();
};

TEST_F(SshConfig, a_key_in_ssh_configurations_is_the_file_that_ssh_would_find) {
  const std::string key = write(".ssh/id", "k"), other = write(".ssh/other key", "k"),
                    node = write(".ssh/n01.hall-ops-23", "k");
  const auto key_of = [&](const std::string& lines) {
    const auto site = from_ssh("Host n01\n  HostName %h.hall\n  User ops\n  Port 23\n" + lines);
    return site ? site->at("nodes")[0].value("identity_file", "none") : site.error().text();
  };
  EXPECT_EQ(key_of("IdentityFile ~/.ssh/id\n"), key);
  EXPECT_EQ(key_of("IdentityFile = \"~/.ssh/id\" # mine\n"), key);
  EXPECT_EQ(key_of("IdentityFile '~/.ssh/other key'\n"), other);
  EXPECT_EQ(key_of("IdentityFile %d/.ssh/id\n"), key);
  EXPECT_EQ(key_of("IdentityFile ~/.ssh/%h-%r-%p\n"), node);
  EXPECT_EQ(key_of("IdentityFile " + key + "\n"), key);
  // ssh tries them in turn, of every block that covers the host, and passes over those that are not there.
  EXPECT_EQ(key_of("IdentityFile ~/.ssh/gone\nIdentityFile ~/.ssh/id\nHost *\nIdentityFile ~/.ssh/later\n"), key);
  EXPECT_EQ(key_of("IdentityFile ~/.ssh/gone\nHost n*\nIdentityFile ~/.ssh/id\n"), key);
  EXPECT_EQ(key_of("IdentityFile ~/.ssh/gone\n"), "none");
  EXPECT_EQ(key_of("IdentityFile none\n"), "none");
  EXPECT_EQ(key_of("IdentityFile ~/.ssh/%L\n"),
            "config: line 5: '~/.ssh/%L' has the token %L\nhint: write its value instead");
  EXPECT_EQ(key_of("IdentityFile ${HOME}/id\n"),
            "config: line 5: '${HOME}/id' has a variable\nhint: write its value instead");
  EXPECT_EQ(key_of("IdentityFile ~bob/id\n").substr(0, 40), "config: line 5: '~bob/id' is in a home t");
  EXPECT_EQ(key_of("IdentityFile \"~/.ssh/id\n"), "config: line 5: has a quote that is not closed");
  Notes notes;
  ASSERT_TRUE(from_ssh("Host n01 n02\nIdentityFile ~/.ssh/gone\n", &notes));
  EXPECT_EQ(notes,
            (Notes{"config: line 2: IdentityFile " + folder_ + "/.ssh/gone is left out: there is no such file"}));
}

// Two names of one machine would be refused as a site.
TEST_F(SshConfig, another_name_of_a_machine_is_left_out) {
  Notes notes;
  const auto site = from_ssh("Host login.hall login\n  HostName login.hall\nHost n01 n1\n  HostName %h.hall\n", &notes);
  ASSERT_TRUE(site) << site.error().text();
  EXPECT_EQ(site->at("nodes").size(), 3U);
  EXPECT_TRUE(read_site(site->dump(), "config"));
  EXPECT_EQ(notes, (Notes{"config: line 1: login is left out: it is the machine login.hall"}));
}

// What site writes, site check reads.
TEST_F(SshConfig, a_site_of_an_ssh_configuration_can_be_read_from_its_file) {
  (void)write(".ssh/id", "k");
  const auto made =
      from_ssh("Host login n01\n  IdentityFile ~/.ssh/id\n  IdentityFile ~/.ssh/gone\nHost n01\n  ProxyJump login\n");
  ASSERT_TRUE(made) << made.error().text();
  const auto site = read_site_file(write("site.json", made->dump()));
  ASSERT_TRUE(site) << site.error().text();
  EXPECT_EQ(site->nodes.at(1).jump->identity_file, folder_ + "/.ssh/id");
}

TEST_F(SshConfig, included_files_and_matches_of_hosts_count_where_they_stand) {
  (void)write(".ssh/config.d/1.conf", "User early\nHost n02\n  HostName 10.0.0.2\n");
  (void)write(".ssh/config.d/2.conf", "Include nested\n");
  (void)write(".ssh/nested", "Host n03\n  HostName 10.0.0.3\n");
  const auto site = from_ssh(
      "Include config.d/*.conf\nUser late\nHost n01\n  HostName 10.0.0.1\n"
      "Match host \"10.0.0.*,x\"\n  Port 23\nMatch originalhost n03\n  ProxyJump n01\nMatch all\n  Port 24\n");
  ASSERT_TRUE(site) << site.error().text();
  std::string all;
  for (const auto& node : site->at("nodes"))
    all += node.at("name").get<std::string>() + node.at("address").dump() + node.at("user").dump() +
           node.at("port").dump() + (node.contains("jump") ? " jump " : " ");
  EXPECT_EQ(all, R"(n02"10.0.0.2""early"23 n03"10.0.0.3""early"23 jump n01"10.0.0.1""early"23 )");
  // Before its HostName is known, a host is matched by its own name.
  const auto before = from_ssh("Match host n*\n  User ops\nHost n01\n  HostName 10.0.0.1\n");
  EXPECT_EQ(before->at("nodes")[0].at("user"), "ops");
  Notes notes;
  ASSERT_TRUE(from_ssh("Include ~/gone*\nHost n01\n", &notes));
  EXPECT_EQ(notes, (Notes{"config: line 1: Include " + folder_ + "/gone*: there is no such file"}));
  (void)write(".ssh/round", "Include round\n");
  EXPECT_NE(text_of(from_ssh("Include round\nHost n01\n")).find("includes more than 200 files"), std::string::npos);
  (void)write(".ssh/bad", "Host n01\n  Port ssh\n");
  EXPECT_EQ(text_of(from_ssh("Include bad\n")), folder_ + "/.ssh/bad: line 2: 'ssh' is not a port number");
}

TEST(SiteFrom, an_ssh_config_is_read_as_ssh_reads_it) {
  const char* const config =
      "Host login\n  HostName login.lab\n  Port 2200\n"
      "Host n01 n02\n  HostName %h.hall\n  User=bench\n  User ignored\n"
      "Host n02\n  Port = 23\n"
      "Host n* !n09\n  ProxyJump ops@login\n  IdentityFile /dev/null\n"
      "Host *\n  User nobody\n  ServerAliveInterval 10\n";
  const auto site = site_from_ssh_config(config, "config", {});
  ASSERT_TRUE(site) << site.error().text();
  EXPECT_EQ(site->at("nodes").size(), 3U);
  EXPECT_EQ(site->at("nodes")[0],
            ordered_json::parse(
                R"({"name": "login", "launcher": "ssh", "address": "login.lab", "user": "nobody", "port": 2200})"));
  EXPECT_EQ(
      site->at("nodes")[1],
      ordered_json::parse(
          R"({"name": "n01", "launcher": "ssh", "address": "n01.hall", "user": "bench", "identity_file": "/dev/null",
    "jump": {"address": "login.lab", "user": "ops", "port": 2200}})"));
  EXPECT_EQ(site->at("nodes")[2].at("port"), 23);
  EXPECT_TRUE(read_site(site->dump(), "config"));
}

TEST(SiteFrom, an_ssh_config_that_leads_elsewhere_is_refused_with_its_line) {
  for (const char* line :
       {"Include other", "Match exec true\n  User x", "Match host n01 user ops\nPort 23",
        "ProxyCommand ssh -q login 'exec nc %h %p'", "HostKeyAlias x", "HostName %n", "User ${USER}"}) {
    EXPECT_EQ(text_of(site_from_ssh_config(std::string("Host n01\n  ") + line + "\n", "config", {})).substr(0, 15),
              "config: line 2:")
        << line;
  }
  // What touches no node refuses no file.
  for (const char* lines : {"Match exec true\n  ForwardAgent yes", "Host *.onion\n  ProxyCommand nc %h %p",
                            "ProxyJump none\n  ProxyCommand nc %h %p", "ProxyCommand none"}) {
    EXPECT_TRUE(site_from_ssh_config(std::string("Host n01\n  ") + lines + "\n", "config", {})) << lines;
  }
  const auto jump = [](const char* to) {
    return site_from_ssh_config(std::string("Host n01\n  ProxyJump ") + to + "\n", "c", {})
        ->at("nodes")[0]
        .at("jump")
        .dump();
  };
  EXPECT_EQ(jump("ssh://ops@[2001:db8::1]:23"), R"({"address":"2001:db8::1","user":"ops","port":23})");
  EXPECT_EQ(jump("2001:db8::1"), R"({"address":"2001:db8::1"})");
  EXPECT_EQ(text_of(site_from_ssh_config("Host n01\n  Port ssh\n", "config", {})),
            "config: line 2: 'ssh' is not a port number");
  EXPECT_EQ(text_of(site_from_ssh_config("Host n01\n  ProxyJump a,b\n", "config", {})).substr(0, 45),
            "config: line 2: ProxyJump has more than one h");
  EXPECT_EQ(text_of(site_from_ssh_config("Host *\n  User x\n", "config", {})).substr(0, 43),
            "config: has no Host without a wildcard\nhint");
}

/// As slurmctld 22.05 prints them, shortened.
constexpr const char* kScontrol =
    "NodeName=node1 Arch=x86_64 CPUAlloc=0 Gres=gpu:h200:8(S:0-1) NodeAddr=10.77.1.2 NodeHostName=node1 OS=Linux 6.1.0 "
    "#1 SMP State=IDLE Partitions=main,gpu Reason=a = b\n"
    "NodeName=node2 Arch=x86_64 Gres=gpu:h200:8(S:0-1) NodeAddr=node2 NodeHostName=node2 State=DOWN Partitions=main\n";

TEST(SiteFrom, scontrol_tells_nodes_addresses_and_gpus) {
  EXPECT_EQ(
      text_of(site_from_scontrol(kScontrol, "scontrol", {.name = "hall"})),
      R"({"schema":"assay.site/1","name":"hall","nodes":[{"name":"node1","launcher":"slurm","address":"10.77.1.2"},{"name":"node2","launcher":"slurm"}],)"
      R"("slurm":{"gres":"gpu:h200:8"}})");
  EXPECT_EQ(
      text_of(site_from_scontrol(kScontrol, "scontrol", {.partition = "gpu"})),
      R"({"schema":"assay.site/1","name":"site","nodes":[{"name":"node1","launcher":"slurm","address":"10.77.1.2"}],"slurm":{"partition":"gpu","gres":"gpu:h200:8"}})");
  EXPECT_EQ(text_of(site_from_scontrol(kScontrol, "scontrol", {.partition = "cpu"})).substr(0, 42),
            "scontrol: has no node in partition 'cpu'\nh");
  EXPECT_EQ(text_of(site_from_scontrol("slurm_load_node: error\n", "scontrol", {})).substr(0, 17), "scontrol: line 1:");
}

TEST(SiteFrom, all_gpus_of_a_node_are_asked_for_whatever_their_types) {
  const auto gres = [](const std::string& of_node) {
    const auto site = site_from_scontrol("NodeName=n1 Gres=" + of_node + " NodeAddr=n1 State=IDLE\n", "s", {}).value();
    EXPECT_TRUE(read_site(site.dump(), "s")) << of_node;
    return site.contains("slurm") ? site.at("slurm").at("gres").get<std::string>() : "";
  };
  EXPECT_EQ(gres("gpu:model_a:2,gpu:model_b:2"), "gpu:4");
  EXPECT_EQ(gres("craynetwork:4,gpu:a100:4"), "gpu:a100:4");
  EXPECT_EQ(gres("gpu:nvidia_a100_3g.20gb:2(S:0),gpu:nvidia_a100:7(S:0,1),shard:56(S:0-1)"), "gpu:9");
  EXPECT_EQ(gres("gpu:1g.10gb+me:7"), "gpu:7");
  EXPECT_EQ(gres("gpu:mi300x:8(S:0-1)"), "gpu:mi300x:8");
  EXPECT_EQ(gres("gpu:amd_instinct_mi300x_oam:8(S:0-1)"), "gpu:amd_instinct_mi300x_oam:8");
  EXPECT_EQ(gres("gpu:h200:4(S:0),gpu:h200:4(S:1)"), "gpu:h200:8");
  EXPECT_EQ(gres("nic:8,gpu"), "gpu:1");
  EXPECT_EQ(gres("gpu:8(IDX:0-7)"), "gpu:8");
  for (const char* none : {"(null)", "", "gpumem:80", "nic:8", "gpu:0"}) EXPECT_EQ(gres(none), "") << none;
}

TEST(SiteFrom, nodes_that_differ_in_their_gpus_are_not_passed_over) {
  Notes notes;
  const auto site = site_from_scontrol(
      "NodeName=n1 Gres=gpu:8 State=IDLE Partitions=a\nNodeName=n2 Gres=gpu:4 State=IDLE Partitions=b\n"
      "NodeName=n3 Gres=(null) State=IDLE Partitions=b\n",
      "s", {.notes = &notes});
  EXPECT_FALSE(site->contains("slurm"));
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_NE(notes[0].find("(n3 has none, n2 has gpu:4, n1 has gpu:8)"), std::string::npos) << notes[0];
}

TEST(SiteFrom, scontrol_without_oneliner_tells_the_same) {
  const auto site = site_from_scontrol(
      "NodeName=n1 Arch=x86_64 \n   Gres=gpu:h200:8(S:0-1)\n   NodeAddr=10.0.0.1 NodeHostName=n1 \n   OS=Linux 6.1 #1 "
      "\n"
      "   State=IDLE ThreadsPerCore=1\n   Partitions=main \n   Reason=a = b [root@2026-01-05T01:00:00]\n\n"
      "NodeName=n2 Gres=gpu:h200:8\n   State=IDLE\n\n",
      "s", {});
  EXPECT_EQ(text_of(site),
            R"({"schema":"assay.site/1","name":"site","nodes":[{"name":"n1","launcher":"slurm","address":"10.0.0.1"},)"
            R"({"name":"n2","launcher":"slurm"}],"slurm":{"gres":"gpu:h200:8"}})");
}

TEST(SiteFrom, pods_are_named_after_their_nodes) {
  const std::string pod =
      R"({"metadata": {"name": "assay-x7", "namespace": "lab"}, "spec": {"nodeName": "n01", "containers": [{"name": "assay"}]},
    "status": {"phase": "Running", "podIP": "10.0.0.1"}})";
  EXPECT_EQ(
      text_of(site_from_pods(R"({"items": [)" + pod + "]}", "kubectl", {})),
      R"({"schema":"assay.site/1","name":"site","nodes":[{"name":"n01","launcher":"kubernetes","pod":"assay-x7","namespace":"lab","address":"10.0.0.1","container":"assay"}]})");
  EXPECT_EQ(text_of(site_from_pods(R"({"items": [)" + pod + "," + pod + "]}", "kubectl", {})),
            "kubectl: items[1]: runs on 'n01', as does items[0]\nhint: a DaemonSet, or a Job of ours, has one agent "
            "pod on each node");
  std::string pending = pod;
  pending.replace(pending.find("Running"), 7, "Pending");
  EXPECT_EQ(text_of(site_from_pods(R"({"items": [)" + pending + "]}", "kubectl", {})),
            "kubectl: items[0]: pod 'assay-x7' is 'Pending' instead of running\nhint: wait for it, or delete it");
  std::string leaving = pod;
  leaving.replace(leaving.find("\"namespace\""), 0, R"("deletionTimestamp": "2026-01-01T00:00:00Z", )");
  EXPECT_EQ(text_of(site_from_pods(R"({"items": [)" + leaving + "]}", "kubectl", {})),
            "kubectl: items[0]: pod 'assay-x7' is 'Terminating' instead of running\nhint: wait for it, or delete it");
  EXPECT_EQ(text_of(site_from_pods("{}", "kubectl", {})).substr(0, 30), "kubectl: is not a list of pods");
}

}  // namespace
}  // namespace assay::site
