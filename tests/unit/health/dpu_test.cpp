// health_dpu on artificial machines: a host with BlueField adapters, one of them with its RShim closed, and an adapter
// itself. No BlueField stands behind them.
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "probes/core/machine_tree.h"
#include "probes/health/dpus.h"
#include "tests/unit/fake_tree.h"
#include "tests/unit/paths.h"
#include "tests/unit/probe_process.h"

namespace assay::health::dpu_test {
namespace {

void function(const FakeTree& tree, const std::string& address, const std::string& device,
              const std::string& vendor = "0x15b3") {
  const std::string directory = "sys/bus/pci/devices/" + address;
  tree.file(directory + "/vendor", vendor + "\n");
  tree.file(directory + "/device", device + "\n");
}

/// Two adapters of two ports; the second has no management function. And a ConnectX.
void host(const FakeTree& tree) {
  for (const auto* address : {"0000:17:00.0", "0000:17:00.1", "0000:b1:00.0", "0000:b1:00.1"})
    function(tree, address, "0xa2dc");
  function(tree, "0000:17:00.2", "0xc2d5");
  function(tree, "0000:b1:00.2", "0xc2d5", "0x8086");
  function(tree, "0000:2a:00.0", "0x1021");
}

Record run(const FakeTree& tree) {
  const std::string probe = probe_file("health_dpu");
  const auto output = run_probe({probe, "--root", tree.path()});
  const auto description = read_description(run_probe({probe, "--describe"}).out, probe);
  const auto record = read_record(output.out, *description);
  if (!record) throw std::runtime_error(record.error().text());
  return *record;
}

TEST(health_dpu, finds_each_adapter_once_and_says_whose_rshim_is_open) {
  FakeTree tree;
  host(tree);
  const Record record = run(tree);
  std::map<std::string, std::string> rshim;
  for (const auto& condition : record.conditions) {
    if (condition.name == "rshim") rshim[condition.subject.id] = std::get<std::string>(condition.value);
    if (condition.name == "model") {
      EXPECT_EQ(condition.value, Value(std::string("BlueField-3")));
    }
    if (condition.name == "side") {
      EXPECT_EQ(condition.value, Value(std::string("host")));
    }
    EXPECT_NE(condition.name, "mode") << "nothing was asked";
  }
  EXPECT_EQ(rshim, (std::map<std::string, std::string>{{"0000:17:00.0", "open"}, {"0000:b1:00.0", "closed"}}));
  std::map<std::string, double> counts;
  for (const auto& measured : record.measurements) counts[measured.metric] = measured.samples.front();
  EXPECT_EQ(counts, (std::map<std::string, double>{{"dpus", 2}, {"rshim_open", 1}}));
}

TEST(health_dpu, says_nothing_of_an_rshim_where_the_node_is_the_adapter) {
  FakeTree tree;
  host(tree);
  tree.file("sys/bus/platform/devices/MLNXBF04:00/post_reset_wdog", "0\n");
  const Record record = run(tree);
  for (const auto& condition : record.conditions) EXPECT_NE(condition.name, "rshim");
  for (const auto& measured : record.measurements) EXPECT_NE(measured.metric, "rshim_open");
}

TEST(health_dpu, of_a_node_without_adapters_skips) {
  FakeTree tree;
  function(tree, "0000:2a:00.0", "0x1021");
  EXPECT_NE(run(tree).end.reason.find("no network function of a BlueField"), std::string::npos);
}

std::string settings(const std::string& model, const std::string& engine) {
  return "Device #1:\n----------\nConfigurations:                          Default         Current         Next Boot\n"
         "*       INTERNAL_CPU_MODEL                  EMBEDDED_CPU(1)  " +
         model + "  EMBEDDED_CPU(1)\n" + "        INTERNAL_CPU_OFFLOAD_ENGINE         ENABLED(0)       " + engine +
         "  DISABLED(1)\n";
}

TEST(health_dpu, reads_the_mode_that_is_in_force_and_no_other_column) {
  for (const auto& [model, engine, mode] : {std::tuple{"EMBEDDED_CPU(1)", "ENABLED(0)", "dpu"},
                                            {"EMBEDDED_CPU(1)", "DISABLED(1)", "nic"},
                                            {"SEPERATED_HOST(0)", "ENABLED(0)", "separated"},
                                            {"OTHER(7)", "ENABLED(0)", ""},
                                            {"EMBEDDED_CPU(1)", "N/A", ""}})
    EXPECT_EQ(mode_in(settings(model, engine)).value_or(""), mode) << model << engine;
  EXPECT_FALSE(mode_in(""));
  EXPECT_FALSE(
      mode_in("        INTERNAL_CPU_MODEL   EMBEDDED_CPU(1)\n        INTERNAL_CPU_OFFLOAD_ENGINE   ENABLED(0)\n"))
      << "the next boot alone";
}

}  // namespace
}  // namespace assay::health::dpu_test
