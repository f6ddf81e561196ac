// Callers of the listener: who keeps a place when there are more than places.
#include <gtest/gtest.h>

#include "orchestrator/launch/callers.h"

namespace assay::launch {
namespace {

using namespace std::chrono_literals;

const std::chrono::steady_clock::time_point kNow(1000s);

class CallersTest : public testing::Test {
 protected:
  Callers::Place call(const std::string& from, bool speaks = false, std::chrono::seconds ago = 0s) {
    const int number = ++calls_;
    return callers_.add(
        {.from = from, .since = kNow - ago, .speaks = speaks, .close = [this, number] { closed_.push_back(number); }});
  }

  Callers callers_{3};
  std::vector<int> closed_;
  int calls_ = 0;
};

}  // namespace

TEST_F(CallersTest, none_goes_while_there_are_places) {
  call("a");
  call("a");
  EXPECT_TRUE(callers_.has_room(kNow));
  EXPECT_TRUE(closed_.empty());
}

TEST_F(CallersTest, the_oldest_of_the_address_with_the_most_silent_ones_goes) {
  call("honest");
  call("flood");
  call("flood");
  EXPECT_TRUE(callers_.has_room(kNow));
  EXPECT_EQ(closed_, std::vector{2});
  EXPECT_TRUE(callers_.has_room(kNow));  // it is on its way out: its place is free
  EXPECT_EQ(closed_, std::vector{2});
}

TEST_F(CallersTest, who_has_just_spoken_stays_and_a_silent_one_goes) {
  call("flood", true);
  call("flood", true);
  call("honest");
  EXPECT_TRUE(callers_.has_room(kNow));
  EXPECT_EQ(closed_, std::vector{3});
}

TEST_F(CallersTest, when_all_have_just_spoken_no_more_are_taken) {
  for (int i = 0; i < 3; ++i) call("n" + std::to_string(i), true);
  EXPECT_FALSE(callers_.has_room(kNow));
  EXPECT_TRUE(closed_.empty());
  EXPECT_TRUE(callers_.has_room(kNow + 3s));  // they had time to say who they are
  EXPECT_EQ(closed_, std::vector{1});
}

TEST_F(CallersTest, all_are_closed_once) {
  call("a");
  const auto place = call("b");
  callers_.close_all();
  callers_.close_all();
  EXPECT_EQ(closed_, (std::vector{1, 2}));
  callers_.leave(place);
  EXPECT_EQ(callers_.size(), 1U);
}

}  // namespace assay::launch
