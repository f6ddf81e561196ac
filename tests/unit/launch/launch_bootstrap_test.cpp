// The bootstrap script in a shell: which program runs, and what it leaves alone.
#include <filesystem>
#include <fstream>

#include <sys/stat.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "orchestrator/files/child.h"
#include "orchestrator/files/digest.h"
#include "orchestrator/launch/ssh.h"

namespace assay::launch {
namespace {

namespace fs = std::filesystem;

constexpr const char* kAgent = "#!/bin/sh\ntest \"$1\" = --version || echo \"honest $2\"\n";
constexpr const char* kEvil = "#!/bin/sh\necho evil\n";

/// A node: a folder for `directory`, and a PATH in which single tools can be replaced.
class AgentBootstrap : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (::access(GetParam(), X_OK) != 0) GTEST_SKIP() << GetParam() << " is not installed";
    std::string name = fs::canonical(testing::TempDir()).string() + "/assay-bootstrap-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    base_ = name;
    fs::create_directory(base_ + "/tools");
    fs::create_directory(base_ + "/shared");
    tool("uname", "echo x86_64\n");
  }
  void TearDown() override {
    if (!base_.empty()) fs::remove_all(base_);
  }

  /// What the script prints on both streams, started for `directory` with the head's line and the agent's bytes on
  /// stdin.
  std::string run(const std::string& directory, const std::string& input = kAgent) {
    const std::string script = bootstrap_script(directory, agents_).value();
    std::ofstream(base_ + "/script") << script;
    std::ofstream(base_ + "/input") << kBootstrapStart << input;
    const std::string shell = GetParam();
    const auto child = files::run_child(
        "/bin/sh",
        {"-c", fmt::format("PATH={0}/tools:$PATH; export PATH; {1} -c \"$(cat {0}/script)\" < {0}/input 2>&1", base_,
                           shell == "/bin/busybox" ? "/bin/busybox sh" : shell)},
        Seconds{30});
    return child ? child->output : child.error().text();
  }
  /// Puts a tool before the node's own.
  void tool(const std::string& name, const std::string& body) {
    std::ofstream(base_ + "/tools/" + name) << "#!/bin/sh\n" << body;
    ::chmod((base_ + "/tools/" + name).c_str(), 0755);
  }
  static unsigned mode(const std::string& path) {
    struct stat info = {};
    return ::stat(path.c_str(), &info) == 0 ? info.st_mode & 07777U : 0U;
  }
  [[nodiscard]] std::string stored(const std::string& directory) const {
    return directory + "/agents/" + files::sha256(kAgent);
  }

  std::string base_;
  std::vector<AgentFile> agents_ = {{"x86_64", files::sha256(kAgent), std::string(kAgent).size()}};
};

}  // namespace

TEST_P(AgentBootstrap, stores_the_agent_once_and_runs_it) {
  const std::string directory = base_ + "/shared/assay";
  EXPECT_EQ(run(directory), "assay-bootstrap/1 need x86_64\nassay-bootstrap/1 stored\nhonest " + directory + "\n");
  EXPECT_EQ(mode(directory), 0700U);
  EXPECT_EQ(run(directory, ""), "assay-bootstrap/1 have x86_64\nhonest " + directory + "\n");
  EXPECT_EQ(run(directory + "/", ""), "assay-bootstrap/1 have x86_64\nhonest " + directory + "\n");
  EXPECT_EQ(std::distance(fs::directory_iterator(directory + "/agents"), {}), 1);
}

TEST_P(AgentBootstrap, a_file_of_another_hash_is_replaced_and_never_run) {
  const std::string directory = base_ + "/shared/assay";
  fs::create_directories(directory + "/agents");
  std::ofstream(stored(directory)) << kEvil;
  ::chmod(stored(directory).c_str(), 0755);
  EXPECT_EQ(run(directory), "assay-bootstrap/1 need x86_64\nassay-bootstrap/1 stored\nhonest " + directory + "\n");
}

