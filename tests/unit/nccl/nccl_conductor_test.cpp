// The whole of nccl_collective but the GPUs: leaders of one node and of several, with ranks that are played here.
#include <algorithm>
#include <chrono>
#include <set>
#include <sstream>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "probes/collective/conductor.h"
#include "probes/collective/fleet.h"
#include "probes/collective/local_ranks.h"
#include "probes/core/description.h"
#include "probes/core/record_reader.h"
#include "probes/core/recorder.h"
#include "probes/core/rendezvous.h"
#include "probes/nccl/outcome.h"
#include "tests/unit/failure.h"

namespace assay::nccl {
namespace {

using nlohmann::json;

constexpr Metric kMetrics[] = {{.name = "time", .unit = "s", .better = Better::lower, .meaning = "time"},
                               {.name = "algbw", .unit = "B/s", .meaning = "algbw"},
                               {.name = "busbw", .unit = "B/s", .meaning = "busbw"},
                               {.name = "wire_share", .unit = "1", .meaning = "share"},
                               {.name = "wire_rate", .unit = "B/s", .meaning = "rate"},
                               {.name = "mismatches", .unit = "1", .better = Better::lower, .meaning = "mismatches"}};
constexpr ConditionSpec kConditions[] = {
    {.name = "nccl_version", .meaning = ""},   {.name = "nccl_library", .meaning = ""},
    {.name = "environment", .meaning = ""},    {.name = "transport", .meaning = ""},
    {.name = "fabric", .meaning = ""},         {.name = "network", .meaning = ""},
    {.name = "gpudirect", .meaning = ""},      {.name = "nvls", .meaning = ""},
    {.name = "algorithm", .meaning = ""},      {.name = "protocol", .meaning = ""},
    {.name = "channels", .meaning = ""},       {.name = "buffers", .meaning = ""},
    {.name = "sizes_left_out", .meaning = ""}, {.name = "launch_excluded", .meaning = ""}};
constexpr ProbeSpec kSpec{.name = "nccl_collective",
                          .measures = "A test.",
                          .method = "None.",
                          .source = "None.",
                          .metrics = kMetrics,
                          .conditions = kConditions};
const std::string kToken(32, 'a');
constexpr RendezvousLimits kPatient{.join = {30}, .hello = {30}, .exchange = {30}};

Parameters parameters(const std::string& operation = "all_reduce") {
  return Parameters({{"operation", operation},
                     {"type", std::string("fp32")},
                     {"min_samples", std::int64_t{10}},
                     {"max_samples", std::int64_t{10}},
                     {"time_limit", 10.0},
                     {"warmup_limit", 1.0},
                     {"warmup_least", 0.0}});
}

/// A rank that answers as a healthy one would; `time_s` is what every iteration takes.
struct PlayedRank {
  double time_s = 0.001;
  std::uint64_t free = std::uint64_t{64} << 30;
  std::uint64_t mismatches = 0;
  std::string version = "2.28.9";
  std::set<std::string> transports = {"P2P/CUMEM"};
  bool multicast = true;
  bool gated = true;
  std::vector<std::pair<int, int>> sends = {};     ///< channel and adapter
  std::vector<std::pair<int, double>> rates = {};  ///< B/s by adapter
  std::string algorithm = "RING";
  std::string broken_at = "";  ///< the request that it answers with an error
  bool waits = false;          ///< for others, it says then

