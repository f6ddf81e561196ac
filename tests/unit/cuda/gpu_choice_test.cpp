// Names of GPUs, the choice among them, and work on several at once.
#include <atomic>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "probes/core/probe.h"
#include "probes/cuda/barrier.h"
#include "probes/cuda/choice.h"
#include "probes/cuda/driver.h"
#include "tests/unit/fake_tree.h"

namespace assay::cuda {
namespace {

std::vector<Device> two_devices() {
  return {{.ordinal = 0,
           .uuid = "GPU-22222222-0000-0000-0000-000000000000",
           .pci_bus_id = "0000:9b:00.0",
           .memory = {},
           .l2 = {}},
          {.ordinal = 1,
           .uuid = "GPU-11111111-0000-0000-0000-000000000000",
           .pci_bus_id = "0000:1b:00.0",
           .memory = {},
           .l2 = {}}};
}

int only_ordinal(std::string_view wanted) {
  const auto chosen = choose_devices(two_devices(), wanted);
  return chosen.size() == 1 ? chosen.front().ordinal : -1;
}

std::string failure_of(std::size_t count, std::string_view schedule,
                       const std::function<void(std::size_t, Barrier&)>& work) {
  try {
    for_each_index(count, schedule, work);
  } catch (const std::exception& failure) {
    return failure.what();
  }
  return "";
}

}  // namespace

TEST(gpu_choice, all_gpus_come_in_the_order_of_their_bus_ids) {
  const auto chosen = choose_devices(two_devices(), "all");
  ASSERT_EQ(chosen.size(), 2U);
  EXPECT_EQ(chosen[0].pci_bus_id, "0000:1b:00.0");
  EXPECT_EQ(chosen[1].pci_bus_id, "0000:9b:00.0");
}

TEST(gpu_choice, one_gpu_is_named_by_uuid_bus_id_or_index) {
  EXPECT_EQ(only_ordinal("GPU-22222222-0000-0000-0000-000000000000"), 0);
  EXPECT_EQ(only_ordinal("0000:1b:00.0"), 1);
  EXPECT_EQ(only_ordinal("00000000:9B:00.0"), 0);
  EXPECT_EQ(only_ordinal("0"), 1);
  EXPECT_EQ(only_ordinal("1"), 0);
}

TEST(gpu_choice, a_gpu_that_is_not_there_is_a_skip_that_names_those_that_are) {
  for (const char* wanted : {"2", "GPU-3", "0000:ff:00.0", "every"}) {
    try {
      (void)choose_devices(two_devices(), wanted);
      ADD_FAILURE() << wanted << " was found";
    } catch (const Skip& skip) {
      const std::string text = skip.what();
      EXPECT_NE(text.find("this node has no GPU '" + std::string(wanted) + "'"), std::string::npos) << text;
      EXPECT_NE(text.find("GPU-11111111-0000-0000-0000-000000000000 at 0000:1b:00.0"), std::string::npos) << text;
    }
  }
}

TEST(gpu_choice, a_uuid_is_printed_as_nvidia_smi_does) {
  std::array<std::byte, 16> bytes = {};
  bytes[0] = std::byte{0x8f};
  bytes[15] = std::byte{0x0a};
  EXPECT_EQ(uuid_text(bytes), "GPU-8f000000-0000-0000-0000-00000000000a");
  EXPECT_EQ(uuid_text(bytes, true), "MIG-8f000000-0000-0000-0000-00000000000a");
}

TEST(gpu_choice, a_bus_id_has_four_digits_of_domain_and_keeps_a_longer_one) {
  EXPECT_EQ(pci_bus_id_text("00000000:1B:00.0"), "0000:1b:00.0");
  EXPECT_EQ(pci_bus_id_text("0001:01:00.0"), "0001:01:00.0");
  EXPECT_EQ(pci_bus_id_text("00010000:01:00.0"), "10000:01:00.0");
}

TEST(together, one_by_one_runs_in_order_and_none_waits) {
  std::vector<std::size_t> order;
  for_each_index(3, "one_by_one", [&](std::size_t index, Barrier& meeting) {
    meeting.wait_for_all();
    meeting.finish();
    EXPECT_TRUE(meeting.all_finished());
    order.push_back(index);
  });
  EXPECT_EQ(order, (std::vector<std::size_t>{0, 1, 2}));
}

TEST(together, none_goes_on_before_all_are_there) {
  std::atomic<int> here = 0, early = 0;
  for_each_index(4, "together", [&](std::size_t, Barrier& meeting) {
    ++here;
    meeting.wait_for_all();
    if (here != 4) ++early;
    meeting.wait_for_all();
    meeting.finish();
    meeting.wait_for_all();
    EXPECT_TRUE(meeting.all_finished());
  });
  EXPECT_EQ(early, 0);
}

TEST(together, a_failure_frees_the_others_and_is_the_one_that_is_told) {
  EXPECT_EQ(failure_of(4, "together",
                       [](std::size_t index, Barrier& meeting) {
                         if (index == 2) throw std::runtime_error("device 2 fell off the bus");
                         meeting.wait_for_all();
                       }),
            "device 2 fell off the bus");
}

TEST(together, those_that_are_done_see_that_another_failed) {
  EXPECT_EQ(failure_of(2, "together",
                       [](std::size_t index, Barrier& meeting) {
                         meeting.wait_for_all();
                         if (index == 1) throw std::runtime_error("late failure");
                         meeting.finish();
                         while (!meeting.all_finished()) std::this_thread::yield();
                       }),
            "late failure");
}

TEST(together, one_by_one_stops_at_the_first_failure) {
  int calls = 0;
  EXPECT_EQ(failure_of(3, "one_by_one",
                       [&](std::size_t, Barrier&) {
                         ++calls;
                         throw std::runtime_error("no more");
                       }),
            "no more");
  EXPECT_EQ(calls, 1);
}

TEST(device_choice, an_instance_of_a_partitioned_gpu_is_found_by_its_name) {
  auto devices = two_devices();
  devices[0].uuid = "MIG-22222222-0000-0000-0000-000000000000";
  EXPECT_TRUE(devices[0].is_mig());
  EXPECT_FALSE(devices[1].is_mig());
  const auto chosen = choose_devices(devices, "mig-22222222-0000-0000-0000-000000000000");
  ASSERT_EQ(chosen.size(), 1U);
  EXPECT_EQ(chosen.front().ordinal, 0);
}

TEST(old_driver, is_named_with_its_version_and_the_one_that_is_needed) {
  const FakeTree tree;
  tree.file("sys/module/nvidia/version", "550.54.15\n");
  EXPECT_EQ(
      words_for_old_driver("12.4", "13.0", tree.path("")),
      "the NVIDIA driver 550.54.15 supports CUDA 12.4 at most, this build of the probe needs CUDA 13.0, that is driver "
      "580.65.06 or newer; hint: update the driver");
  EXPECT_EQ(
      words_for_old_driver("11.8", "12.9", "/nonexistent"),
      "the NVIDIA driver supports CUDA 11.8 at most, this build of the probe needs CUDA 12.9, that is driver 525.60.13 "
      "or newer; hint: update the driver");
}

}  // namespace assay::cuda
