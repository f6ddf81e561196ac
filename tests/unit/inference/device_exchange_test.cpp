// The exchange of GPUs on fake devices and a fake wire: right in every byte for every family, bytes counted from the
// messages, and what is lost, doubled, stale or changed is named with both ranks and a token.
#include <gtest/gtest.h>

#include "tests/unit/inference/fake_rows.h"
#include "workloads/inference/slot_layout.h"

namespace assay::inference::device_exchange_test {
namespace {

const ExchangeJob kJob{.routing = {.tokens = 24, .experts = 6, .top_k = 2, .ranks = 3, .seed = 4},
                       .hidden = 256,
                       .out_number = 1,
                       .back_number = 2,
                       .nonce = 99};

std::vector<MoeSteps> stepped(const ExchangeJob& job, Family family, const std::function<void(Message&)>& change = {},
                              std::uint64_t count = 1, std::uint64_t lead = 0) {
  std::vector<MoeSteps> steps(train::sized(job.routing.ranks));
  (void)on_fake_ranks(
      job,
      [&](std::size_t rank, FakeExchange& exchange) {
        steps[rank] = exchange.steps(Router(job.routing, family), 0, count, lead);
      },
      change);
  return steps;
}

std::string told(const std::vector<MoeSteps>& steps) {
  std::string all;
  for (const auto& rank : steps) {
    for (const auto& words : rank.findings.words) all += words + "\n";
  }
  return all;
}

std::uint64_t found(const std::vector<MoeSteps>& steps) {
  std::uint64_t count = 0;
  for (const auto& rank : steps) count += rank.findings.count;
  return count;
}

/// Group `number` from rank 0 to rank 1 is changed by `change`.
std::function<void(Message&)> towards_rank_1(std::size_t number, const std::function<void(Message&)>& change) {
  return [=](Message& message) {
    if (message.from == 0 && message.to == 1 && message.number == number) change(message);
  };
}
constexpr std::size_t kOut = 0, kBack = 1;  // groups of one step without a lead

TEST(DeviceExchange, is_right_for_every_family_and_both_ways_to_copy) {
  for (const bool once : {true, false}) {
    ExchangeJob job = kJob;
    job.once_per_rank = once;
    for (const auto& [family, word] : words_of(Family{})) {
      const auto steps = stepped(job, family, {}, kMostSteps, 3);
      EXPECT_EQ(found(steps), 0U) << word << ": " << told(steps);
      for (const auto& rank : steps) {
        EXPECT_EQ(rank.dispatch.size(), kMostSteps);
        EXPECT_TRUE(rank.pair.has_value());
      }
    }
  }
}

TEST(DeviceExchange, is_right_where_ranks_put_their_slots_into_the_memory_of_others) {
  using Putting = DeviceExchange<FakeRows, FakePuts>;
  for (const std::int64_t ranks : {1, 2, 3, 5}) {
    ExchangeJob job = kJob;
    job.routing = {.tokens = 40, .experts = 30, .top_k = 3, .ranks = ranks, .seed = 4};
    for (const auto& [family, word] : words_of(Family{})) {
      if (ranks == 1 && family != Family::uniform) continue;  // not every family is of one rank
      std::vector<MoeSteps> steps(train::sized(ranks));
      (void)on_fake_ranks<FakePuts>(job, [&](std::size_t rank, Putting& exchange) {
        for (std::uint64_t time = 0; time < 2; ++time) {
          steps[rank] = exchange.steps(Router(job.routing, family), time * kMostSteps, kMostSteps, 3);
          if (rank < 2 && ranks > 1) {
            EXPECT_EQ(exchange.round_trip(rank == 0 ? 1 : 0), 20) << word;
          }
        }
      });
      EXPECT_EQ(found(steps), 0U) << ranks << ' ' << word << ": " << told(steps);
    }
  }
}

TEST(PutCounts, of_a_pair_and_of_all_are_what_the_other_raises) {
  PutCounts a(3, 0), b(3, 1);
  const std::vector<collective::Part> none(3), to_b = {{}, {.offset = 8, .bytes = 16}, {}},
                                               from_a = {{.offset = 32, .bytes = 16}, {}, {}};
  const std::vector<std::uint64_t> at = {7, 32, 9};
  const PutPlan puts = a.puts(to_b, {.at = at});
  EXPECT_EQ(std::pair(puts.from[1], puts.at[1]), std::pair(std::uint64_t{8}, std::uint64_t{32}));
  EXPECT_EQ(std::pair(puts.bytes[0], puts.bytes[1]), std::pair(std::uint64_t{0}, std::uint64_t{16}));
  for (const bool all : {false, true, false}) {
    const SignalPlan of_a = a.signals(to_b, none, {.at = at, .all = all});
    const SignalPlan of_b = b.signals(none, from_a, {.at = at, .all = all});
    EXPECT_GT(of_a.raise[1], 0U);
    EXPECT_EQ(of_a.raise[1], of_b.await[0]);
    EXPECT_EQ(of_b.raise[0], of_a.await[1]);
    EXPECT_EQ(of_b.raise[0] != 0, all);
    EXPECT_EQ(of_a.raise[2] != 0, all);
    EXPECT_EQ(of_a.raise[0] + of_a.await[0], 0U);
  }
  EXPECT_THROW(PutCounts(kMostPutRanks + 1, 0), std::runtime_error);
}

TEST(DeviceExchange, is_right_for_words_that_are_no_multiple_of_16_bytes) {
  ExchangeJob job = kJob;
  job.hidden = 12;
  for (const std::int64_t number : {1, 2, 4}) {
    job.out_number = number;
    job.back_number = 4;
    const auto steps = stepped(job, Family::zipf, {}, kMostSteps, 1);
    EXPECT_EQ(found(steps), 0U) << told(steps);
  }
}

TEST(DeviceExchange, counts_the_bytes_of_its_messages_by_where_they_go) {
  ExchangeJob job = kJob;
  job.routing = {.tokens = 24, .experts = 4, .top_k = 4, .ranks = 4, .seed = 4};  // every token goes to every rank once
  job.ranks_per_node = 2;
  std::vector<MoeSteps> steps(4);
  const std::uint64_t sent = on_fake_ranks(job, [&](std::size_t rank, FakeExchange& exchange) {
    steps[rank] = exchange.steps(Router(job.routing, Family::spread), 0, 1, 0);
  });
  std::uint64_t counted = 0;
  for (const auto& rank : steps) {
    EXPECT_EQ(rank.traffic.own, 6);
    EXPECT_EQ(rank.traffic.node, 6);
    EXPECT_EQ(rank.traffic.network, 12);
    EXPECT_EQ(rank.traffic.slots, 24);
    EXPECT_EQ(rank.traffic.node_bytes, 6 * (job.out_slot() + job.back_slot()));
    EXPECT_EQ(rank.traffic.network_bytes, 12 * (job.out_slot() + job.back_slot()));
    counted += rank.traffic.node_bytes + rank.traffic.network_bytes;
  }
  EXPECT_EQ(counted, sent);
  EXPECT_EQ(job.out_bytes(), 256U + 2 * 4U);  // FP8, with two scales
}

TEST(DeviceExchange, times_what_a_step_does_and_neither_checks_nor_meetings) {
  // On the fake device a kernel takes 1 s, a group of messages 10 s, a meeting 100 s.
  for (const auto& rank : stepped(kJob, Family::spread, {}, 2, 1)) {
    EXPECT_EQ(rank.dispatch, (std::vector<double>{11, 11}));
    EXPECT_EQ(rank.combine, (std::vector<double>{11, 11}));
    EXPECT_EQ(rank.self, (std::vector<double>{3, 3}));
    EXPECT_EQ(rank.wait, (std::vector<double>{120, 120}));  // with the meeting after the experts' work, as on hosts
    EXPECT_EQ(rank.pair, 23);
  }
}

TEST(DeviceExchange, of_a_gpu_that_hangs_is_named_by_its_part_and_whether_it_waits_for_others) {
  struct Seen {
    std::size_t passed;
    std::string words;
    bool waits;
  };
  const Seen cases[] = {{0, "meeting before a step, step 1 of 2", true},
                        {1, "packing, step 1 of 2", false},
                        {2, "dispatch, step 1 of 2", true},
                        {4, "work of experts, step 1 of 2", false},
                        {6, "combine, step 1 of 2", true},
                        {7, "adding up, step 1 of 2", false},
                        {12, "work of experts, step 2 of 2", false},
                        {16, "pairs of dispatch and combine", true}};
  const FakeExchange* first = nullptr;
  std::vector<cuda::InHand> seen;
  (void)on_fake_ranks(
      kJob,
      [&](std::size_t rank, FakeExchange& exchange) {
        if (rank == 0) first = &exchange;
        (void)exchange.steps(Router(kJob.routing, Family::spread), 0, 2, 0);  // only the state on its way counts
      },
      [&](Message& message) {
        if (message.from != 0 || !seen.empty()) return;  // in the thread of rank 0
        for (const Seen& one : cases)
          seen.push_back(first->in_hand([&](std::size_t mark) { return mark < one.passed; }));
      });
  ASSERT_EQ(seen.size(), std::size(cases));
  for (std::size_t i = 0; i < std::size(cases); ++i) {
    EXPECT_EQ(seen[i].words, cases[i].words);
    EXPECT_EQ(seen[i].waits, cases[i].waits) << cases[i].words;
  }
}

TEST(DeviceExchange, after_a_rest_sends_nothing_before_its_step) {
  std::vector<std::size_t> before;
  std::mutex mutex;
  bool rested = false;
  ExchangeJob job = kJob;
  job.routing = {.tokens = 8, .experts = 2, .top_k = 1, .ranks = 1, .seed = 4};
  (void)on_fake_ranks(
      job,
      [&](std::size_t, FakeExchange& exchange) {
        const auto steps = exchange.steps(Router(job.routing, Family::spread), 0, 1, 0, [&] { rested = true; });
        EXPECT_FALSE(steps.pair.has_value());
      },
      [&](Message& message) {
        const std::lock_guard lock(mutex);
        if (!rested) before.push_back(message.number);
      });
  EXPECT_TRUE(before.empty());
}

TEST(DeviceExchange, of_one_rank_alone_sends_to_itself_and_checks_it) {
  ExchangeJob job = kJob;
  job.routing = {.tokens = 8, .experts = 4, .top_k = 2, .ranks = 1, .seed = 4};
  std::size_t messages = 0;
  auto steps = stepped(job, Family::uniform, [&](Message& message) { messages += message.bytes.empty() ? 0 : 1; });
  EXPECT_EQ(found(steps), 0U) << told(steps);
  EXPECT_EQ(messages, 2U);
  EXPECT_EQ(steps[0].traffic.own, 16);
  EXPECT_EQ(steps[0].traffic.node_bytes + steps[0].traffic.network_bytes, 0U);
  steps = stepped(job, Family::uniform, [](Message& message) { message.lost = true; });
  EXPECT_NE(told(steps).find("8 slots from rank 0 to rank 0 have a head that none of its tokens has"),
            std::string::npos)
      << told(steps);
}

/// One change of a message and what must be said of it.
struct Fault {
  const char* name;
  std::size_t number;
  std::function<void(Message&)> change;
  std::vector<std::string> said;
};

TEST(DeviceExchange, names_what_is_lost_doubled_or_changed_with_both_ranks_and_a_token) {
  const std::size_t out = kJob.out_slot(), head = sizeof(SlotHead);
  const std::vector<Fault> faults = {
      {"a bit of a number",
       kOut,
       [&](Message& m) { m.bytes[out - kWord - 1] ^= std::byte{0x10}; },
       {"1 tokens of rank 0 have other bytes on rank 1, token", "what rank 1 made of 1 tokens of rank 0 is missing or",
        "the sums of 1 tokens of rank 0 are wrong"}},
      {"a bit of a scale",
       kOut,
       [&](Message& m) { m.bytes[out - 1] ^= std::byte{1}; },
       {"1 tokens of rank 0 have other bytes on rank 1, token"}},
      {"a head",
       kOut,
       [](Message& m) { m.bytes[9] ^= std::byte{1}; },
       {"1 slots from rank 0 to rank 1 have a head that none of its tokens has",
        "1 tokens of rank 0 were lost: an expert on rank 1 never had them, token"}},
      {"a slot in the place of another",
       kOut,
       [&](Message& m) { std::copy_n(m.bytes.begin(), out, m.bytes.begin() + static_cast<std::ptrdiff_t>(out)); },
       {"1 tokens of rank 0 were lost", "1 tokens of rank 0 were doubled: an expert on rank 1 had them more than once",
        "what rank 1 made of 1 tokens of rank 0"}},
      {"another expert",
       kOut,
       [&](Message& m) { m.bytes[head] = std::byte{0}; },  // of rank 0
       {"1 tokens of rank 0 are on rank 1 for an expert that they are not for", "1 tokens of rank 0 were lost"}},
      {"another expert of the same rank",
       kOut,
       [&](Message& m) { m.bytes[head] ^= std::byte{1}; },
       {"1 tokens of rank 0 are on rank 1 for an expert that they are not for", "1 tokens of rank 0 were lost"}},
      {"a message that does not come",
       kOut,
       [](Message& m) { m.lost = true; },
       {"5 slots from rank 0 to rank 1 have a head that none", "5 tokens of rank 0 were lost"}},
      {"a result",
       kBack,
       [](Message& m) { m.bytes.back() ^= std::byte{0x80}; },
       {"what rank 0 made of 1 tokens of rank 1 is missing or wrong, token", "the sums of 1 tokens of rank 1 are"}},
      {"a result that does not come", kBack, [](Message& m) { m.lost = true; }, {"what rank 0 made of", "the sums of"}},
      {"the head of a result",
       kBack,
       [](Message& m) { m.bytes[0] ^= std::byte{1}; },
       {"what rank 0 made of 1 tokens of rank 1 is missing or wrong"}}};
  for (const Fault& fault : faults) {
    const auto steps = stepped(kJob, Family::spread, towards_rank_1(fault.number, fault.change));
    for (const auto& words : fault.said)
      EXPECT_NE(told(steps).find("spread step 0: " + words), std::string::npos) << fault.name << ": " << told(steps);
  }
}

TEST(DeviceExchange, names_the_first_token_and_counts_all) {
  const std::size_t out = kJob.out_slot();
  const auto steps = stepped(kJob, Family::spread, towards_rank_1(kOut, [&](Message& message) {
                               for (std::size_t end = out; end <= message.bytes.size(); end += out)
                                 message.bytes[end - 1] ^= std::byte{2};
                             }));
  const auto& words = steps[1].findings.words;
  ASSERT_EQ(words.size(), 1U) << told(steps);
  const Router router(kJob.routing, Family::spread);
  std::vector<std::int64_t> hit, experts(2);
  for (std::int64_t token = 0; token < router.first_token(1); ++token) {
    router.choose(0, token, experts);
    if (kJob.routing.rank_of(experts[0]) == 1 || kJob.routing.rank_of(experts[1]) == 1) hit.push_back(token);
  }
  EXPECT_EQ(steps[1].findings.count, hit.size());
  EXPECT_EQ(words[0], fmt::format("spread step 0: {} tokens of rank 0 have other bytes on rank 1, token {} first",
                                  hit.size(), hit.front()));
}

TEST(DeviceExchange, of_slots_of_an_earlier_step_passes_none) {
  std::vector<std::byte> earlier;
  bool replaced = false;
  const auto steps = stepped(
      kJob, Family::spread,
      [&](Message& message) {
        if (message.from != 0 || message.to != 1) return;
        if (message.number == 0) earlier = message.bytes;
        if (message.number == 0 || replaced || message.bytes.size() != earlier.size()) return;
        message.bytes = earlier;
        replaced = true;
      },
      kMostSteps);
  ASSERT_TRUE(replaced);
  EXPECT_NE(told(steps).find("from rank 0 to rank 1 have a head that none of its tokens has"), std::string::npos)
      << told(steps);
}

TEST(DeviceExchange, of_what_was_there_before_passes_nothing) {
  // Of one step with a lead of one pair: counts, that pair, the step. The pair leaves the step's own slots and results.
  const auto lost = [](Message& message) { message.lost = true; };
  EXPECT_NE(told(stepped(kJob, Family::spread, towards_rank_1(3, lost), 1, 1)).find("slots from rank 0 to rank 1 have"),
            std::string::npos);
  EXPECT_NE(told(stepped(kJob, Family::spread, towards_rank_1(4, lost), 1, 1)).find("what rank 0 made of"),
            std::string::npos);
}

TEST(DeviceExchange, checks_the_sums_of_pairs_in_a_row) {
  // Of one step with a lead of one pair: counts, a pair, the step, the row.
  const auto steps = stepped(kJob, Family::spread,
                             towards_rank_1(5, [](Message& message) { message.bytes.back() ^= std::byte{1}; }), 1, 1);
  EXPECT_EQ(found(steps), 1U);
  EXPECT_NE(told(steps).find("the sums of 1 tokens of rank 0 are wrong"), std::string::npos) << told(steps);
}

TEST(DeviceExchange, of_ranks_that_expect_other_counts_ends_with_both) {
  try {
    (void)stepped(
        kJob, Family::spread,
        [](Message& message) {
          if (message.number == 0) message.bytes.front() = std::byte{77};
        },
        1, 1);
    FAIL() << "nothing was thrown";
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("has 77 slots for rank"), std::string::npos) << error.what();
  }
}

TEST(DeviceExchange, times_round_trips_of_two_ranks) {
  std::vector<double> times(3);
  (void)on_fake_ranks(kJob, [&](std::size_t rank, FakeExchange& exchange) {
    if (rank != 1) times[rank] = exchange.round_trip(rank == 0 ? 2 : 0);
  });
  EXPECT_EQ(times, (std::vector<double>{20, 0, 20}));
}

TEST(RowPlan, fits_the_memory_that_is_said_in_every_family_and_shape) {
  for (const std::int64_t ranks : {1, 2, 5, 8}) {
    for (const std::int64_t tokens : {1, 7, 64}) {
      for (const bool once : {true, false}) {
        ExchangeJob job = kJob;
        job.once_per_rank = once;
        job.routing = {.tokens = tokens * ranks, .experts = 4 * ranks, .top_k = 3, .ranks = ranks, .seed = 1};
        for (const auto& [family, word] : words_of(Family{})) {
          if (family == Family::empty_rank && ranks == 1) continue;
          for (job.rank = 0; job.rank < ranks; ++job.rank) {
            const RowPlan plan = row_plan(job, Router(job.routing, family), 7);
            const RowRooms rooms(job);
            const RowView view = row_view(job);
            EXPECT_LE(region_words(plan.to.back(), view.ranks, view.back_slot()) * kWord, rooms.returned) << word;
            EXPECT_LE(region_words(plan.from.back(), view.ranks, view.out_slot()) * kWord, rooms.came) << word;
            EXPECT_LE(plan.tokens * view.out * kWord, rooms.tokens) << word;
            EXPECT_LE(plan.rows_of.size() * kWord, rooms.rows_of) << word;
            EXPECT_LE(plan.experts.size() * sizeof(std::uint16_t), rooms.experts) << word;
          }
        }
      }
    }
  }
}

TEST(RowPlan, has_messages_that_begin_at_16_bytes_and_do_not_overlap) {
  const std::vector<std::uint64_t> firsts = {0, 3, 3, 8, 9};
  const auto parts = row_parts(firsts, 3, 3, false);
  std::uint64_t end = 0;
  for (std::size_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(parts[rank].offset % 16, 0U);
    EXPECT_GE(parts[rank].offset, end);
    end = parts[rank].offset + parts[rank].bytes;
    EXPECT_EQ(parts[rank].bytes, (firsts[rank + 1] - firsts[rank]) * 24);
  }
  EXPECT_EQ(parts[3].bytes, 0U);  // its own
  EXPECT_EQ(row_parts(firsts, 3, 3, true)[3].bytes, 24U);
  EXPECT_EQ(region_of(firsts.data(), 4, std::uint64_t{3}), 2U);  // region 1 has none
  EXPECT_EQ(region_of(firsts.data(), 4, std::uint64_t{8}), 3U);
}

}  // namespace
}  // namespace assay::inference::device_exchange_test