  [[nodiscard]] json answer(const json& request) const {
    const std::string what = request.at("do");
    if (what == broken_at && waits) return {{"error", "the GPU has fallen off the bus"}, {"waits", true}};
    if (what == broken_at) return {{"error", "the GPU has fallen off the bus"}};
    if (what == "hello") return {{"free", free}, {"version", version}};
    if (what == "introduce") return {{"word", "00ff"}};
    if (what == "enter") return request.at("words").at(0) == "00ff" ? json::object() : json{{"error", "another id"}};
    if (what == "allocate") return json::object();
    if (what == "check") return {{"mismatches", mismatches}};
    if (what == "time") {
      return {{"times", std::vector<double>(request.at("counted").get<std::size_t>(), time_s)}};
    }
    if (what == "facts") {
      return {
          {"version", version},
          {"library", "/lib/libnccl.so.2"},
          {"environment", "none"},
          {"transports", transports},
          {"buffers", "ncclMemAlloc"},
          {"launch_excluded", gated},
          {"warnings", json::array()},
          {"network", "IB"},
          {"multicast", multicast},
          {"sends", sends},
          {"rates", rates},
          {"choices",
           {{{"function", "AllReduce"},
             {"bytes", 1 << 20},
             {"algorithm", algorithm},
             {"protocol", "SIMPLE"},
             {"channels", 4}},
            {{"function", "AllReduce"}, {"bytes", 1024}, {"algorithm", "TREE"}, {"protocol", "LL"}, {"channels", 2}}}}};
    }
    return {{"error", "no such request"}};
  }
};

collective::Fleet::AskLocal play(std::vector<PlayedRank> ranks) {
  return [ranks](std::string_view request, Seconds) {
    std::vector<std::string> answers;
    for (const auto& rank : ranks) answers.push_back(rank.answer(json::parse(request)).dump());
    return answers;
  };
}

Start start_here() {
  return {.probe = "nccl_collective", .revision = 1, .parameters = {}, .host = {{"name", std::string("n01")}}};
}

Record read_back(const std::string& text) {
  const auto description = read_description(describe(kSpec).dump(), "test");
  const auto record = read_record(text, *description);
  if (!record) throw std::runtime_error(record.error().text());
  return *record;
}

/// The record of one node with these ranks.
Record conducted(const std::vector<PlayedRank>& ranks, const std::vector<Bytes>& sizes,
                 const std::string& operation = "all_reduce") {
  std::ostringstream out;
  Recorder record(out, kSpec, start_here());
  collective::Fleet fleet(play(ranks), std::vector<std::string>(ranks.size(), "GPU"), "n01", nullptr);
  MeasuredSizes sizes_of{.operation = collective::operation_named(operation)};
  collective::conduct(fleet, parameters(operation), sizes, nccl_rules(record, sizes_of), record);
  record.end({.status = Status::complete, .reason = ""});
  return read_back(out.str());
}

const Measurement& measured(const Record& record, const std::string& metric, std::int64_t size) {
  for (const auto& one : record.measurements) {
    if (one.metric == metric && one.at == Values{{"size", size}}) return one;
  }
  throw std::runtime_error("no " + metric);
}

std::string condition(const Record& record, const std::string& name) {
  for (const auto& one : record.conditions) {
    if (one.name != name) continue;
    if (const auto* text = std::get_if<std::string>(&one.value)) return *text;
    if (const auto* flag = std::get_if<bool>(&one.value)) return *flag ? "true" : "false";
    if (const auto* count = std::get_if<std::int64_t>(&one.value)) return std::to_string(*count);
  }
  return "absent";
}

TEST(conductor, takes_the_slowest_rank_and_the_factor_of_the_operation) {
  const auto record =
      conducted({{.time_s = 0.001}, {.time_s = 0.002}, {.time_s = 0.001}, {.time_s = 0.001}}, {{1 << 20}});
  EXPECT_EQ(measured(record, "time", 1 << 20).samples.at(0), 0.002);
  EXPECT_DOUBLE_EQ(measured(record, "algbw", 1 << 20).samples.at(0), (1 << 20) / 0.002);
  EXPECT_DOUBLE_EQ(measured(record, "busbw", 1 << 20).samples.at(0), (1 << 20) / 0.002 * 1.5);  // 2 (4 - 1) / 4
  EXPECT_EQ(measured(record, "time", 1 << 20).subject, (Subject{.kind = "node", .id = "n01"}));
  EXPECT_GE(measured(record, "time", 1 << 20).samples.size(), 10U);
  EXPECT_EQ(condition(record, "launch_excluded"), "true");
}

TEST(conductor, counts_the_bytes_that_move_where_a_size_does_not_divide) {
  const auto record = conducted({{}, {}, {}}, {{1000}}, "all_gather");
  EXPECT_DOUBLE_EQ(measured(record, "algbw", 1000).samples.at(0), 960 / 0.001);  // 333 B a rank, cut to 320
}

TEST(conductor, adds_up_mismatches_of_all_ranks_and_both_checks) {
  const auto record = conducted({{.mismatches = 3}, {}}, {{1024}});
  EXPECT_EQ(measured(record, "mismatches", 1024).samples, std::vector<double>{6});
}

TEST(conductor, names_the_sizes_that_do_not_fit) {
  const auto record =
      conducted({{}, {.free = std::uint64_t{12} << 30}}, {{8}, {1024}, {std::uint64_t{8} << 30}}, "all_to_all");
  EXPECT_EQ(condition(record, "sizes_left_out"), "too_large=8589934592");
  EXPECT_THROW((void)measured(record, "time", std::int64_t{8} << 30), std::runtime_error);
  EXPECT_NE(failure([] {
              conducted({{}, {}, {}}, {{8}}, "all_to_all");
            }).find("none of them fits 3 ranks (too_small=8)"),
            std::string::npos);
}

TEST(conductor, joins_what_the_ranks_report) {
  const auto record = conducted(
      {{.transports = {"P2P/CUMEM"}}, {.transports = {"NET/Socket", "SHM"}, .multicast = false, .gated = false}},
      {{1024}, {1 << 20}});
  EXPECT_EQ(condition(record, "transport"), "NET/Socket P2P/CUMEM SHM");
  EXPECT_EQ(condition(record, "fabric"), "NET/Socket");
  EXPECT_EQ(condition(record, "gpudirect"), "false");
  EXPECT_EQ(condition(record, "nvls"), "false");
  EXPECT_EQ(condition(record, "algorithm"), "TREE RING");
  EXPECT_EQ(condition(record, "protocol"), "LL SIMPLE");
  EXPECT_EQ(condition(record, "channels"), "4");
  EXPECT_EQ(condition(record, "network"), "IB");
  EXPECT_EQ(condition(record, "launch_excluded"), "false");
}

TEST(conductor, tells_that_no_network_path_goes_through_the_memory_of_a_host) {
  EXPECT_EQ(condition(conducted({{.transports = {"NET/IBext_v8/GDRDMA", "P2P/CUMEM"}},
                                 {.transports = {"NET/IBext_v8/GDRDMA"}}},
                                {{1024}}),
                      "gpudirect"),
            "true");
  EXPECT_EQ(
      condition(conducted({{.transports = {"NET/IB/GDRDMA"}}, {.transports = {"NET/IB"}}}, {{1024}}), "gpudirect"),
      "false");
}

TEST(conductor, records_nothing_that_NCCL_does_not_say) {
  std::ostringstream out;
  Recorder record(out, kSpec, start_here());
  const json bare = {{"version", "2.18.0"},
                     {"library", "/l"},
                     {"environment", "none"},
                     {"transports", json::array()},
                     {"buffers", "cudaMalloc"},
                     {"launch_excluded", true},
                     {"warnings", {"a cable is loose"}},
                     {"choices", json::array()}};
  record_facts(record, {bare, bare});
  record.end({.status = Status::complete, .reason = ""});
  const auto read = read_back(out.str());
  for (const char* name : {"transport", "fabric", "gpudirect", "network", "nvls", "algorithm", "protocol", "channels"})
    EXPECT_EQ(condition(read, name), "absent") << name;
  EXPECT_EQ(read.notes, std::vector<std::string>{"NCCL warns: a cable is loose"});
}

TEST(conductor, names_the_rank_that_fails) {
  EXPECT_EQ(failure([] {
              conducted({{}, {.broken_at = "time"}}, {{1024}});
            }),
            "rank 1 (n01 GPU): the GPU has fallen off the bus");
}

TEST(conductor, names_the_rank_whose_gpu_hangs_before_those_that_wait_for_it) {
  const PlayedRank waits{.broken_at = "time", .waits = true}, hangs{.broken_at = "time"};
  EXPECT_EQ(failure([&] {
              conducted({waits, waits, hangs}, {{1024}});
            }),
            "rank 2 (n01 GPU): the GPU has fallen off the bus");
  EXPECT_EQ(failure([&] { conducted({{}, waits}, {{1024}}); }), "rank 1 (n01 GPU): the GPU has fallen off the bus");
}

TEST(fleets, that_lose_a_rank_say_what_it_was_asked_to_do) {
  const auto lose = [](std::string_view, Seconds) -> std::vector<std::string> {
    throw collective::RankLost(collective::RankLoss::silent, "rank 3 (n01 GPU) said nothing for 5 s");
  };
  collective::Fleet fleet(lose, {"GPU"}, "n01", nullptr);
  EXPECT_EQ(failure([&] {
              (void)fleet.ask({{"do", "steps"}}, {5});
            }),
            "rank 3 (n01 GPU) said nothing for 5 s, asked to steps");
}

TEST(conductor, refuses_different_versions) {
  EXPECT_NE(failure([] {
              conducted({{}, {.version = "2.26.2"}}, {{1024}});
            }).find("NCCL 2.28.9 and 2.26.2 on different nodes"),
            std::string::npos);
}

TEST(fleets, that_hear_no_json_say_so) {
  collective::Fleet fleet([](std::string_view, Seconds) { return std::vector<std::string>{"Segmentation fault"}; },
                          {"GPU"}, "n01", nullptr);
  EXPECT_NE(failure([&] {
              (void)fleet.ask({{"do", "hello"}}, {1});
            }).find("no JSON: Segmentation fault"),
            std::string::npos);
}

/// Runs a node for each entry of `nodes` as a thread; what each threw, and what node 0 recorded in `text`.
std::vector<std::string> conducted_over(const std::vector<std::vector<PlayedRank>>& nodes, std::string& text) {
  RendezvousListener listener({.host = "127.0.0.1"});
  const Endpoint at{.host = "127.0.0.1", .port = listener.port()};
  const int world = static_cast<int>(nodes.size());
  std::vector<std::string> failures(nodes.size());
  const auto take_part = [&](int node, Rendezvous group) {
    const auto& ranks = nodes[static_cast<std::size_t>(node)];
    try {
      std::ostringstream out;
      Recorder record(out, kSpec, start_here());
      collective::Fleet fleet(play(ranks), std::vector<std::string>(ranks.size(), "GPU"),
                              fmt::format("n{:02}", node + 1), &group);
      if (node == 0) {
        MeasuredSizes sizes{.ranks_per_node = fleet.ranks_per_node()};
        collective::conduct(fleet, parameters(), {{1 << 20}}, nccl_rules(record, sizes), record);
        fleet.release();
        record.end({.status = Status::complete, .reason = ""});
        text = out.str();
      } else {
        EXPECT_TRUE(fleet.follow().contains("facts"));
      }
    } catch (const std::exception& error) {
      failures[static_cast<std::size_t>(node)] = error.what();
      group.fail(error.what());
    }
  };
  std::vector<std::jthread> others;
  for (int node = 1; node < world; ++node) {
    others.emplace_back([&, node] { take_part(node, Rendezvous::dial(at, node, world, kToken, kPatient)); });
  }
  take_part(0, std::move(listener).gather(world, kToken, kPatient));
  others.clear();
  return failures;
}

TEST(conductor, measures_ranks_of_all_nodes_as_one_group) {
  std::string text;
  const auto failures =
      conducted_over({{{}, {}}, {{}, {.time_s = 0.004}}, {{}, {.transports = {"NET/IB/GDRDMA"}}}}, text);
  EXPECT_EQ(failures, (std::vector<std::string>{"", "", ""}));
  const auto record = read_back(text);
  const auto& time = measured(record, "time", 1 << 20);
  EXPECT_EQ(time.subject, (Subject{.kind = "group", .id = "n01,n02,n03"}));
  EXPECT_EQ(time.samples.at(0), 0.004);
  EXPECT_DOUBLE_EQ(measured(record, "busbw", 1 << 20).samples.at(0), (1 << 20) / 0.004 * 10 / 6);  // 2 (6 - 1) / 6
  EXPECT_EQ(condition(record, "transport"), "NET/IB/GDRDMA P2P/CUMEM");
}

TEST(conductor, tells_the_share_of_line_rate_of_the_busiest_adapter_by_rings_alone) {
  // Channels 0 to 3; the second node sends three of them by one of its adapters of 1 GB/s.
  const PlayedRank even{.sends = {{0, 0}, {1, 1}}, .rates = {{0, 1e9}, {1, 1e9}}};
  const PlayedRank rest{.sends = {{2, 0}, {3, 1}}, .rates = {{0, 1e9}, {1, 1e9}}};
  const PlayedRank uneven{.sends = {{2, 0}, {3, 0}}, .rates = {{0, 1e9}, {1, 1e9}}};
  std::string text;
  EXPECT_EQ(conducted_over({{even, rest}, {even, uneven}}, text), (std::vector<std::string>{"", ""}));
  const auto record = read_back(text);
  const double busbw = measured(record, "busbw", 1 << 20).samples.at(0);
  EXPECT_DOUBLE_EQ(measured(record, "wire_share", 1 << 20).samples.at(0), busbw / (1e9 * 4 / 3));
  const auto rate = std::ranges::find(record.measurements, "wire_rate", &Measurement::metric);
  ASSERT_NE(rate, record.measurements.end());
  EXPECT_DOUBLE_EQ(rate->samples.at(0), 1e9 * 4 / 3);
  EXPECT_EQ(rate->subject, measured(record, "busbw", 1 << 20).subject);
  auto tree = even;
  tree.algorithm = "TREE";
  EXPECT_EQ(conducted_over({{tree, rest}, {even, rest}}, text), (std::vector<std::string>{"", ""}));
  EXPECT_EQ(text.find("wire_"), std::string::npos);
}

TEST(conductor, ends_on_every_node_when_a_rank_of_one_fails) {
  std::string text;
  const auto failures = conducted_over({{{}}, {{}}, {{.broken_at = "check"}}}, text);
  EXPECT_EQ(failures[0], "rank 2 (n03 GPU): the GPU has fallen off the bus");
  EXPECT_EQ(failures[1], "rank 0: " + failures[0]);
  EXPECT_EQ(failures[2], failures[1]);
}

TEST(conductor, refuses_nodes_with_different_numbers_of_GPUs) {
  std::string text;
  const auto failures = conducted_over({{{}, {}}, {{}}}, text);
  EXPECT_NE(failures[0].find("n02 has 1 ranks and n01 has 2"), std::string::npos) << failures[0];
  EXPECT_NE(failures[1].find("the same number on each"), std::string::npos) << failures[1];
}

}  // namespace
}  // namespace assay::nccl
