// The agent by hand, through two pipes: what it does when the other side is not as it should be.
#include <algorithm>
#include <array>

#include <fcntl.h>
#include <sys/wait.h>

#include <gtest/gtest.h>

#include "orchestrator/wire/protocol.h"
#include "tests/e2e/agents.h"

namespace assay {
namespace {

using namespace test;

/// An agent by hand: its streams as two pipes.
class BareAgent {
 public:
  explicit BareAgent(std::vector<std::string> argv) {
    std::array<int, 2> in = {-1, -1}, out = {-1, -1};
    if (pipe2(in.data(), O_CLOEXEC) != 0 || pipe2(out.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
    pid_ = fork();
    if (pid_ == 0) {
      dup2(in[0], STDIN_FILENO);
      dup2(out[1], STDOUT_FILENO);
      std::vector<char*> words;
      for (auto& word : argv) words.push_back(word.data());
      words.push_back(nullptr);
      execv(words[0], words.data());
      _exit(127);
    }
    ::close(in[0]);
    ::close(out[1]);
    in_ = in[1];
    out_ = out[0];
  }
  ~BareAgent() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    ::close(in_);
    ::close(out_);
  }
  BareAgent(const BareAgent&) = delete;
  BareAgent& operator=(const BareAgent&) = delete;

  void say(const std::string& bytes) const {
    EXPECT_EQ(write(in_, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  }
  /// The next message; throws when the stream ends before.
  wire::FromAgent receive() {
    while (true) {
      if (auto frame = reader_.next().value()) return wire::decode_from_agent(*frame).value();
      std::array<char, 4096> buffer;
      const ssize_t size = read(out_, buffer.data(), buffer.size());
      if (size <= 0) throw std::runtime_error("the agent is gone");
      reader_.feed({buffer.data(), static_cast<std::size_t>(size)});
    }
  }
  /// Waits for its end; the exit code.
  int end() const {
    int status = 0;
    EXPECT_TRUE(eventually([&] { return waitpid(pid_, &status, WNOHANG) == pid_; }));
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t pid_ = -1;
  int in_ = -1, out_ = -1;
  wire::FrameReader reader_;
};

std::string run_frame(const std::string& id, std::vector<std::string> arguments) {
  return wire::encode(
      wire::ToAgent(wire::Run{.id = id,
                              .sha256 = files::sha256_of_file(UNRULY).value(),
                              .arguments = std::move(arguments),
                              .token = "",
                              .deadline_s = 60,
                              .limits = {.memory_bytes = 1ULL << 33, .output_bytes = 1 << 20, .cpu_s = 60}}));
}

void deliver(BareAgent& agent) {
  const std::string hash = files::sha256_of_file(UNRULY).value();
  const std::string image = read_file(UNRULY).value();
  agent.say(wire::encode(wire::ToAgent(wire::Program{.sha256 = hash, .size = image.size()})));
  for (std::size_t at = 0; at < image.size(); at += wire::kMaxChunk) {
    agent.say(wire::encode(
        wire::Data{.channel = wire::Channel::program, .id = hash, .bytes = image.substr(at, wire::kMaxChunk)}));
  }
  EXPECT_EQ(std::get<wire::Stored>(agent.receive()).sha256, hash);
}

class BareNodeTest : public testing::Test {
 protected:
  [[nodiscard]] std::string directory() const { return place_.path() + "/node"; }
  [[nodiscard]] std::string scratch() const { return directory() + "/scratch"; }
  void expect_nothing_left() const {
    EXPECT_TRUE(eventually([&] { return processes_with(place_.path()).empty(); }));
    EXPECT_EQ(entries_in(scratch()), 0U);
    EXPECT_EQ(entries_in(directory() + "/programs"), 0U);
  }

  Place place_;
};

TEST_F(BareNodeTest, an_orchestrator_that_falls_silent_is_taken_for_dead) {
  BareAgent agent({ASSAY_NODE, "--directory", directory(), "--silence", "2"});
  agent.say(wire::encode(wire::ToAgent(wire::Hello{})));
  (void)std::get<wire::Welcome>(agent.receive());
  deliver(agent);
  agent.say(run_frame("step", {"hang", place_.path()}));
  EXPECT_EQ(std::get<wire::Data>(agent.receive()).bytes, "hanging\n");
  EXPECT_EQ(agent.end(), 1);
  expect_nothing_left();
}

TEST_F(BareNodeTest, bye_kills_what_runs) {
  BareAgent agent({ASSAY_NODE, "--directory", directory()});
  agent.say(wire::encode(wire::ToAgent(wire::Hello{})));
  (void)std::get<wire::Welcome>(agent.receive());
  deliver(agent);
  agent.say(run_frame("step", {"fork-and-hang", place_.path()}));
  EXPECT_EQ(std::get<wire::Data>(agent.receive()).bytes, "tree\n");
  agent.say(wire::encode(wire::ToAgent(wire::Bye{})));
  EXPECT_EQ(agent.end(), 0);
  expect_nothing_left();
}

TEST_F(BareNodeTest, libraries_that_came_with_the_agent_are_named_to_its_programs) {
  const std::filesystem::path root = place_.path();
  std::filesystem::create_directories(root / "bin");
  std::filesystem::create_directories(root / "lib/assay");
  std::filesystem::copy_file(ASSAY_NODE, root / "bin/assay-node");
  BareAgent agent({root / "bin/assay-node", "--directory", directory()});
  agent.say(wire::encode(wire::ToAgent(wire::Hello{})));
  (void)std::get<wire::Welcome>(agent.receive());
  deliver(agent);
  agent.say(run_frame("step", {"surroundings", place_.path()}));
  EXPECT_NE(std::get<wire::Data>(agent.receive())
                .bytes.find("environment ASSAY_LIBRARY_PATH=" + place_.path() + "/lib/assay\ncwd "),
            std::string::npos);
  EXPECT_EQ(std::get<wire::Ended>(agent.receive()).exit_code, 0);
  agent.say(wire::encode(wire::ToAgent(wire::Bye{})));
  EXPECT_EQ(agent.end(), 0);
  expect_nothing_left();
}

TEST_F(BareNodeTest, an_agent_that_was_copied_here_removes_its_copies_and_what_was_broken_off_of_one_and_nothing_else) {
  const std::filesystem::path root = place_.path();
  const auto image = read_file(ASSAY_NODE).value();
  const auto put = [&](const char* name, const std::string& bytes) {
    std::ofstream(root / name, std::ios::binary) << bytes;
  };
  std::filesystem::copy_file(ASSAY_NODE, root / "slurm_bcast_3.0_n01");
  put("slurm_bcast_2.0_n01", image);
  put("slurm_bcast_1.0_n01", image.substr(0, 100'000));
  put("slurm_bcast_1.1_n01", image.substr(0, 100'000) + "another program");
  put("slurm_bcast_1.2_n01", image + "more");
  put("notes", image);
  BareAgent agent({root / "slurm_bcast_3.0_n01", "--directory", directory(), "--remove-self"});
  agent.say(encode(wire::ToAgent(wire::Hello{})));
  (void)std::get<wire::Welcome>(agent.receive());
  std::vector<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator(root)) {
    if (entry.is_regular_file()) left.push_back(entry.path().filename());
  }
  std::ranges::sort(left);
  EXPECT_EQ(left, (std::vector<std::string>{"notes", "slurm_bcast_1.1_n01", "slurm_bcast_1.2_n01"}));
  agent.say(encode(wire::ToAgent(wire::Bye{})));
  EXPECT_EQ(agent.end(), 0);
}

TEST_F(BareNodeTest, programs_in_files_run_as_well_and_leave_none) {
  BareAgent agent({ASSAY_NODE, "--directory", directory(), "--programs", "file"});
  agent.say(wire::encode(wire::ToAgent(wire::Hello{})));
  (void)std::get<wire::Welcome>(agent.receive());
  deliver(agent);
  EXPECT_EQ(entries_in(directory() + "/programs"), 0U);
  agent.say(run_frame("step", {"surroundings", place_.path()}));
  EXPECT_NE(std::get<wire::Data>(agent.receive()).bytes.find("writable 0"), std::string::npos);
  EXPECT_EQ(std::get<wire::Ended>(agent.receive()).exit_code, 0);
  agent.say(wire::encode(wire::ToAgent(wire::Bye{})));
  EXPECT_EQ(agent.end(), 0);
  expect_nothing_left();
}

TEST_F(BareNodeTest, garbage_ends_an_agent) {
  BareAgent agent({ASSAY_NODE, "--directory", directory()});
  agent.say("GET / HTTP/1.1\r\n");
  EXPECT_EQ(agent.end(), 1);
}

TEST_F(BareNodeTest, an_agent_that_is_not_greeted_first_ends) {
  BareAgent agent({ASSAY_NODE, "--directory", directory()});
  agent.say(wire::encode(wire::ToAgent(wire::Ping{})));
  EXPECT_EQ(agent.end(), 1);
}

TEST_F(BareNodeTest, another_protocol_is_answered_and_refused) {
  BareAgent agent({ASSAY_NODE, "--directory", directory()});
  agent.say(wire::encode(wire::ToAgent(wire::Hello{wire::kProtocol + 1})));
  EXPECT_EQ(std::get<wire::Welcome>(agent.receive()).protocol, wire::kProtocol);
  EXPECT_EQ(agent.end(), 1);
}

}  // namespace
}  // namespace assay
