// The record: what the recorder writes the reader takes, and nothing else.
#include <sstream>

#include <gtest/gtest.h>

#include "probes/core/record_reader.h"
#include "probes/core/recorder.h"

namespace assay::record_test {
namespace {

constexpr Parameter kParameters[] = {{.name = "size", .unit = "B", .fallback = "1MiB", .meaning = "payload"}};
constexpr Metric kMetrics[] = {
    {.name = "bandwidth", .unit = "B/s", .better = Better::higher, .meaning = "bytes over time"}};
constexpr ConditionSpec kConditions[] = {{.name = "direct_io", .meaning = "whether the page cache was passed by"}};
constexpr ProbeSpec kSpec{.name = "example",
                          .measures = "Nothing.",
                          .method = "None.",
                          .source = "None.",
                          .parameters = kParameters,
                          .metrics = kMetrics,
                          .conditions = kConditions};

Description description() { return *read_description(describe(kSpec).dump(), "example"); }

Start start() {
  return {.probe = "example", .revision = 1, .parameters = {{"size", std::int64_t{1}}}, .host = {{"name", "n01"}}};
}

std::string good_record() {
  std::ostringstream out;
  Recorder record(out, kSpec, start());
  record.measurement("bandwidth", Sampling{.samples = {1e9, 2e9}, .warmup = {5e8}, .stopped = "stable"}, {},
                     {{"size", std::int64_t{8}}});
  record.condition("direct_io", true);
  record.note("a remark");
  record.end({.status = Status::complete, .reason = ""});
  return out.str();
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  return text.replace(text.find(from), from.size(), to);
}

std::string error_of(std::string_view bytes) {
  const auto record = read_record(bytes, description());
  return record ? "accepted" : record.error().text();
}

}  // namespace

TEST(record, what_is_written_is_read_back) {
  const auto record = read_record(good_record(), description());
  ASSERT_TRUE(record) << record.error().text();
  ASSERT_EQ(record->measurements.size(), 1U);
  EXPECT_EQ(record->measurements[0].samples, (std::vector<double>{1e9, 2e9}));
  EXPECT_EQ(record->measurements[0].warmup, std::vector<double>{5e8});
  EXPECT_EQ(record->measurements[0].subject, (Subject{"node", "n01"}));
  EXPECT_EQ(std::get<bool>(record->conditions.at(0).value), true);
  EXPECT_EQ(record->end.status, Status::complete);
}

TEST(record, a_missing_end_is_truncated) {
  std::string text = good_record();
  text.erase(text.rfind("{\"sequence\""));
  EXPECT_EQ(error_of(text), "line 5: 'end' is missing\nhint: the probe died or was killed before it was done");
}

TEST(record, a_line_cut_off_is_refused) {
  std::string text = good_record();
  text.pop_back();
  EXPECT_EQ(error_of(text), "line 5: is cut off\nhint: the probe was killed while it wrote");
}

TEST(record, each_fault_is_refused_at_its_line) {
  const std::string good = good_record();
  EXPECT_NE(error_of(replaced(good, "\"sequence\":1", "\"sequence\":2")).find("line 2: sequence 2 where 1 was due"),
            std::string::npos);
  EXPECT_NE(error_of(replaced(good, "\"unit\":\"B/s\"", "\"unit\":\"GB/s\""))
                .find("line 2: 'bandwidth' in 'GB/s', declared in 'B/s'"),
            std::string::npos);
  EXPECT_NE(
      error_of(replaced(good, "1000000000.0", "null")).find("line 2: measurement.samples[0]: is not a finite number"),
      std::string::npos);
  EXPECT_NE(error_of(replaced(good, "1000000000.0", "NaN")).find("line 2"), std::string::npos);
  EXPECT_NE(error_of(replaced(good, "1000000000.0", "1e999")).find("line 2"), std::string::npos);
  EXPECT_NE(error_of(replaced(good, "\"stopped\":", "\"metric\":\"x\",\"stopped\":")).find("in one object twice"),
            std::string::npos);
  EXPECT_NE(error_of(replaced(good, "\"stopped\":", "\"pass\":true,\"stopped\":"))
                .find("line 2: measurement.pass: is not a known field"),
            std::string::npos);
  EXPECT_NE(error_of(replaced(good, "direct_io", "page_cache")).find("line 3: condition 'page_cache'"),
            std::string::npos);
  EXPECT_NE(error_of(replaced(good, "a remark", "a \xff remark")).find("line 4"), std::string::npos);
  EXPECT_NE(error_of(replaced(good, "\"complete\"", "\"passed\"")).find("line 5: status 'passed'"), std::string::npos);
  EXPECT_NE(error_of(replaced(good, "\"revision\":1", "\"revision\":2")).find("line 1: from probe example revision 2"),
            std::string::npos);
  EXPECT_NE(error_of(good + "{}\n").find("line 6: follows 'end'"), std::string::npos);
  EXPECT_NE(error_of("").find("'end' is missing"), std::string::npos);
}

TEST(record, the_same_measurement_twice_is_refused) {
  std::ostringstream out;
  Recorder record(out, kSpec, start());
  record.measurement("bandwidth", 1.0);
  record.measurement("bandwidth", 2.0);
  EXPECT_NE(error_of(out.str()).find("line 3: 'bandwidth' of this subject is recorded twice"), std::string::npos);
}

TEST(record, long_texts_and_controls_are_refused) {
  const std::string good = good_record();
  const auto error = [&](const std::string& reason) {
    return error_of(replaced(good, R"({"status":"complete"})", R"({"status":"error","reason":")" + reason + "\"}"));
  };
  EXPECT_EQ(error("first line\\nsecond"), "accepted");
  EXPECT_EQ(error(std::string(4096, 'x')), "accepted");
  EXPECT_EQ(error(std::string(4097, 'x')),
            "line 5: end.reason: is 4097 bytes long, over the limit of 4096\nhint: probe and assay must be of the same "
            "version");
  for (const char* bad : {"\\u001b[2Jverified: accepted", "a\\u009b", "a\\r", "a\\u007f"})
    EXPECT_NE(error(bad).find("end.reason: has control characters"), std::string::npos) << bad;
  EXPECT_NE(error_of(replaced(good, "a remark", "a \\u001b remark")).find("line 4: note.text: has control"),
            std::string::npos);
  EXPECT_NE(error_of(replaced(good, R"("value":true)", R"("value":"\u001b")")).find("condition.value: has control"),
            std::string::npos);
}

