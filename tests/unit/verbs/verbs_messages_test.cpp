// Slots, patterns, and what two ranks say to each other.
#include <algorithm>
#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include "probes/verbs/introduction.h"
#include "probes/verbs/messages.h"
#include "tests/unit/failure.h"

namespace assay::verbs {
namespace {

std::vector<std::byte> filled(const MessagePlan& plan, const Stamp& stamp) {
  std::vector<std::byte> area(plan.area());
  fill_messages(area, plan, stamp);
  return area;
}

Introduction side(const std::string& host, const std::string& boot, const std::string& gid) {
  return {.host = host,
          .boot = boot,
          .parameters = "{}",
          .port = "mlx5_0/1",
          .node_guid = "",
          .link_layer = "Ethernet",
          .gid = gid,
          .gid_type = "RoCE v2",
          .gid_index = 3,
          .lid = 0,
          .mtu = 4096,
          .reads_as_initiator = 16,
          .reads_as_responder = 8};
}

const std::string kFirst = "0000:0000:0000:0000:0000:ffff:0a09:0001",
                  kSecond = "0000:0000:0000:0000:0000:ffff:0a09:0002";

}  // namespace

TEST(messages, a_plan_has_no_more_slots_than_messages_in_flight_nor_than_memory) {
  EXPECT_EQ(plan_messages({64}, 1, 128, {1 << 20}).slots, 128U);
  EXPECT_EQ(plan_messages({1 << 20}, 4, 128, {64 << 20}).slots, 16U);
  EXPECT_EQ(plan_messages({8 << 20}, 16, 128, {1 << 20}).slots, 1U);
}

TEST(messages, small_messages_are_batched_and_large_ones_are_not) {
  EXPECT_EQ(plan_messages({8}, 1, 128, {1 << 20}).batch, 32U);
  EXPECT_EQ(plan_messages({8}, 1, 2, {1 << 20}).batch, 1U);
  EXPECT_EQ(plan_messages({64 << 10}, 1, 128, {1 << 20}).batch, 4U);
  EXPECT_EQ(plan_messages({64 << 10}, 1, 8, {1 << 20}).batch, 2U);
  EXPECT_EQ(plan_messages({256 << 10}, 1, 128, {1 << 20}).batch, 1U);
  EXPECT_EQ(plan_messages({8 << 20}, 1, 128, {1 << 20}).batch, 1U);
}

TEST(messages, slots_do_not_overlap_and_repeat_after_the_last) {
  const MessagePlan plan = plan_messages({100}, 2, 4, {1 << 20});
  EXPECT_EQ(plan.stride, 128U);
  EXPECT_EQ(plan.offset(0, 4), plan.offset(0, 0));
  EXPECT_EQ(plan.offset(1, 0), 4 * 128U);
  EXPECT_EQ(plan.area(), 8 * 128U);
}

TEST(messages, what_was_filled_matches_and_nothing_else_does) {
  for (const std::uint64_t size : {2, 7, 8, 9, 4096}) {
    const MessagePlan plan = plan_messages({size}, 2, 4, {1 << 20});
    auto area = filled(plan, {.seed = 5});
    EXPECT_EQ(count_mismatches(area, plan, {.seed = 5}), 0U);
    poison_messages(area, plan, {.seed = 5});
    EXPECT_EQ(count_mismatches(area, plan, {.seed = 5}), size * 8) << "a poisoned byte passes for a good one";
  }
}

TEST(messages, one_wrong_byte_is_one_mismatch) {
  const MessagePlan plan = plan_messages({1000}, 1, 4, {1 << 20});
  auto area = filled(plan, {.seed = 5});
  area[plan.offset(0, 3) + 999] ^= std::byte{1};
  EXPECT_EQ(count_mismatches(area, plan, {.seed = 5}), 1U);
}

TEST(messages, a_message_in_the_slot_of_another_does_not_match) {
  const MessagePlan plan = plan_messages({4096}, 2, 2, {1 << 20});
  auto area = filled(plan, {.seed = 5});
  std::swap_ranges(area.begin(), area.begin() + 4096, area.begin() + static_cast<std::ptrdiff_t>(plan.offset(1, 0)));
  EXPECT_GT(count_mismatches(area, plan, {.seed = 5}), 8000U);
}

TEST(messages, the_pattern_of_a_shorter_message_is_the_begin_of_a_longer_one) {
  const MessagePlan longer = plan_messages({8}, 1, 2, {0});
  MessagePlan shorter = longer;
  shorter.size.count = 7;
  EXPECT_EQ(count_mismatches(filled(longer, {.seed = 1}), shorter, {.seed = 1}), 0U);
}

TEST(introduction, it_comes_out_as_it_went_in) {
  const Introduction given = side("n01", "boot-a", kFirst);
  const Introduction taken = unpacked_introduction(packed(given));
  EXPECT_EQ(packed(taken), packed(given));
  EXPECT_NE(failure([] { (void)unpacked_introduction("{}"); }).find("same version"), std::string::npos);
  EXPECT_NE(failure([] { (void)unpacked_address("nonsense"); }).find("cannot be read"), std::string::npos);
}

TEST(introduction, two_machines_are_a_fabric) {
  EXPECT_NO_THROW(check_pair(side("n01", "boot-a", kFirst), side("n02", "boot-b", kSecond), "fabric"));
}

TEST(introduction, two_ranks_on_one_machine_are_no_fabric) {
  const std::string words =
      failure([] { check_pair(side("n01", "boot-a", kFirst), side("n01", "boot-a", kSecond), "fabric"); });
  EXPECT_NE(words.find("both ranks are on one machine"), std::string::npos) << words;
  EXPECT_NE(words.find("--path loopback"), std::string::npos) << words;
}

TEST(introduction, host_names_do_not_make_one_machine_two) {
  EXPECT_NE(failure([] {
              check_pair(side("n01", "boot-a", kFirst), side("n02", "boot-a", kSecond), "fabric");
            }).find("one machine"),
            std::string::npos);
}

TEST(introduction, a_rank_without_a_boot_id_is_not_taken_on_trust) {
  EXPECT_NE(
      failure([] { check_pair(side("n01", "", kFirst), side("n02", "boot-b", kSecond), "fabric"); }).find("boot id"),
      std::string::npos);
}

TEST(introduction, one_address_twice_is_no_pair) {
  EXPECT_NE(failure([] {
              check_pair(side("n01", "boot-a", kFirst), side("n02", "boot-b", kFirst), "fabric");
            }).find("same GID 10.9.0.1"),
            std::string::npos);
}

TEST(introduction, a_loopback_is_one_port_of_one_machine) {
  EXPECT_NO_THROW(check_pair(side("n01", "boot-a", kFirst), side("n01", "boot-a", kFirst), "loopback"));
  EXPECT_NE(failure([] {
              check_pair(side("n01", "boot-a", kFirst), side("n02", "boot-b", kSecond), "loopback");
            }).find("path loopback"),
            std::string::npos);
}

TEST(introduction, gids_of_unlike_types_do_not_connect) {
  Introduction other = side("n02", "boot-b", kSecond);
  other.gid_type = "IB/RoCE v1";
  EXPECT_NE(failure([&] { check_pair(side("n01", "boot-a", kFirst), other, "fabric"); }).find("gid_index"),
            std::string::npos);
}

TEST(introduction, unlike_parameters_are_refused) {
  Introduction other = side("n02", "boot-b", kSecond);
  other.parameters = R"({"qps":2})";
  EXPECT_EQ(failure([&] { check_pair(side("n01", "boot-a", kFirst), other, "fabric"); }),
            "the two ranks were given different parameters");
}

TEST(introduction, a_path_has_what_both_sides_can_do) {
  const Introduction mine = side("n01", "boot-a", kFirst);
  Introduction other = side("n02", "boot-b", kSecond);
  other.mtu = 1024;
  other.reads_as_responder = 4;
  const PathChoice path = path_between(mine, other, {.traffic_class = 106});
  EXPECT_EQ(path.mtu, 1024);
  EXPECT_TRUE(path.global);
  EXPECT_EQ(path.target_gid, kSecond);
  EXPECT_EQ(path.traffic_class, 106);
  EXPECT_EQ(path.reads_as_initiator, 4);
  EXPECT_EQ(path.reads_as_responder, 8);
}

TEST(introduction, within_an_infiniband_subnet_the_lid_leads) {
  Introduction mine = side("n01", "boot-a", "fe80:0000:0000:0000:0000:0000:0000:0001"),
               other = side("n02", "boot-b", "fe80:0000:0000:0000:0000:0000:0000:0002");
  mine.link_layer = other.link_layer = "InfiniBand";
  other.lid = 42;
  EXPECT_FALSE(path_between(mine, other, {}).global);
  EXPECT_EQ(path_between(mine, other, {}).target_lid, 42);
  EXPECT_EQ(transport_of(mine), "InfiniBand");
  other.gid = "fec0:0000:0000:0001:0000:0000:0000:0002";
  EXPECT_TRUE(path_between(mine, other, {}).global);
}

TEST(introduction, what_is_measured_is_the_pair_or_the_one_port) {
  EXPECT_EQ(subject_of(side("n01", "boot-a", kFirst), side("n02", "boot-b", kSecond)), (Subject{"pair", "n01+n02"}));
  EXPECT_EQ(subject_of(side("n01", "boot-a", kFirst), side("n01", "boot-a", kFirst)), (Subject{"nic", "mlx5_0/1"}));
}

TEST(ack_timeout, is_the_next_power_of_two_of_its_unit) {
  EXPECT_EQ(ack_timeout_code({0.067}), 14);
  EXPECT_NEAR(ack_timeout_of(14).count, 0.067108864, 1e-12);
  EXPECT_EQ(ack_timeout_code({0.0672}), 15);
  EXPECT_EQ(ack_timeout_code({1}), 18);
  EXPECT_EQ(ack_timeout_code({0}), 1) << "0 would be to wait for ever";
  EXPECT_EQ(ack_timeout_code(kLongestAckTimeout), 22);
  EXPECT_EQ(ack_timeout_code({20}), std::nullopt);
}

TEST(introduction, a_port_that_came_up_slower_or_with_smaller_packets_is_short_of_what_it_could_carry) {
  Introduction mine = side("n01", "boot-a", kFirst);
  Introduction other = side("n02", "boot-b", kSecond);
  for (Introduction* one : {&mine, &other}) {
    one->link_layer = "Ethernet";
    one->rate = one->rate_max = 50e9;
    one->mtu = one->mtu_max = 4096;
  }
  const double healthy = payload_limit_between(mine, other, {})->count;
  EXPECT_NEAR(healthy, 50e9 * 4096 / (4096 + 82), 1);
  EXPECT_STREQ(payload_limit_of(mine, other), "fastest mode");
  mine.rate = 3.125e9;  // 25 Gb/s
  other.mtu = 256;
  EXPECT_EQ(payload_limit_between(mine, other, {})->count, healthy);
  EXPECT_NEAR(payload_limit_between(mine, other, {.mtu = "256"})->count, 50e9 * 256 / (256 + 82), 1);
  mine.rate_max = 0;
  EXPECT_NEAR(payload_limit_between(mine, other, {})->count, 3.125e9 * 4096 / (4096 + 82), 1);
  EXPECT_STREQ(payload_limit_of(mine, other), "rate now");
  mine.rate = 0;
  EXPECT_FALSE(payload_limit_between(mine, other, {}));
}

}  // namespace assay::verbs
