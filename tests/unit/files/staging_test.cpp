// Files and folders that appear completely or not at all, and never in place of others.
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <utility>

#include <sys/stat.h>

#include <gtest/gtest.h>

#include "orchestrator/files/atomic_file.h"

namespace assay::files {
namespace {

namespace fs = std::filesystem;

/// A folder that is removed after the test.
struct Scratch {
  Scratch() {
    if (::mkdtemp(path.data()) == nullptr) throw std::runtime_error("no temporary folder");
  }
  ~Scratch() { fs::remove_all(path); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::string path = fs::temp_directory_path() / "assay-files-XXXXXX";
};

std::string said(const std::optional<InputError>& problem) { return problem ? problem->what : "done"; }

class StagingTest : public testing::Test {
 protected:
  [[nodiscard]] std::size_t entries() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(scratch_.path), fs::directory_iterator()));
  }
  Scratch scratch_;
  std::string target_ = scratch_.path + "/target";
};

TEST_F(StagingTest, nothing_is_left_of_what_was_not_published) {
  {
    const auto staging = StagingDirectory::beside(target_);
    ASSERT_TRUE(staging) << staging.error().text();
    EXPECT_EQ(said(staging->write("a/b/file", "text")), "done");
    EXPECT_EQ(entries(), 1U);
  }
  EXPECT_EQ(entries(), 0U);
}

TEST_F(StagingTest, the_published_folder_has_every_file_and_only_it_stays) {
  {
    auto staging = StagingDirectory::beside(target_);
    ASSERT_TRUE(staging);
    ASSERT_EQ(said(staging->write("out/a/file", "text")), "done");
    ASSERT_EQ(said(staging->write("scratch", "else")), "done");
    const StagingDirectory moved = std::move(*staging);
    EXPECT_EQ(said(moved.publish("out")), "done");
  }
  EXPECT_EQ(read_file(target_ + "/a/file").value(), "text");
  EXPECT_EQ(entries(), 1U);
}

TEST_F(StagingTest, an_existing_target_is_kept_though_it_is_an_empty_folder) {
  const auto staging = StagingDirectory::beside(target_);
  ASSERT_TRUE(staging);
  ASSERT_EQ(said(staging->write("out/file", "text")), "done");
  fs::create_directory(target_);
  EXPECT_EQ(said(staging->publish("out")), "cannot be written: File exists");
  EXPECT_TRUE(fs::is_empty(target_));
}

TEST_F(StagingTest, without_the_folder_of_the_target_it_is_refused) {
  const auto staging = StagingDirectory::beside(scratch_.path + "/nowhere/target");
  ASSERT_FALSE(staging);
  EXPECT_EQ(staging.error().what, "cannot be written: No such file or directory");
}

TEST_F(StagingTest, a_file_is_created_with_its_mode_and_not_through_a_dangling_link) {
  ASSERT_EQ(said(create_file(target_, "secret", 0600)), "done");
  struct stat info = {};
  ASSERT_EQ(::stat(target_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
  EXPECT_EQ(said(create_file(target_, "other", 0600)), "cannot be written: File exists");
  EXPECT_EQ(read_file(target_).value(), "secret");
  const std::string link = scratch_.path + "/link";
  fs::create_symlink(scratch_.path + "/victim", link);
  EXPECT_EQ(said(create_file(link, "secret", 0600)), "cannot be written: File exists");
  EXPECT_THROW(write_new_durably(link, "secret"), std::system_error);
  EXPECT_FALSE(fs::exists(scratch_.path + "/victim"));
}

TEST_F(StagingTest, a_link_in_the_place_of_the_temporary_file_is_not_followed) {
  fs::create_symlink(scratch_.path + "/victim", target_ + ".tmp");
  EXPECT_EQ(said(replace_file(target_, "text")), "done");
  EXPECT_EQ(read_file(target_).value(), "text");
  EXPECT_FALSE(fs::exists(scratch_.path + "/victim"));
  EXPECT_EQ(entries(), 1U);
}

TEST_F(StagingTest, a_failed_replacement_leaves_no_temporary_file) {
  fs::create_directories(target_ + "/inside");
  EXPECT_EQ(said(replace_file(target_, "text")), "cannot be written: Is a directory");
  EXPECT_EQ(entries(), 1U);
}

}  // namespace
}  // namespace assay::files
