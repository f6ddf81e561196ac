// cuda_rack_bandwidth as processes over a fake CUDA driver and a fake NVML, by copy engines: up to 72 ranks in 18
// trays, which share memory by handles, and every way in which a rack is refused or a rank is lost.
#include <algorithm>
#include <cstdlib>
#include <deque>
#include <future>

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "tests/unit/fake_nvml.h"
#include "tests/unit/node_processes.h"

namespace assay::cuda {
namespace {

const std::string kProbe = probe_file("cuda_rack_bandwidth");
const std::string kCuda = build_file("tests/fakes/cuda");
const std::vector<std::string> kShort = {"--engine=ce", "--size=1MiB", "--window=2ms", "--peers=1", "--targets=1"};

/// The GPUs of the fake driver as NVML shows them, in the fabric of a rack.
std::string in_fabric(unsigned clique, unsigned uuid_byte, const std::string& more = "") {
  std::string gpus;
  for (const auto& [index, address] : {std::pair{0, "9B"}, {1, "1B"}, {2, "2B"}, {3, "3B"}})
    gpus += fmt::format(R"("{}": {{"bus_id": "00000000:{}:00.0"}}, )", index, address);
  return fmt::format(R"({{"gpu": {{"fabric_uuid": {}, "fabric_clique": {}{}}},
    "gpus": {{{}"4": null, "5": null, "6": null, "7": null}}}})",
                     uuid_byte, clique, more, gpus);
}

/// Trays of a rack, each with its own driver and NVML.
class FakeRack {
 public:
  explicit FakeRack(int trays, int gpus = 2) : gpus_(gpus) {
    for (int i = 0; i < trays; ++i) trays_.push_back({});
  }
  /// The fault of a tray's driver, or what its NVML says.
  void driver_fault(std::size_t tray, const std::string& fault) { trays_.at(tray).fault = fault; }
  void nvml(std::size_t tray, const std::string& state) { trays_.at(tray).state = state; }
  void without_nvml() { has_nvml_ = false; }

  std::vector<Record> run(const std::vector<std::string>& more = {}) {
    const std::string at = fmt::format("--rendezvous=127.0.0.1:{}", free_port());
    std::deque<FakeNvml> nvmls;  // they stay where they are
    for (const auto& tray : trays_) nvmls.emplace_back("healthy", tray.state);
    std::vector<std::future<ProbeOutput>> running;
    for (std::size_t tray = 0; tray < trays_.size(); ++tray) {
      const std::string folder = std::filesystem::path(nvmls[tray].library()).parent_path();
      std::vector<std::string> words = {"/usr/bin/env",
                                        fmt::format("ASSAY_LIBRARY_PATH={}{}", kCuda, has_nvml_ ? ":" + folder : ""),
                                        fmt::format("ASSAY_FAKE_CUDA_GPUS={}", gpus_),
                                        fmt::format("ASSAY_FAKE_CUDA_TRAY={}", tray),
                                        "ASSAY_FAKE_CUDA=" + trays_[tray].fault,
                                        kProbe};
      if (trays_.size() > 1)
        words = with(words, {fmt::format("--rank={}", tray), fmt::format("--world={}", trays_.size()), at,
                             "--token=0123456789abcdef0123456789abcdef"});
      std::vector<std::string> flags = kShort;
      std::erase_if(flags, [&](const std::string& flag) {
        const auto name = flag.substr(0, flag.find('=') + 1);
        return std::ranges::any_of(more, [&](const std::string& other) { return other.starts_with(name); });
      });
      running.push_back(std::async(std::launch::async, run_probe, with(with(words, flags), more), 0U));
    }
    std::vector<Record> records;
    for (auto& one : running) records.push_back(record_in(kProbe, one.get()));
    return records;
  }

 private:
  struct Tray {
    std::string fault = "no_fault", state = in_fabric(32766, 156);
  };
  int gpus_;
  bool has_nvml_ = true;
  std::vector<Tray> trays_;
};

/// The value of a condition of the node that wrote `record`.
std::optional<Value> condition(const Record& record, const std::string& name) {
  return value_of(record, name, {"node", std::get<std::string>(record.start.host.at("name"))});
}

/// Of a rack in every run; -C cluster has eighteen, with 72 ranks, whose pairs take nine times as long.
unsigned trays_of_a_rack() {
  const char* const asked = std::getenv("ASSAY_RACK_TRAYS");
  return asked != nullptr ? static_cast<unsigned>(std::stoi(asked)) : 6;
}

}  // namespace