TEST(record, a_node_speaks_for_itself_alone) {
  EXPECT_NE(error_of(replaced(good_record(), R"("subject":{"node":"n01"})", R"("subject":{"node":"n02"})"))
                .find("line 2: is of the node 'n02', the record is of 'n01'"),
            std::string::npos);
}

TEST(record, subjects_and_samples_are_bounded) {
  const auto read = [](const std::string& kind, int subjects, const RecordLimits& limits) {
    std::ostringstream out;
    Recorder record(out, kSpec, start());
    for (int i = 0; i < subjects; ++i) record.measurement("bandwidth", 1.0, {kind, std::to_string(i)});
    record.end({.status = Status::complete, .reason = ""});
    const auto done = read_record(out.str(), description(), limits);
    return done ? "accepted" : done.error().text();
  };
  EXPECT_EQ(read("drive", 1024, {}), "accepted");
  EXPECT_EQ(read("drive", 1025, {}), "line 1026: more than 1024 subjects of kind drive");
  for (const char* of_many_nodes : {"pair", "group", "rank"}) EXPECT_EQ(read(of_many_nodes, 1025, {}), "accepted");
  EXPECT_EQ(read("drive", 5, {.max_samples = 4}), "line 6: more than 4 samples");
}

TEST(record, what_is_said_of_a_condition_is_found_in_order) {
  std::ostringstream out;
  Recorder writer(out, kSpec, start());
  for (const char* drive : {"b", "a", "b"}) writer.condition("direct_io", std::string(drive), {"drive", drive});
  writer.condition("direct_io", std::string("node"));
  writer.condition("direct_io", std::string("again"), {"drive", "b"});
  writer.condition("cpu_steal", 0.5);
  writer.end({.status = Status::complete, .reason = ""});
  auto record = read_record(out.str(), description());
  ASSERT_TRUE(record) << record.error().text();
  const auto said = [&] {
    std::string all;
    for (const auto* one : conditions_of(*record, "direct_io", {"drive", "b"}))
      all += std::get<std::string>(one->value) + " ";
    return all;
  };
  EXPECT_EQ(said(), "b b node again ");
  EXPECT_EQ(conditions_of(*record, "direct_io", {"node", "n01"}).size(), 1U);
  EXPECT_TRUE(conditions_of(*record, "page_cache", {"drive", "b"}).empty());
  record->sorted.clear();  // one that was made in memory
  EXPECT_EQ(said(), "b b node again ");
}

TEST(recorder, writes_what_the_reader_takes_whatever_the_machine_says) {
  std::ostringstream out;
  Recorder record(out, kSpec, start());
  record.measurement("bandwidth", 1.0, {"drive", "a\x1b[2J" + std::string(300, 'x')});
  record.condition("direct_io", "\x9b\x07" + std::string(20'000, 'y'));
  record.note("n\x1b" + std::string(10'000, 'z'));
  record.end({.status = Status::error, .reason = "rank 1: \x1b[2J\x1b[H\r\nverified" + std::string(1 << 20, 'r')});
  const auto read = read_record(out.str(), description());
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(read->end.reason.substr(0, 25), "rank 1: ?[2J?[H?\nverified");
  EXPECT_EQ(read->end.reason.size(), 4096U);
}

TEST(recorder, refuses_what_the_spec_does_not_declare) {
  std::ostringstream out;
  Recorder record(out, kSpec, start());
  EXPECT_THROW(record.measurement("latency", 1.0), std::logic_error);
  EXPECT_THROW(record.condition("mood", true), std::logic_error);
  EXPECT_THROW(record.measurement("bandwidth", 1.0 / 0.0), std::runtime_error);
}

TEST(description, resolves_parameters_and_names_the_unknown) {
  EXPECT_EQ(std::get<std::int64_t>(description().resolve({}, false)->at("size")), 1 << 20);
  EXPECT_EQ(description().resolve({{"sise", std::int64_t{1}}}, false).error().text(),
            "sise: example has no such parameter\nhint: did you mean 'size'?");
  EXPECT_FALSE(description().resolve({{"size", std::string("big")}}, false));
}

}  // namespace assay::record_test
