// memory_residue: memory of this machine, and of the fake CUDA driver, which may leave what was freed to the next
// process.
#include <gtest/gtest.h>

#include "tests/unit/fake_tree.h"
#include "tests/unit/paths.h"
#include "tests/unit/probe_process.h"

namespace assay::crossing {
namespace {

/// The record of a run with these flags and this fault of the driver; what is freed goes through a file of `tree`.
Record residue(const FakeTree& tree, const char* fault, const std::vector<std::string>& flags) {
  const std::string probe = probe_file("memory_residue");
  std::vector<std::string> words = {"/usr/bin/env",
                                    "ASSAY_LIBRARY_PATH=" + build_file("tests/fakes/cuda"),
                                    std::string("ASSAY_FAKE_CUDA=") + fault,
                                    "ASSAY_FAKE_CUDA_GPUS=1",
                                    "ASSAY_FAKE_CUDA_LEFT=" + tree.path("left"),
                                    probe,
                                    "--size=4MiB"};
  words.insert(words.end(), flags.begin(), flags.end());
  return record_in(probe, run_probe(words));
}

Value own_mark(const Record& record) {
  for (const auto& condition : record.conditions)
    if (condition.name == "own_mark") return condition.value;
  return std::string("missing");
}

TEST(memory_residue, the_kernel_clears_what_it_gives_and_the_writer_sees_its_mark) {
  const Record record = residue(FakeTree(), "", {});
  EXPECT_EQ(record.end.status, Status::complete) << record.end.reason;
  EXPECT_GE(count_of(record, "residue_pages"), 2U);  // anonymous, tmpfs; huge pages where there are some
  EXPECT_EQ(sum_of(record, "residue_pages"), 0);
  EXPECT_GE(sum_of(record, "memory_searched"), 2.0 * (4 << 20));
  EXPECT_EQ(own_mark(record), Value{std::string("seen")});
}

TEST(memory_residue, what_a_driver_leaves_to_the_next_process_is_found_and_other_bytes_are_not) {
  struct Case {
    const char* fault;
    double pages;
  };
  for (const Case& one : {Case{"", 0}, Case{"residue", 1}}) {
    const Record record = residue(FakeTree(), one.fault, {"--memory=gpu"});
    EXPECT_EQ(record.end.status, Status::complete) << record.end.reason;
    EXPECT_EQ(sum_of(record, "residue_pages"), one.pages) << one.fault;
    EXPECT_EQ(sum_of(record, "memory_searched"), 4 << 20);
    EXPECT_EQ(own_mark(record), Value{std::string("seen")});
  }
}

TEST(memory_residue, the_tenant_that_comes_finds_the_mark_of_the_one_that_went_and_no_other) {
  struct Case {
    const char* mark;
    double pages;
  };
  for (const Case& one : {Case{"lease-7", 1}, Case{"lease-8", 0}}) {
    const FakeTree tree;
    const Record left = residue(tree, "residue", {"--memory=gpu", "--phase=leave", "--mark=lease-7"});
    EXPECT_EQ(own_mark(left), Value{std::string("seen")}) << left.end.reason;
    EXPECT_EQ(count_of(left, "residue_pages"), 0U);
    const Record found = residue(tree, "residue", {"--memory=gpu", "--phase=look", std::string("--mark=") + one.mark});
    EXPECT_EQ(sum_of(found, "residue_pages"), one.pages) << one.mark;
    EXPECT_EQ(own_mark(found), Value{std::string("unseen")});
  }
}

TEST(memory_residue, a_gpu_without_memory_and_a_node_without_a_gpu_are_no_pass) {
  EXPECT_EQ(residue(FakeTree(), "full", {"--memory=gpu"}).end.status, Status::error);
  EXPECT_EQ(residue(FakeTree(), "none", {"--memory=gpu"}).end.status, Status::skip);
  EXPECT_EQ(run_probe({probe_file("memory_residue"), "--phase=look"}).exit_code, kExitError);
}

}  // namespace
}  // namespace assay::crossing