TEST(rack_process, two_gpus_of_one_node_share_by_descriptors_and_the_record_says_why) {
  FakeRack rack(1);
  rack.without_nvml();
  const Record record = rack.run().front();
  ASSERT_EQ(record.end.status, Status::complete) << record.end.reason;
  EXPECT_EQ(condition(record, "handles"), Value(std::string("posix")));
  EXPECT_EQ(condition(record, "handles_reason"), Value(std::string("in no fabric (state unknown)")));
  EXPECT_EQ(condition(record, "links_known"), Value(false));
  EXPECT_EQ(count_of(record, "write_bandwidth"), 2U);
  EXPECT_EQ(sum_of(record, "mismatches"), 0);
  EXPECT_EQ(count_of(record, "link_faults"), 0U);
}

TEST(rack_process, two_processes_of_one_gpu_try_the_sharing_and_say_so) {
  FakeRack rack(1, 1);
  rack.without_nvml();
  EXPECT_EQ(rack.run().front().end.status, Status::skip);
  const Record record = rack.run({"--processes-per-gpu=2"}).front();
  ASSERT_EQ(record.end.status, Status::complete) << record.end.reason;
  EXPECT_EQ(condition(record, "processes_per_gpu"), Value(std::int64_t{2}));
  EXPECT_EQ(sum_of(record, "mismatches"), 0);
}

TEST(rack_process, all_ranks_of_all_trays_measure_every_figure) {
  const unsigned trays = trays_of_a_rack(), ranks = trays * 4;
  FakeRack rack(static_cast<int>(trays), 4);
  const Record record = rack.run({"--size=288KiB"}).front();
  ASSERT_EQ(record.end.status, Status::complete) << record.end.reason;
  EXPECT_EQ(condition(record, "handles"), Value(std::string("fabric")));
  EXPECT_EQ(condition(record, "fabric_clique"), Value(std::int64_t{32766}));
  EXPECT_EQ(condition(record, "ranks"), Value(std::int64_t{ranks}));
  EXPECT_EQ(condition(record, "pairs"), Value(std::int64_t{ranks * trays}));
  for (const char* metric : {"write_bandwidth", "read_bandwidth"}) EXPECT_EQ(count_of(record, metric), ranks * trays);
  for (const char* metric : {"gpu_send_bandwidth", "bisection_gpu_bandwidth", "link_faults"})
    EXPECT_EQ(count_of(record, metric), ranks) << metric;
  for (const char* metric : {"tray_bandwidth", "all_to_one_bandwidth"})
    EXPECT_EQ(count_of(record, metric), trays) << metric;
  EXPECT_EQ(count_of(record, "plane_faults"), 18U);  // NVLinks of a GPU
  EXPECT_GE(count_of(record, "mismatches"), ranks * trays);
  EXPECT_EQ(sum_of(record, "mismatches") + sum_of(record, "link_faults") + sum_of(record, "plane_faults"), 0);
}

TEST(rack_process, a_gpu_that_corrupts_what_it_moves_is_in_every_wrong_pair) {
  FakeRack rack(2);
  rack.driver_fault(1, "copy_flips");
  const Record record = rack.run().front();
  ASSERT_EQ(record.end.status, Status::complete) << record.end.reason;
  std::size_t wrong = 0;
  for (const auto& one : record.measurements) {
    if (one.metric != "mismatches" || one.samples.front() == 0) continue;
    ++wrong;
    EXPECT_NE(one.subject.id.find("#1/GPU-9a9b9b9b"), std::string::npos) << one.subject.id;
  }
  EXPECT_GE(wrong, 3U);
}

TEST(rack_process, links_that_are_down_are_a_plane_where_most_gpus_have_it_and_else_the_gpu_s) {
  FakeRack rack(2);
  const std::string down = R"(, "dead_links": [7], "link_7_state": 0)";
  rack.nvml(0, in_fabric(32766, 156, down));
  const Record cable = rack.run().front();
  ASSERT_EQ(cable.end.status, Status::complete) << cable.end.reason;
  EXPECT_EQ(sum_of(cable, "link_faults"), 2);  // both GPUs of one tray of two
  EXPECT_EQ(sum_of(cable, "plane_faults"), 0);
  rack.nvml(1, in_fabric(32766, 156, down));
  const Record plane = rack.run().front();
  EXPECT_EQ(sum_of(plane, "link_faults"), 0);
  EXPECT_EQ(samples_of(plane, "plane_faults", {"group", "plane 7"}), std::vector<double>{4});
}

