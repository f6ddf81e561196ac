// How near ports, GPUs and NUMA nodes are, on made-up trees of PCI functions.
#include <functional>
#include <stdexcept>

#include <gtest/gtest.h>

#include "probes/core/machine_tree.h"
#include "probes/core/probe.h"
#include "probes/verbs/port_choice.h"
#include "tests/unit/failure.h"
#include "tests/unit/verbs/verbs_tree.h"

namespace assay::verbs {
namespace {

/// A node as HGX has them: a GPU and a port behind each of two switches, one switch on each NUMA node; a slow port for
/// management beside the first GPU; a third GPU on a root port of its own below the first host bridge.
class affinity : public testing::Test {
 protected:
  affinity() {
    add_function(tree_, "pci0000:17/0000:17:01.0/0000:18:00.0/0000:19:00.0/0000:1b:00.0", 0);
    add_function(tree_, "pci0000:17/0000:17:05.0/0000:2b:00.0", 0);
    add_function(tree_, "pci0000:97/0000:97:01.0/0000:98:00.0/0000:99:00.0/0000:9b:00.0", 1);
    add_port(tree_, {.device = "mlx5_0",
                     .route = "pci0000:97/0000:97:01.0/0000:98:00.0/0000:99:01.0/0000:9c:00.0",
                     .numa_node = 1});
    add_port(tree_, {.device = "mlx5_1",
                     .route = "pci0000:17/0000:17:01.0/0000:18:00.0/0000:19:01.0/0000:1c:00.0",
                     .numa_node = 0});
    add_port(tree_, {.device = "bnxt_0",
                     .rate = "25 Gb/sec (1X EDR)",
                     .route = "pci0000:17/0000:17:01.0/0000:18:00.0/0000:19:02.0/0000:1d:00.0",
                     .numa_node = 0});
  }
  [[nodiscard]] PciWay way(const std::string& a, const std::string& b) const {
    return pci_way(MachineTree(tree_.path()), a, b);
  }
  [[nodiscard]] PortAndGpu choose(const std::string& device, const std::string& gpu, int rank = 0) const {
    const MachineTree tree(tree_.path());
    return choose_port_and_gpu(tree, read_ports(tree), device, gpus_, gpu, rank);
  }

  FakeTree tree_;
  const std::vector<cuda::DriverGpu> gpus_ = {{.uuid = "GPU-1b", .pci_bus_id = "0000:1b:00.0"},
                                              {.uuid = "GPU-2b", .pci_bus_id = "0000:2b:00.0"},
                                              {.uuid = "GPU-9b", .pci_bus_id = "0000:9b:00.0"}};
};

}  // namespace

TEST_F(affinity, behind_one_switch_is_nearer_than_below_one_root_than_on_another_node) {
  EXPECT_EQ(way("0000:1b:00.0", "0000:1c:00.0"), (PciWay{Nearness::same_switch, 3}));
  EXPECT_EQ(way("0000:2b:00.0", "0000:1c:00.0"), (PciWay{Nearness::same_root, 4}));
  EXPECT_EQ(way("0000:1b:00.0", "0000:9c:00.0"), (PciWay{Nearness::other_numa_node, 6}));
  EXPECT_LT(way("0000:1b:00.0", "0000:1c:00.0"), way("0000:2b:00.0", "0000:1c:00.0"));
  EXPECT_LT(way("0000:2b:00.0", "0000:1c:00.0"), way("0000:1b:00.0", "0000:9c:00.0"));
}

TEST_F(affinity, unlike_roots_of_one_node_are_told_from_those_of_two) {
  add_function(tree_, "pci0000:37/0000:37:01.0/0000:38:00.0", 0);
  EXPECT_EQ(way("0000:38:00.0", "0000:1c:00.0").nearness, Nearness::same_numa_node);
}

TEST_F(affinity, what_the_kernel_does_not_tell_is_unknown_and_the_farthest) {
  add_function(tree_, "pci0000:37/0000:37:01.0/0000:38:00.0", -1);
  EXPECT_EQ(way("0000:38:00.0", "0000:1c:00.0").nearness, Nearness::unknown);
  EXPECT_EQ(way("", "0000:1c:00.0").nearness, Nearness::unknown);
  EXPECT_EQ(way("0000:77:00.0", "0000:1c:00.0").nearness, Nearness::unknown);
  EXPECT_GT(PciWay{}, way("0000:1b:00.0", "0000:9c:00.0"));
}

TEST_F(affinity, a_named_gpu_gets_the_port_beside_it_and_a_named_port_the_gpu) {
  EXPECT_EQ(choose("auto", "GPU-1b").port.device, "mlx5_1");
  EXPECT_EQ(choose("auto", "0000:9B:00.0").port.device, "mlx5_0");
  EXPECT_EQ(choose("mlx5_0", "affine").gpu->uuid, "GPU-9b");
  EXPECT_EQ(choose("mlx5_1", "affine").gpu->uuid, "GPU-1b");
}

TEST_F(affinity, a_slow_port_is_not_taken_for_being_near) {
  EXPECT_EQ(choose("auto", "GPU-2b").port.device, "mlx5_1");
  EXPECT_EQ(choose("bnxt_0", "affine").gpu->uuid, "GPU-1b");
}

TEST_F(affinity, where_both_are_free_the_nearest_pair_and_then_the_first_by_name_is_taken) {
  const PortAndGpu both = choose("auto", "affine");
  EXPECT_EQ(both.port.device, "mlx5_0");
  EXPECT_EQ(both.gpu->uuid, "GPU-9b");
  EXPECT_EQ(both.way.nearness, Nearness::same_switch);
}

TEST_F(affinity, a_numa_node_has_its_own_ports) {
  EXPECT_EQ(choose("numa:0", "affine").port.device, "mlx5_1");
  EXPECT_EQ(choose("numa:1", "affine").port.device, "mlx5_0");
  const auto ports = read_ports(MachineTree(tree_.path()));
  EXPECT_NE(failure([&] {
              (void)candidate_ports(ports, "numa:2");
            }).find("no port of NUMA node 2 is active; there is bnxt_0/1 ACTIVE on NUMA node 0"),
            std::string::npos);
  EXPECT_EQ(failure([&] { (void)candidate_ports(ports, "numa:x"); }),
            "device: 'numa:x' is not numa: and the number of a NUMA node");
}

TEST_F(affinity, each_rank_may_have_a_gpu_of_its_own) {
  EXPECT_EQ(choose("auto", "GPU-1b,GPU-9b", 0).gpu->uuid, "GPU-1b");
  EXPECT_EQ(choose("auto", "GPU-1b,GPU-9b", 1).gpu->uuid, "GPU-9b");
  EXPECT_NE(failure([&] {
              (void)choose("auto", "GPU-1b,GPU-2b,GPU-9b");
            }).find("neither one GPU nor one for each of two ranks"),
            std::string::npos);
}

TEST_F(affinity, a_gpu_that_is_not_here_is_named_with_those_that_are) {
  EXPECT_THROW((void)choose("auto", "GPU-77"), Skip);
  const std::string words = failure([&] { (void)choose("auto", "GPU-77"); });
  EXPECT_NE(words.find("no GPU 'GPU-77'; it has GPU-1b at 0000:1b:00.0, GPU-2b at"), std::string::npos) << words;
  EXPECT_THROW((void)choose("auto", "0"), Skip) << "an ordinal names no GPU";
}

}  // namespace assay::verbs
