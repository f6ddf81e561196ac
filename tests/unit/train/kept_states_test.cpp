// States in memory and in files come back whole, or not at all.
#include <array>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "tests/unit/fake_tree.h"
#include "workloads/train/engine/step_math.h"
#include "workloads/train/faults/kept_states.h"

namespace assay::train {
namespace {

class States : public ::testing::Test {
 protected:
  FakeTree folder_;
  KeptStates states_{folder_.path(), ""};
  std::array<float, 3> weights_ = {1, 2, 3};
  std::array<float, 2> moments_ = {4, 5};
  std::vector<std::span<float>> parts_ = {weights_, moments_};
};

TEST_F(States, come_back_from_a_file_bit_by_bit) {
  const std::uint64_t print = states_.take(1, 6, parts_).print;
  states_.write(Tier::local, 1, 6);
  weights_ = {};
  const auto found = states_.read(Tier::local, 1, 6, 5);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->print, print);
  put_back(found->values, parts_);
  EXPECT_EQ(weights_, (std::array<float, 3>{1, 2, 3}));
}

TEST_F(States, of_which_one_bit_differs_have_another_print) {
  const std::uint64_t print = states_.take(1, 6, parts_).print;
  states_.write(Tier::local, 1, 6);
  std::fstream file(states_.path(Tier::local, 1, 6), std::ios::binary | std::ios::in | std::ios::out);
  file.put('\1');
  file.close();
  EXPECT_NE(states_.read(Tier::local, 1, 6, 5)->print, print);
}

TEST_F(States, that_are_missing_or_of_another_size_are_none) {
  (void)states_.take(1, 6, parts_);
  states_.write(Tier::local, 1, 6);
  EXPECT_FALSE(states_.read(Tier::local, 1, 6, 4));
  EXPECT_FALSE(states_.read(Tier::local, 2, 6, 5));
  EXPECT_EQ(states_.find(2, 6), nullptr);
  EXPECT_FALSE(states_.has(Tier::shared));
}

TEST_F(States, of_older_steps_are_forgotten_and_their_files_removed) {
  for (const std::int64_t step : {0, 3, 6}) {
    (void)states_.take(1, step, parts_);
    states_.write(Tier::local, 1, step);
    states_.keep_only(1, step, std::max<std::int64_t>(0, step - 3));
  }
  EXPECT_EQ(states_.find(1, 0), nullptr);
  EXPECT_NE(states_.find(1, 3), nullptr);
  EXPECT_FALSE(std::filesystem::exists(states_.path(Tier::local, 1, 0)));
  EXPECT_TRUE(std::filesystem::exists(states_.path(Tier::local, 1, 3)));
}

TEST_F(States, of_another_size_than_the_memory_are_not_put_back) {
  EXPECT_THROW(put_back({1, 2}, parts_), std::logic_error);
}

}  // namespace
}  // namespace assay::train