TEST(rack_process, a_rack_that_is_none_is_refused_before_anything_is_allocated) {
  struct Case {
    void (*change)(FakeRack&);
    Status status;
    std::string words;
  };
  const Case cases[] = {
      {[](FakeRack& rack) { rack.nvml(1, in_fabric(1, 156)); }, Status::error, "#1 (GPU-1a1b1b1b"},
      {[](FakeRack& rack) { rack.nvml(2, in_fabric(32766, 157)); }, Status::error, "#2 (GPU-191b1b1b"},
      {[](FakeRack& rack) {
         for (const std::size_t tray : {0U, 1U, 2U}) rack.nvml(tray, in_fabric(0, 0));
       },
       Status::error, "a cluster without UUID, which is no fabric of several trays"},
      {[](FakeRack& rack) { rack.without_nvml(); }, Status::error, "in no fabric (state unknown)"},
      {[](FakeRack& rack) { rack.driver_fault(1, "no_fabric"); }, Status::error, "no fabric handles are offered by"},
      {[](FakeRack& rack) {
         for (const std::size_t tray : {0U, 1U, 2U}) rack.driver_fault(tray, "no_fabric");
       },
       Status::skip, "offers fabric handles, and nothing else leads out of a tray"},
      {[](FakeRack& rack) { rack.driver_fault(2, "full"); }, Status::error, "cuMemCreate of 2097152 B"},
      {[](FakeRack& rack) { rack.driver_fault(2, "import_refused"); }, Status::error,
       "need one IMEX channel in common"}};
  for (const Case& one : cases) {
    FakeRack rack(3);
    one.change(rack);
    const Record record = rack.run().front();
    EXPECT_EQ(record.end.status, one.status) << one.words;
    EXPECT_NE(record.end.reason.find(one.words), std::string::npos) << record.end.reason;
    EXPECT_TRUE(record.measurements.empty());
  }
}

TEST(rack_process, a_rank_that_dies_or_hangs_is_named_on_every_tray) {
  setenv("ASSAY_DEVICE_SECONDS", "2", 1);
  for (const std::string fault : {"copy_dies", "copy_hangs"}) {
    FakeRack rack(3);
    rack.driver_fault(1, fault);
    for (const Record& record : rack.run()) {
      EXPECT_EQ(record.end.status, Status::error);
      EXPECT_NE(record.end.reason.find("GPU-9a9b9b9b"), std::string::npos) << fault << ": " << record.end.reason;
      const char* const phase = fault == "copy_dies" ? ", asked to move" : "move on GPU-9a9b9b9b";
      EXPECT_NE(record.end.reason.find(phase), std::string::npos) << fault << ": " << record.end.reason;
    }
  }
  unsetenv("ASSAY_DEVICE_SECONDS");
}

TEST(rack_process, a_size_that_does_not_fit_is_refused_with_the_nearest_that_does_before_anything_is_allocated) {
  setenv("ASSAY_FAKE_CUDA_FREE_MIB", "10", 1);
  FakeRack rack(2);
  for (const std::size_t tray : {0U, 1U})
    rack.driver_fault(tray, "full");  // it would refuse an allocation in other words
  const Record record = rack.run({"--size=6MiB"}).front();
  unsetenv("ASSAY_FAKE_CUDA_FREE_MIB");
  EXPECT_EQ(record.end.status, Status::error);
  EXPECT_NE(record.end.reason.find("size: 6291456 B twice for each of 1 processes do not fit into the 10485760 B of "),
            std::string::npos)
      << record.end.reason;
  EXPECT_NE(record.end.reason.find("; the nearest that fits: 4194304"), std::string::npos) << record.end.reason;
}

TEST(rack_process, a_parameter_out_of_range_is_refused_with_its_range) {
  for (const auto& [flag, words] : {std::pair{"--size=1000", "size: 1000 B is not a positive multiple of 4 KiB"},
                                    {"--peers=0", "peers: 0 measures nothing"},
                                    {"--targets=0", "targets: 0 measures nothing"},
                                    {"--size=4KiB", "is less than 4 KiB for each of"},
                                    {"--processes-per-gpu=9", "processes_per_gpu: 9 is not from 1 to 8"}}) {
    const Record record = FakeRack(1, 3).run({flag}).front();
    EXPECT_EQ(record.end.status, Status::error);
    EXPECT_NE(record.end.reason.find(words), std::string::npos) << record.end.reason;
  }
}

}  // namespace assay::cuda
