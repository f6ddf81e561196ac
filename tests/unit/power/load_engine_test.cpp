// load_engine on units that only count: shares of a level, a unit that fails, one that cannot be prepared.
#include "probes/power/load_engine.h"

#include <chrono>
#include <stdexcept>
#include <thread>

#include <gtest/gtest.h>

namespace assay::power {
namespace {

using Clock = std::chrono::steady_clock;

/// What a unit did.
struct Log {
  std::atomic<std::int64_t> busy_us{0};
  std::atomic<int> works{0}, finished{0}, closed{0};
};

/// Sleeps a millisecond for each work().
class Sleeper : public LoadUnit {
 public:
  Sleeper(Log& log, int fails_at) : log_(log), fails_at_(fails_at) {}
  void prepare() override {
    if (fails_at_ == 0) throw std::runtime_error("no operands");
  }
  void work() override {
    const auto begin = Clock::now();
    if (++log_.works == fails_at_) throw std::runtime_error("the unit is gone");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    log_.busy_us += std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - begin).count();
  }
  void finish() override { ++log_.finished; }
  void close() override { ++log_.closed; }
  [[nodiscard]] double flop_of_work() const override { return 10; }
  [[nodiscard]] std::uint64_t mismatches() const override { return log_.works > 0 ? 1 : 0; }

 private:
  Log& log_;
  int fails_at_;
};

LoadPart part(Log& log, std::size_t place, std::size_t places, bool counted = true, int fails_at = -1) {
  LoadPart one;
  one.unit = std::make_unique<Sleeper>(log, fails_at);
  one.place = place;
  one.places = places;
  one.counted = counted;
  return one;
}

std::vector<LoadPart> parts(std::initializer_list<LoadPart*> all) {
  std::vector<LoadPart> list;
  for (LoadPart* one : all) list.push_back(std::move(*one));
  return list;
}

template <class... Part>
std::vector<LoadPart> parts(Part... one) {
  return parts({&one...});
}

void pass(int milliseconds) { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); }

/// The share of `wall_ms` that a unit worked, which a busy machine makes smaller.
double share(const Log& log, double wall_ms) { return static_cast<double>(log.busy_us) / 1000 / wall_ms; }

TEST(LoadEngine, at_rest_no_unit_works_and_each_can_be_asked) {
  Log first, second;
  LoadEngine engine(parts(part(first, 0, 1), part(second, 0, 1)));
  engine.work_at(1);
  (void)engine.last_begin();
  engine.rest();
  const int works = first.works + second.works;
  std::uint64_t wrong = 0;
  engine.each([&](const LoadUnit& unit) { wrong += unit.mismatches(); });
  EXPECT_EQ(wrong, 2U);
  EXPECT_GT(first.finished, 0);
  pass(20);
  EXPECT_EQ(first.works + second.works, works);
}

TEST(LoadEngine, a_unit_that_failed_does_not_rest_for_ever) {
  Log log;
  LoadEngine engine(parts(part(log, 0, 1, true, 1)));
  engine.work_at(1);
  (void)engine.last_begin();
  EXPECT_THROW(engine.rest(), std::runtime_error);
}

TEST(LoadEngine, units_that_share_a_level_work_one_after_the_other_and_one_for_a_part) {
  Log first, second, third;
  LoadEngine engine(parts(part(first, 0, 3), part(second, 1, 3), part(third, 2, 3)));
  engine.work_at(0.5);  // one and a half of three
  const auto begin = Clock::now();
  pass(400);
  engine.work_at(0);
  const double wall_ms = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
  EXPECT_GT(share(first, wall_ms), 0.8);
  EXPECT_GT(share(second, wall_ms), 0.3);
  EXPECT_LT(share(second, wall_ms), 0.7);
  EXPECT_EQ(third.works, 0);
}

TEST(LoadEngine, a_unit_with_a_level_of_its_own_works_for_that_part_of_its_time_and_is_finished_in_each_pause) {
  Log alone;
  LoadEngine engine(parts(part(alone, 0, 1)));
  engine.work_at(0.25);
  const auto begin = Clock::now();
  pass(400);
  engine.work_at(0);
  const double wall_ms = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
  EXPECT_GT(share(alone, wall_ms), 0.1);
  EXPECT_LT(share(alone, wall_ms), 0.4);
  EXPECT_GT(alone.finished, 5);
}

TEST(LoadEngine, only_counted_units_are_in_the_rate) {
  Log counted, beside;
  LoadEngine engine(parts(part(counted, 0, 1), part(beside, 0, 1, false)));
  engine.work_at(1);
  pass(50);
  engine.work_at(0);
  pass(20);
  EXPECT_GT(beside.works, 0);
  EXPECT_DOUBLE_EQ(engine.flop(), 10.0 * counted.works);
}

TEST(LoadEngine, the_least_level_wakes_one_of_those_that_share_and_a_tenth_of_one_alone) {
  Log a, b, c;
  EXPECT_DOUBLE_EQ(LoadEngine(parts(part(a, 0, 4), part(b, 1, 4))).least_level(), 0.25);
  EXPECT_DOUBLE_EQ(LoadEngine(parts(part(c, 0, 1))).least_level(), 0.1);
}

TEST(LoadEngine, what_ends_a_unit_is_told_and_the_others_go_on) {
  Log fails, works;
  LoadEngine engine(parts(part(fails, 0, 1, true, 3), part(works, 0, 1)));
  EXPECT_NO_THROW(engine.check());
  engine.work_at(1);
  for (int i = 0; i < 2000 && fails.works < 3; ++i) pass(1);
  pass(20);
  EXPECT_THROW(
      try { engine.check(); } catch (const std::runtime_error& error) {
        EXPECT_STREQ(error.what(), "the unit is gone");
        throw;
      },
      std::runtime_error);
  const int so_far = works.works;
  pass(50);
  EXPECT_GT(works.works, so_far);
  EXPECT_EQ(fails.works, 3);
}

TEST(LoadEngine, a_unit_that_cannot_be_prepared_is_the_error_of_the_whole_and_no_thread_is_left) {
  Log bad, good;
  EXPECT_THROW(LoadEngine(parts(part(bad, 0, 1, true, 0), part(good, 0, 1))), std::runtime_error);
  EXPECT_EQ(good.closed, 1);
}

TEST(LoadEngine, its_end_finishes_and_closes_what_is_at_work) {
  Log log;
  {
    LoadEngine engine(parts(part(log, 0, 1)));
    engine.work_at(1);
    pass(20);
  }
  EXPECT_EQ(log.closed, 1);
  EXPECT_GE(log.finished, 1);
  const int at_end = log.works;
  pass(20);
  EXPECT_EQ(log.works, at_end);
}

}  // namespace
}  // namespace assay::power
