// Manifest, Merkle root and the walk through a folder.
#include <filesystem>

#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "orchestrator/files/digest.h"
#include "reports/evidence/manifest.h"
#include "reports/evidence/tree.h"
#include "tests/unit/run_fixture.h"

namespace assay::dossier {
namespace {

TEST(Merkle, roots_are_those_of_the_certificate_transparency_test_tree) {
  using namespace std::string_literals;
  // The leaves and roots of the reference implementation's merkle tree tests, sizes 0 to 8.
  const std::vector<std::string> leaves = {""s,
                                           "\x00"s,
                                           "\x10"s,
                                           "\x20\x21"s,
                                           "\x30\x31"s,
                                           "\x40\x41\x42\x43"s,
                                           "\x50\x51\x52\x53\x54\x55\x56\x57"s,
                                           "\x60\x61\x62\x63\x64\x65\x66\x67\x68\x69\x6a\x6b\x6c\x6d\x6e\x6f"s};
  const std::vector<std::string> roots = {"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
                                          "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
                                          "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
                                          "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
                                          "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
                                          "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
                                          "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
                                          "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
                                          "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328"};
  for (std::size_t size = 0; size < roots.size(); ++size) {
    EXPECT_EQ(evidence::merkle_root({leaves.begin(), leaves.begin() + static_cast<std::ptrdiff_t>(size)}), roots[size])
        << size;
  }
}

TEST(Manifest, is_what_sha256sum_prints_and_reads_back) {
  const evidence::Manifest manifest = {{"b/c.json", files::sha256("2")}, {"a", files::sha256("1")}};
  const std::string text = evidence::manifest_text(manifest);
  EXPECT_EQ(text, files::sha256("1") + "  a\n" + files::sha256("2") + "  b/c.json\n");
  EXPECT_EQ(evidence::read_manifest(text, "M").value(), manifest);
  const auto summary = evidence::summary_of(manifest, 2);
  EXPECT_EQ(summary.manifest_sha256, files::sha256(text));
  EXPECT_EQ(summary.file_count, 2U);
  EXPECT_EQ(summary.merkle_root,
            evidence::merkle_root({files::sha256("1") + "  a", files::sha256("2") + "  b/c.json"}));
}

std::string refusal(const std::string& text) {
  const auto manifest = evidence::read_manifest(text, "M");
  return manifest ? "accepted" : manifest.error().where + ": " + manifest.error().what;
}

TEST(Manifest, everything_else_is_refused_with_its_line) {
  const std::string a = files::sha256("1") + "  a\n";
  const std::string b = files::sha256("2") + "  b\n";
  EXPECT_EQ(refusal(""), "M: lists nothing");
  EXPECT_EQ(refusal(a + b.substr(0, b.size() - 1)), "M: line 2: is cut off");
  EXPECT_EQ(refusal(b + a), "M: line 2: is not in order, or is repeated");
  EXPECT_EQ(refusal(a + a), "M: line 2: is not in order, or is repeated");
  EXPECT_EQ(refusal(files::sha256("1") + " *a\n"), "M: line 1: is not '<SHA-256>  <path>'");
  EXPECT_EQ(refusal(std::string(64, 'A') + "  a\n"), "M: line 1: is not '<SHA-256>  <path>'");
  EXPECT_EQ(refusal(files::sha256("1") + "  A\n" + a), "M: line 2: has a path that differs from another only in case");
  for (const std::string bad :
       {"../a", "/a", "a//b", "a/./b", "a/../b", "-a", "a/-b", "a b", "a\\b", "a\tb", "\xc3\xa4", "a/", "a\r"}) {
    EXPECT_EQ(refusal(files::sha256("1") + "  " + bad + "\n"), "M: line 1: has a path that is not plain and relative")
        << bad;
  }
}

class TreeTest : public testing::Test {
 protected:
  void SetUp() override { fixture::write(path("sub/a"), "content"); }
  [[nodiscard]] std::string path(const std::string& name) const { return folder_.path() + "/" + name; }
  [[nodiscard]] std::string walk(const evidence::TreeLimits& limits = {}) const {
    std::string seen;
    const auto problem = evidence::walk_tree(
        folder_.path(), {"known"},
        [&](const std::string& name, const std::string& bytes) -> std::optional<InputError> {
          seen += name + "=" + bytes + ";";
          return std::nullopt;
        },
        limits);
    return problem ? problem->where + ": " + problem->what : seen;
  }
  fixture::TemporaryFolder folder_;
};

TEST_F(TreeTest, every_file_is_read_once_in_order_and_known_ones_are_not) {
  fixture::write(path("z"), "last");
  fixture::write(path("known"), "not read again");
  fixture::write(path("sub/known"), "another");
  EXPECT_EQ(walk(), "sub/a=content;sub/known=another;z=last;");
}

TEST_F(TreeTest, a_symbolic_link_to_a_file_is_refused_by_name) {
  std::filesystem::create_symlink(path("sub/a"), path("link"));
  EXPECT_EQ(walk(), "link: is a symbolic link");
}

TEST_F(TreeTest, a_symbolic_link_to_a_folder_is_refused_by_name) {
  std::filesystem::create_directory_symlink(path("sub"), path("link"));
  EXPECT_EQ(walk(), "link: is a symbolic link");
}

TEST_F(TreeTest, a_known_file_that_became_a_link_is_refused) {
  std::filesystem::create_symlink(path("sub/a"), path("known"));
  EXPECT_EQ(walk(), "known: is a symbolic link");
}

TEST_F(TreeTest, a_pipe_is_refused_without_waiting_for_it) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(walk(), "pipe: is not a regular file");
  const auto bytes = evidence::read_plain_file(folder_.path(), "pipe", 100);
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().what, "is not a regular file");
}

TEST_F(TreeTest, a_second_hard_link_is_refused) {
  std::filesystem::create_hard_link(path("sub/a"), path("twin"));
  EXPECT_EQ(walk(), "sub/a: has a second hard link, through which it could change");
}

TEST_F(TreeTest, a_name_that_is_not_plain_is_refused_and_shown_harmlessly) {
  fixture::write(path("evil\x1b[2Jname"), "x");
  EXPECT_EQ(walk(), "evil?[2Jname: has a name that is not plain");
}

TEST_F(TreeTest, limits_hold) {
  fixture::write(path("b"), "1234567890");
  EXPECT_EQ(walk({.max_file_bytes = 9}), "b: 10 bytes, over the limit of 9");
  EXPECT_EQ(walk({.max_total_bytes = 12}), "sub/a: 7 bytes, over the limit of 2");
  EXPECT_EQ(walk({.max_files = 1}), ".: has too many files");
  EXPECT_EQ(walk({.max_depth = 1}), "sub: is deeper than 1 levels");
}

}  // namespace
}  // namespace assay::dossier
