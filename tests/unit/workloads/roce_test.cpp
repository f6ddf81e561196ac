// roce: ranks and target are threads of this process, over a libibverbs that moves its memory.
#include "workloads/crossing/roce.h"

#include <cstdlib>
#include <filesystem>
#include <future>

#include <gtest/gtest.h>

#include "tests/unit/fake_tree.h"
#include "tests/unit/paths.h"
#include "tests/unit/verbs/verbs_tree.h"
#include "tests/unit/workloads/listener.h"

namespace assay::crossing {
namespace {

const Target kHere{.address = "127.0.0.1", .port = 0, .timeout = {0.2}};

class roce : public testing::Test {
 protected:
  roce() {
    setenv("ASSAY_LIBRARY_PATH", build_file("tests/fakes/verbs").c_str(), 1);
    verbs::add_port(tree_, {.device = "fake0", .gids = {{"0000:0000:0000:0000:0000:ffff:7f00:0001", "RoCE v2"}}});
  }
  ~roce() override {
    unsetenv("ASSAY_LIBRARY_PATH");
    unsetenv("ASSAY_FAKE_VERBS");
  }
  [[nodiscard]] NoteFolder notes() const { return {shared_.path(), kToken}; }
  [[nodiscard]] auto trying(int rank) const {
    return std::async(std::launch::async,
                      [this, rank] { return try_roce(kHere, notes(), rank, after({5}), tree_.path()); });
  }

  FakeTree tree_, shared_;
};

TEST_F(roce, a_write_that_is_acknowledged_is_an_answer_and_arrives_and_one_that_is_not_is_neither) {
  struct Case {
    const char* fault;
    Outcome outcome;
    const char* evidence;
  };
  for (const Case& one : {Case{"", Outcome::answered, "RoCE v2: the write was acknowledged"},
                          {"fail", Outcome::no_answer, "nothing came back to the write"},
                          {"lose", Outcome::no_answer, "nothing came back to the write"}}) {
    setenv("ASSAY_FAKE_VERBS", one.fault, 1);
    const bool arrives = one.outcome == Outcome::answered;
    auto crossing = trying(0), control = trying(1);
    const Arrivals seen = watch_roce(kHere, notes(), after({arrives ? 5.0 : 0.4}), tree_.path());
    for (auto* side : {&crossing, &control}) {
      const Tried tried = side->get();
      EXPECT_EQ(tried.outcome, one.outcome) << one.fault << ": " << tried.evidence;
      EXPECT_EQ(tried.evidence, one.evidence);
    }
    EXPECT_EQ((std::pair{seen.control, seen.crossing}), (std::pair{arrives, arrives})) << one.fault;
    EXPECT_TRUE(std::filesystem::is_empty(shared_.path())) << "notes are left";
  }
}

TEST_F(roce, the_mark_of_one_rank_is_not_that_of_the_other) {
  auto control = trying(1);
  const Arrivals seen = watch_roce(kHere, notes(), after({0.5}), tree_.path());
  EXPECT_EQ(control.get().outcome, Outcome::answered);
  EXPECT_TRUE(seen.control);
  EXPECT_FALSE(seen.crossing);
}

TEST_F(roce, without_a_target_or_a_port_nothing_was_tried) {
  const auto tried = [&](const std::string& root) { return try_roce(kHere, notes(), 0, after({0.1}), root); };
  const Tried alone = tried(tree_.path()), portless = tried(shared_.path());
  EXPECT_EQ(alone.outcome, Outcome::unclear);
  EXPECT_NE(alone.evidence.find("no queue pair came into"), std::string::npos) << alone.evidence;
  EXPECT_EQ(portless.outcome, Outcome::unclear);
  EXPECT_NE(portless.evidence.find("127.0.0.1 is on no active port of RoCE v2"), std::string::npos);
  EXPECT_THROW((void)watch_roce(kHere, notes(), after({0.1}), shared_.path()), std::runtime_error);
}

TEST_F(roce, a_note_by_another_token_is_none) {
  const Note note(notes(), "n", "text");
  EXPECT_EQ(note_in(notes(), "n"), "text");
  EXPECT_FALSE(note_in({shared_.path(), "another"}, "n"));
  EXPECT_FALSE(note_in(notes(), "m"));
}

}  // namespace
}  // namespace assay::crossing
