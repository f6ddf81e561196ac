// The folder that evidence is written to: the caller's own, or none.
#include <filesystem>
#include <fstream>

#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "orchestrator/files/atomic_file.h"
#include "orchestrator/files/own_folder.h"

namespace assay::files {
namespace {

namespace fs = std::filesystem;

class OwnFolder : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "assay-own-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    base_ = name;
  }
  void TearDown() override { fs::remove_all(base_); }
  static std::string what(const std::optional<InputError>& problem) { return problem ? problem->what : "taken"; }

  std::string base_;
};

}  // namespace

TEST_F(OwnFolder, a_new_one_is_made_with_its_parents) {
  EXPECT_EQ(what(take_own_folder(base_ + "/a/b/run")), "taken");
  EXPECT_EQ(what(take_own_folder(base_ + "/a/b/run")), "taken");  // it is empty
  std::ofstream(base_ + "/a/b/run/plan.json") << "x";
  EXPECT_EQ(what(take_own_folder(base_ + "/a/b/run")), "exists and is not empty");
  EXPECT_NE(take_own_folder(base_ + "/a/b/run")->hint.find("assay run --resume"), std::string::npos);
  std::ofstream(base_ + "/a/b/run/due.json") << "x";
  EXPECT_NE(take_own_folder(base_ + "/a/b/run")->hint.find("assay sweep --collect"), std::string::npos);
}

TEST_F(OwnFolder, one_that_others_can_write_to_is_refused) {
  fs::create_directory(base_ + "/run");
  ::chmod((base_ + "/run").c_str(), 0777);
  EXPECT_EQ(what(take_own_folder(base_ + "/run")), "can be written to by other users");
  ::chmod((base_ + "/run").c_str(), 0775);
  EXPECT_EQ(what(check_own_folder(base_ + "/run")), "can be written to by other users");
  ::chmod((base_ + "/run").c_str(), 0755);
  EXPECT_EQ(what(check_own_folder(base_ + "/run")), "taken");
}

TEST_F(OwnFolder, a_file_that_decides_is_not_everyones_to_write) {
  std::ofstream(base_ + "/policy.json") << "{}";
  ::chmod((base_ + "/policy.json").c_str(), 0664);
  EXPECT_EQ(what(check_deciding_file(base_ + "/policy.json")), "taken");
  ::chmod((base_ + "/policy.json").c_str(), 0646);
  EXPECT_EQ(what(check_deciding_file(base_ + "/policy.json")),
            "has the mode 0646: every user of the machine may change it");
  fs::create_symlink(base_ + "/policy.json", base_ + "/link.json");
  EXPECT_NE(what(check_deciding_file(base_ + "/link.json")), "taken");
  EXPECT_EQ(what(check_deciding_file(base_ + "/absent.json")), "taken");  // its reader says so
}

TEST_F(OwnFolder, one_of_another_user_is_refused_and_so_is_a_link_of_his) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make a folder of another user";
  fs::create_directory(base_ + "/run");
  ASSERT_EQ(::chown((base_ + "/run").c_str(), 65534, 65534), 0);
  EXPECT_EQ(what(take_own_folder(base_ + "/run")), "belongs to another user (uid 65534)");
  fs::create_directory(base_ + "/mine");
  fs::create_directory_symlink(base_ + "/mine", base_ + "/link");
  EXPECT_EQ(what(take_own_folder(base_ + "/link")), "taken");
  ASSERT_EQ(::lchown((base_ + "/link").c_str(), 65534, 65534), 0);
  EXPECT_EQ(what(take_own_folder(base_ + "/link")), "is a symbolic link of another user (uid 65534)");
}

TEST_F(OwnFolder, a_guessable_name_is_made_for_this_user_alone_or_not_at_all) {
  EXPECT_EQ(what(make_private_folder(base_ + "/run")), "taken");
  struct stat info = {};
  ASSERT_EQ(::stat((base_ + "/run").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777U, 0700U);
  EXPECT_EQ(what(make_private_folder(base_ + "/run")), "exists already, though its name was made up just now");
  fs::create_directory_symlink(base_ + "/nowhere", base_ + "/dangling");
  EXPECT_EQ(what(make_private_folder(base_ + "/dangling")), "exists already, though its name was made up just now");
}

TEST_F(OwnFolder, a_planted_link_at_the_temporary_name_is_not_written_through) {
  const std::string victim = base_ + "/victim";
  std::ofstream(victim) << "secret";
  fs::create_directory(base_ + "/run");
  fs::create_symlink(victim, base_ + "/run/verdict.json.tmp");
  write_durably(base_ + "/run/verdict.json", "{}");
  EXPECT_EQ(*read_file(victim), "secret");
  EXPECT_EQ(*read_file(base_ + "/run/verdict.json"), "{}");
}

}  // namespace assay::files
