// The folder that evidence is written to: the caller's own, or none.
#include <filesystem>
#include <fstream>

#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "orchestrator/files/atomic_file.h"
#include "orchestrator/files/own_folder.h"
#include "probes/core/secret_file.h"

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

TEST_F(OwnFolder, a_file_that_decides_is_not_for_others_to_change) {
  const std::string path = base_ + "/policy.json", link = base_ + "/link.json";
  std::ofstream(path) << "{}";
  const auto with_mode = [&](mode_t mode) {
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    return what(check_deciding_file(path));
  };
  EXPECT_EQ(with_mode(0644), "taken");
  EXPECT_EQ(read_deciding_file(path).value(), "{}");
  EXPECT_EQ(with_mode(0646), "has mode 0646: others than its owner may change it");
  EXPECT_FALSE(read_deciding_file(path));
  fs::create_symlink(path, link);
  EXPECT_NE(what(check_deciding_file(link)), "taken") << "what it leads to is asked";
  EXPECT_EQ(with_mode(0644), "taken");
  EXPECT_EQ(what(check_deciding_file(link)), "taken") << "of this user";
  EXPECT_EQ(what(check_deciding_file(base_ + "/absent.json")), "taken");  // its reader says so
  EXPECT_EQ(read_deciding_file(base_).error().what, "is not a regular file");
}

TEST_F(OwnFolder, a_file_that_decides_is_of_the_user_or_root_and_its_group_has_no_others) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives a file to another user";
  constexpr uid_t kOther = 65534;
  const std::string path = base_ + "/policy.json", link = base_ + "/link.json";
  std::ofstream(path) << "{}";
  const auto of = [&](uid_t user, gid_t group, mode_t mode) {
    EXPECT_EQ(::chown(path.c_str(), user, group), 0);
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    return what(check_deciding_file(path));
  };
  EXPECT_EQ(of(0, 0, 0664), "taken") << "umask 002 with a group of this user alone";
  EXPECT_EQ(of(0, kOther, 0664), "has mode 0664: others than its owner may change it");
  EXPECT_EQ(of(kOther, 0, 0644), "belongs to user 65534, not to the user who runs assay");
  EXPECT_FALSE(read_deciding_file(path));
  ::setenv("SUDO_UID", "65534", 1);
  EXPECT_EQ(what(check_deciding_file(path)), "taken") << "the caller's own, under sudo";
  ::unsetenv("SUDO_UID");
  EXPECT_EQ(of(0, 0, 0644), "taken");
  fs::create_symlink(path, link);
  ASSERT_EQ(::lchown(link.c_str(), kOther, kOther), 0);
  EXPECT_EQ(what(check_deciding_file(link)), "is a link of user 65534, not of the user who runs assay");
  EXPECT_FALSE(read_deciding_file(link));
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
