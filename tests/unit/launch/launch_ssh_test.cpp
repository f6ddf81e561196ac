// launch_ssh: what ssh is called with, and what its last words mean.
#include "orchestrator/launch/ssh.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace assay::launch {
namespace {

const std::string kHash(64, 'b');

site::Node example_node() {
  return {.name = "n01",
          .launcher = site::Launcher::ssh,
          .address = "10.0.0.1",
          .port = 2222,
          .user = "bench",
          .identity_file = "/keys/id_ed25519",
          .host_key = "ssh-ed25519 AAAAC3Nz",
          .directory = "/var/tmp/assay",
          .rack = ""};
}

bool has(const std::vector<std::string>& words, const std::string& word) {
  return std::ranges::find(words, word) != words.end();
}

TEST(LaunchSsh, nothing_is_forwarded_asked_or_configured) {
  const auto argv =
      ssh_arguments(example_node(), LaunchOptions{.agent = ""}, {.node = "/tmp/known_hosts"}, "true").value();
  EXPECT_EQ(argv.front(), "ssh");
  EXPECT_EQ(argv[1], "-F");
  EXPECT_EQ(argv[2], "none");
  for (const char* option :
       {"BatchMode=yes", "StrictHostKeyChecking=yes", "UserKnownHostsFile=/tmp/known_hosts",
        "GlobalKnownHostsFile=/dev/null", "PasswordAuthentication=no", "ForwardAgent=no", "ForwardX11=no",
        "ClearAllForwardings=yes", "IdentitiesOnly=yes", "HostKeyAlias=assay-pinned-node", "ConnectTimeout=10"}) {
    EXPECT_TRUE(has(argv, option)) << option;
  }
  const std::vector<std::string> end(argv.end() - 9, argv.end());
  EXPECT_EQ(
      end, (std::vector<std::string>{"-i", "/keys/id_ed25519", "-p", "2222", "-l", "bench", "--", "10.0.0.1", "true"}));
}

TEST(LaunchSsh, words_that_ssh_or_a_shell_would_read_are_refused) {
  const LaunchOptions options{.agent = ""};
  for (const char* address : {"-oProxyCommand=x", "", "a b", "user@host", "ssh://x"}) {
    site::Node node = example_node();
    node.address = address;
    EXPECT_FALSE(ssh_arguments(node, options, {.node = "/k"}, "true")) << address;
  }
  site::Node node = example_node();
  node.user = "-x";
  EXPECT_FALSE(ssh_arguments(node, options, {.node = "/k"}, "true"));
  node = example_node();
  node.identity_file = "/keys/%h";
  EXPECT_FALSE(ssh_arguments(node, options, {.node = "/k"}, "true"));
  EXPECT_FALSE(ssh_arguments(example_node(), options, {.node = "/a b"}, "true"));
  for (const char* directory : {"/tmp/$(id)", "tmp", "/tmp/a b", "/tmp/../etc", "/tmp/'x"}) {
    EXPECT_FALSE(bootstrap_command(directory, {{"x86_64", kHash, 1}})) << directory;
  }
  EXPECT_FALSE(bootstrap_command("/tmp", {{"x86_64", "x", 1}}));
  EXPECT_FALSE(bootstrap_command("/tmp", {{"x86_64) id;;", kHash, 1}}));
  EXPECT_FALSE(bootstrap_command("/tmp", {}));
}

TEST(LaunchSsh, the_command_is_one_quoted_word_for_any_login_shell) {
  const std::string command =
      bootstrap_command("/var/tmp/assay", {{"aarch64", kHash, 41}, {"x86_64", kHash, 42}}).value();
  EXPECT_EQ(std::ranges::count(command, '\''), 2);
  EXPECT_EQ(std::ranges::count(command, '!'), 0);
  EXPECT_NE(command.find("x86_64) s=" + std::string(kHash) + "; z=42;;"), std::string::npos);
}

TEST(LaunchSsh, a_pinned_key_stands_under_an_alias) {
  EXPECT_EQ(known_hosts_lines(example_node()).value(), "assay-pinned-node ssh-ed25519 AAAAC3Nz\n");
  site::Node node = example_node();
  for (const char* key : {"ssh-ed25519", "ssh-ed25519 AAAA\n* ssh-rsa B", "a b c"}) {
    node.host_key = key;
    EXPECT_FALSE(known_hosts_lines(node)) << key;
  }
}

TEST(LaunchSsh, the_last_words_tell_the_kind_of_failure) {
  EXPECT_EQ(
      ssh_failure("@@@\n@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed.\r\n", 255)
          .kind,
      LaunchFailure::host_key);
  EXPECT_EQ(
      ssh_failure(
          "No ED25519 host key is known for x and you have requested strict checking.\nHost key verification failed.\n",
          255)
          .kind,
      LaunchFailure::host_key);
  EXPECT_EQ(ssh_failure("root@x: Permission denied (publickey).\n", 255).kind, LaunchFailure::refused);
  EXPECT_EQ(ssh_failure("ssh: connect to host x port 22: Connection refused\r\n", 255).kind,
            LaunchFailure::unreachable);
  EXPECT_EQ(ssh_failure("ssh: connect to host x port 22: Connection refused\r\n", 255).reason,
            "ssh: connect to host x port 22: Connection refused");
  EXPECT_EQ(ssh_failure("", 255).kind, LaunchFailure::unreachable);
  EXPECT_EQ(ssh_failure("assay: directory /x cannot be used, is a link or belongs to another user\n", 73).kind,
            LaunchFailure::refused);
  EXPECT_EQ(ssh_failure("", std::nullopt).kind, LaunchFailure::unreachable);
}

TEST(LaunchSsh, the_last_line_is_printable_and_not_empty) {
  EXPECT_EQ(last_line("a\nb \x1b]0;x\n \r\n\n"), "b ?]0;x");
  EXPECT_EQ(last_line(" \n"), "");
  EXPECT_EQ(last_line(""), "");
}

}  // namespace
}  // namespace assay::launch
