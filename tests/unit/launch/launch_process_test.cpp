// launch_process: how a child that is let go comes to its end.
#include "orchestrator/launch/child_process.h"

#include <chrono>
#include <filesystem>
#include <fstream>

#include <signal.h>
#include <unistd.h>

#include <gtest/gtest.h>
#include <boost/asio/io_context.hpp>

namespace assay::launch {
namespace {

namespace fs = std::filesystem;

/// A shell as a child, and the file in which it leaves its words; "up" is there once its traps are set.
class ChildProcessTest : public testing::Test {
 protected:
  void TearDown() override { fs::remove(words_); }

  void start(const std::string& script) {
    child_ =
        ChildProcess::start(io_.get_executor(),
                            {"/bin/sh", "-c", script + "; echo up $$ >>" + words_ + "; while :; do sleep 0.02; done"})
            .value();
    for (int i = 0; i < 1000 && read().empty(); ++i) usleep(10'000);
    ASSERT_TRUE(read().starts_with("up "));
    pid_ = std::stoi(read().substr(3));
  }
  [[nodiscard]] std::string read() const {
    std::ifstream file(words_);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::string words_ = fs::temp_directory_path() / ("launch_process." + std::to_string(getpid()));
  boost::asio::io_context io_;
  std::unique_ptr<ChildProcess> child_;
  pid_t pid_ = 0;
};

TEST_F(ChildProcessTest, is_asked_before_it_is_killed_so_that_it_can_clean_up) {
  start("trap 'echo cleaned >>" + words_ + "; exit 0' TERM");
  child_.reset();
  EXPECT_TRUE(read().ends_with("cleaned\n")) << read();
}

TEST_F(ChildProcessTest, that_does_not_listen_is_killed) {
  start("trap '' TERM");
  child_.reset();
  EXPECT_NE(kill(pid_, 0), 0);
}

}  // namespace
}  // namespace assay::launch