TEST_P(AgentBootstrap, what_was_hashed_is_what_runs_though_the_stored_file_is_swapped_after_every_hash) {
  const std::string directory = base_ + "/shared/assay";
  (void)run(directory);
  tool("sha256sum", fmt::format("/usr/bin/sha256sum \"$@\"\nprintf '%s\\n' '#!/bin/sh' 'echo evil' > {0}/evil\n"
                                "chmod 755 {0}/evil\nmv -f {0}/evil {1}\n",
                                base_, stored(directory)));
  const std::string said = run(directory);
  EXPECT_EQ(said.find("evil"), std::string::npos) << said;
  EXPECT_NE(said.find("honest"), std::string::npos) << said;
}

TEST_P(AgentBootstrap, a_node_takes_the_agent_of_its_own_machine) {
  if (std::string_view(GetParam()).find("busybox") != std::string_view::npos)
    GTEST_SKIP() << "this shell runs its own uname";
  const std::string other = "#!/bin/sh\ntest \"$1\" = --version || echo other\n";
  agents_.insert(agents_.begin(), {"aarch64", files::sha256(other), other.size()});
  EXPECT_NE(run(base_ + "/shared/assay").find("need x86_64"), std::string::npos);
  tool("uname", "echo aarch64\n");
  EXPECT_EQ(run(base_ + "/shared/assay", other), "assay-bootstrap/1 need aarch64\nassay-bootstrap/1 stored\nother\n");
}

TEST_P(AgentBootstrap, a_machine_without_an_agent_is_told) {
  if (std::string_view(GetParam()).find("busybox") != std::string_view::npos)
    GTEST_SKIP() << "this shell runs its own uname";
  tool("uname", "echo riscv64\n");
  EXPECT_EQ(run(base_ + "/shared/assay"),
            "assay: this machine is riscv64, and the agents that can be sent are for x86_64\n");
}

TEST_P(AgentBootstrap, bytes_that_are_not_the_agent_are_refused) {
  EXPECT_NE(run(base_ + "/shared/assay", kEvil).find("the agent was not received completely"), std::string::npos);
}

TEST_P(AgentBootstrap, a_link_at_the_name_is_refused_and_nothing_behind_it_is_touched) {
  const std::string victim = base_ + "/victim";
  fs::create_directory(victim);
  ::chmod(victim.c_str(), 0755);
  fs::create_directory_symlink(victim, base_ + "/shared/assay");
  EXPECT_NE(run(base_ + "/shared/assay").find("cannot be used, is a link or belongs to another user"),
            std::string::npos);
  EXPECT_EQ(mode(victim), 0755U);
  EXPECT_TRUE(fs::is_empty(victim));
}

TEST_P(AgentBootstrap, a_folder_of_another_user_is_refused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make a folder of another user";
  const std::string directory = base_ + "/shared/assay";
  fs::create_directory(directory);
  ASSERT_EQ(::chown(directory.c_str(), 65534, 65534), 0);
  EXPECT_NE(run(directory).find("belongs to another user"), std::string::npos);
  EXPECT_TRUE(fs::is_empty(directory));
}

TEST_P(AgentBootstrap, another_place_is_taken_where_tmp_cannot_execute) {
  // mktemp gives a folder for /tmp whose files no try can execute, as on a mount with noexec.
  tool("chmod", "case $2 in */tmp-noexec*) exit 0;; esac\nexec /bin/chmod \"$@\"\n");
  tool("mktemp", fmt::format("case $2 in /tmp/*) exec /usr/bin/mktemp -d {}/tmp-noexec.XXXXXX;; esac\n"
                             "exec /usr/bin/mktemp \"$@\"\n",
                             base_));
  const std::string said = run(base_ + "/shared/assay");
  EXPECT_NE(said.find("honest"), std::string::npos) << said;
}

INSTANTIATE_TEST_SUITE_P(shells, AgentBootstrap, testing::Values("/bin/dash", "/bin/bash", "/bin/busybox"),
                         [](const auto& base) { return fs::path(base.param).filename().string(); });

TEST(LaunchSsh, the_root_folder_is_no_directory_for_an_agent) {
  for (const char* directory : {"/", "//", "/.", "/x/."})
    EXPECT_FALSE(bootstrap_script(directory, {{"x86_64", std::string(64, 'a'), 1}})) << directory;
}

}  // namespace assay::launch
