// protocol: frames and messages, whole, in pieces and damaged.
#include "orchestrator/wire/protocol.h"
#include "probes/core/text.h"

#include <gtest/gtest.h>

namespace assay::wire {
namespace {

using nlohmann::json;

const std::string kHash(64, 'a');

std::string raw_frame(unsigned type, const std::string& payload) {
  const auto length = static_cast<std::uint32_t>(payload.size() + 1);
  std::string frame;
  for (const unsigned shift : {24U, 16U, 8U, 0U}) frame += static_cast<char>((length >> shift) & 0xFFU);
  return frame + static_cast<char>(type) + payload;
}

Frame frame_of(const std::string& bytes) {
  FrameReader reader;
  reader.feed(bytes);
  return reader.next().value().value();
}

std::string error_to_agent(FrameType type, const std::string& payload) {
  const auto message = decode_to_agent({.type = type, .payload = payload});
  return message ? "accepted" : message.error().where + ": " + message.error().what;
}

std::string error_from_agent(FrameType type, const std::string& payload) {
  const auto message = decode_from_agent({.type = type, .payload = payload});
  return message ? "accepted" : message.error().where + ": " + message.error().what;
}

wire::Run example_run() {
  return {.id = "0001-host_gemm-n01.1.0",
          .sha256 = kHash,
          .arguments = {"--size", "64MiB", "with \"quotes\" and \n"},
          .deadline_s = 12.5,
          .limits = {.memory_bytes = 1ULL << 40, .output_bytes = 64 << 20, .cpu_s = 3600}};
}

TEST(Protocol, every_message_to_the_agent_comes_back_as_it_was) {
  EXPECT_EQ(std::get<wire::Hello>(*decode_to_agent(frame_of(encode(wire::ToAgent(wire::Hello{7}))))).protocol, 7);
  const wire::Hello asking{.directories = {".", "/store"}};
  EXPECT_EQ(std::get<wire::Hello>(*decode_to_agent(frame_of(encode(wire::ToAgent(asking))))).directories,
            asking.directories);
  const auto program =
      std::get<wire::Program>(*decode_to_agent(frame_of(encode(wire::ToAgent(wire::Program{kHash, 123456789})))));
  EXPECT_EQ(program.sha256, kHash);
  EXPECT_EQ(program.size, 123456789U);
  const auto data = std::get<wire::Data>(
      *decode_to_agent(frame_of(encode(wire::Data{Channel::program, kHash, std::string("\0\xFF\n", 3)}))));
  EXPECT_EQ(data.id, kHash);
  EXPECT_EQ(data.bytes, std::string("\0\xFF\n", 3));
  const auto run = std::get<wire::Run>(*decode_to_agent(frame_of(encode(wire::ToAgent(example_run())))));
  EXPECT_EQ(run.id, example_run().id);
  EXPECT_EQ(run.arguments, example_run().arguments);
  EXPECT_EQ(run.deadline_s, 12.5);
  EXPECT_EQ(run.limits.memory_bytes, 1ULL << 40);
  EXPECT_EQ(run.limits.output_bytes, 64U << 20);
  EXPECT_EQ(run.limits.cpu_s, 3600);
  EXPECT_EQ(std::get<wire::Stop>(*decode_to_agent(frame_of(encode(wire::ToAgent(wire::Stop{"a"}))))).id, "a");
  EXPECT_EQ(std::get<wire::Kill>(*decode_to_agent(frame_of(encode(wire::ToAgent(wire::Kill{"b"}))))).id, "b");
  EXPECT_TRUE(std::holds_alternative<wire::Ping>(*decode_to_agent(frame_of(encode(wire::ToAgent(wire::Ping{}))))));
  EXPECT_TRUE(std::holds_alternative<wire::Bye>(*decode_to_agent(frame_of(encode(wire::ToAgent(wire::Bye{}))))));
}

TEST(Protocol, every_message_from_the_agent_comes_back_as_it_was) {
  const wire::Welcome said{.protocol = 1,
                           .assay_version = "0.1.0",
                           .agent_sha256 = kHash,
                           .facts = {{"name", "n01"}, {"cpus", 2}},
                           .free = {{"/store", 12345}}};
  const auto welcome = std::get<wire::Welcome>(*decode_from_agent(frame_of(encode(said))));
  EXPECT_EQ(welcome.facts, said.facts);
  EXPECT_EQ(welcome.free, said.free);
  EXPECT_EQ(welcome.assay_version, "0.1.0");
  EXPECT_EQ(std::get<wire::Stored>(*decode_from_agent(frame_of(encode(wire::Stored{kHash})))).sha256, kHash);
  const auto refused = std::get<wire::Refused>(*decode_from_agent(frame_of(encode(wire::Refused{"r", "no \"room\""}))));
  EXPECT_EQ(refused.reason, "no \"room\"");
  const auto ended = std::get<wire::Ended>(*decode_from_agent(frame_of(encode(wire::Ended{
      .id = "r", .outcome = "deadline", .exit_code = {}, .signal = 9, .elapsed_s = 0.25, .left_behind = 3}))));
  EXPECT_EQ(ended.outcome, "deadline");
  EXPECT_EQ(ended.exit_code, std::nullopt);
  EXPECT_EQ(ended.signal, 9);
  EXPECT_EQ(ended.elapsed_s, 0.25);
  EXPECT_EQ(ended.left_behind, 3);
  EXPECT_TRUE(std::holds_alternative<wire::Pong>(*decode_from_agent(frame_of(encode(wire::Pong{})))));
}

TEST(Protocol, directories_and_counts_out_of_bounds_are_refused) {
  EXPECT_EQ(error_to_agent(FrameType::hello, R"({"protocol": 3, "directories": [1]})"),
            "hello.directories: is not a list of at most 32 paths");
  EXPECT_EQ(error_from_agent(FrameType::welcome, R"({"protocol": 3, "assay_version": "1", "agent_sha256": ")" +
                                                     std::string(kHash) +
                                                     R"(", "facts": {"name": "n"}, "free": {"/a": -1}})"),
            "welcome.free: has a value that is no count");
}

TEST(Protocol, frames_do_not_depend_on_how_the_bytes_arrive) {
  const std::string stream = encode(wire::ToAgent(wire::Hello{})) + encode(wire::ToAgent(example_run())) +
                             encode(wire::Data{Channel::out, "r", "xyz"});
  for (std::size_t split = 0; split <= stream.size(); ++split) {
    FrameReader reader;
    std::vector<Frame> frames;
    for (const std::string& piece : {stream.substr(0, split), stream.substr(split)}) {
      reader.feed(piece);
      for (auto frame = reader.next(); frame.value(); frame = reader.next()) frames.push_back(**frame);
    }
    ASSERT_EQ(frames.size(), 3U) << "split at " << split;
    EXPECT_EQ(frames[0].type, FrameType::hello);
    EXPECT_EQ(std::get<wire::Run>(*decode_to_agent(frames[1])).arguments, example_run().arguments);
    EXPECT_EQ(std::get<wire::Data>(*decode_to_agent(frames[2])).bytes, "xyz");
  }
}

TEST(Protocol, one_byte_at_a_time_is_enough) {
  FrameReader reader;
  int frames = 0;
  for (const char c : encode(wire::ToAgent(example_run())) + encode(wire::ToAgent(wire::Ping{}))) {
    reader.feed({&c, 1});
    if (reader.next().value()) ++frames;
  }
  EXPECT_EQ(frames, 2);
}

TEST(Protocol, a_frame_over_the_limit_is_refused_before_it_arrives) {
  FrameReader reader;
  reader.feed(encode(wire::ToAgent(wire::Ping{})));
  ASSERT_TRUE(reader.next().value());
  reader.feed(std::string("\x00\x10\x00\x02", 4));  // 1 MiB + 2
  const auto frame = reader.next();
  ASSERT_FALSE(frame);
  EXPECT_EQ(frame.error().where, "byte 7 of the stream");
  EXPECT_EQ(frame.error().what, "a frame of 1048578 bytes; 1 to 1048577 are allowed");
}

TEST(Protocol, an_empty_frame_is_refused) {
  FrameReader reader;
  reader.feed(std::string(4, '\0'));
  EXPECT_EQ(reader.next().error().what, "a frame of 0 bytes; 1 to 1048577 are allowed");
}

TEST(Protocol, an_unknown_type_is_refused) {
  FrameReader reader;
  reader.feed(raw_frame(99, "{}"));
  EXPECT_EQ(reader.next().error().what, "unknown frame type 99");
}

TEST(Protocol, a_data_frame_over_its_own_limit_is_refused_by_its_head) {
  FrameReader reader;
  reader.feed(std::string("\x00\x08\x00\x00\x03", 5));
  EXPECT_NE(reader.next().error().what.find("a data frame of 524288 bytes"), std::string::npos);
}

TEST(Protocol, text_in_place_of_frames_is_refused) {
  FrameReader reader;
  reader.feed("Welcome to Ubuntu\n");
  const auto frame = reader.next();
  ASSERT_FALSE(frame);
  EXPECT_NE(frame.error().hint.find("login scripts"), std::string::npos);
}

TEST(Protocol, a_broken_stream_stays_broken) {
  FrameReader reader;
  reader.feed(raw_frame(99, "{}"));
  const std::string first = reader.next().error().text();
  reader.feed(encode(wire::ToAgent(wire::Ping{})));
  EXPECT_EQ(reader.next().error().text(), first);
}

TEST(Protocol, bad_json_is_refused_with_its_place) {
  EXPECT_EQ(error_to_agent(FrameType::stop, "{\"id\":").substr(0, 6), "stop: ");
  EXPECT_EQ(error_to_agent(FrameType::stop, "[]"), "stop: is not an object");
  EXPECT_NE(error_to_agent(FrameType::stop, "{\"id\":\"a\",\"id\":\"b\"}").find("twice"), std::string::npos);
  EXPECT_NE(error_to_agent(FrameType::ping, "{} x"), "accepted");
  EXPECT_NE(error_to_agent(FrameType::ping, std::string("{\"\xFF\":1}")), "accepted");
}

TEST(Protocol, an_unknown_or_missing_field_is_refused) {
  EXPECT_EQ(error_to_agent(FrameType::stop, R"({"id":"a","force":true})"), "stop.force: is not a known field");
  EXPECT_EQ(error_to_agent(FrameType::stop, "{}"), "stop.id: is missing");
  EXPECT_EQ(error_to_agent(FrameType::ping, R"({"x":1})"), "ping.x: is not a known field");
  json run = json::parse(frame_of(encode(wire::ToAgent(example_run()))).payload);
  run["limits"]["processes"] = 5;
  EXPECT_EQ(error_to_agent(FrameType::run, run.dump()), "run.limits.processes: is not a known field");
  run["limits"] = 3;
  EXPECT_EQ(error_to_agent(FrameType::run, run.dump()), "run.limits: is not an object");
}

TEST(Protocol, values_out_of_bounds_are_refused) {
  const json good = json::parse(frame_of(encode(wire::ToAgent(example_run()))).payload);
  const auto with = [&](const char* field, json value) {
    json changed = good;
    changed[field] = std::move(value);
    return error_to_agent(FrameType::run, changed.dump());
  };
  EXPECT_EQ(error_to_agent(FrameType::run, good.dump()), "accepted");
  EXPECT_EQ(with("id", "../../etc"), "run.id: is not text of the allowed form");
  EXPECT_EQ(with("id", std::string(201, 'a')), "run.id: is not text of the allowed form");
  EXPECT_EQ(with("sha256", "ABC"), "run.sha256: is not text of the allowed form");
  EXPECT_EQ(with("deadline_s", 0), "run.deadline_s: is not a number from 0.001 to 1209600");
  EXPECT_EQ(with("deadline_s", "1"), "run.deadline_s: is not a number from 0.001 to 1209600");
  EXPECT_EQ(with("arguments", json::array({std::string("a\0b", 3)})),
            "run.arguments[0]: is not text of the allowed form");
  EXPECT_EQ(with("arguments", std::vector<std::string>(257, "x")), "run.arguments: is not a list of at most 256 texts");
  EXPECT_EQ(error_to_agent(FrameType::program, R"({"sha256":")" + kHash + R"(","size":-1})"),
            "program.size: is not a whole number from 1 to 1073741824");
}

TEST(Protocol, data_is_checked_like_everything_else) {
  EXPECT_EQ(error_to_agent(FrameType::data, "\x01"), "data: is shorter than its header");
  EXPECT_EQ(error_to_agent(FrameType::data,
                           "\x09\x01"
                           "ab"),
            "data: channel 9 is none of 1, 2, 3");
  EXPECT_EQ(error_to_agent(FrameType::data,
                           "\x01\x05"
                           "ab"),
            "data: has no bytes after its id");
  EXPECT_EQ(error_to_agent(FrameType::data,
                           "\x01\x02"
                           "/."
                           "x"),
            "data: id is not of the allowed form");
  EXPECT_EQ(error_to_agent(FrameType::data,
                           "\x01\x01"
                           "a" +
                               std::string(kMaxChunk + 1, 'x')),
            "data: carries 65537 bytes, over 65536");
}

TEST(Protocol, a_message_of_the_other_direction_is_refused) {
  EXPECT_EQ(error_to_agent(FrameType::pong, "{}"), "pong: is not a message of an orchestrator");
  EXPECT_EQ(error_from_agent(FrameType::run, "{}"), "run: is not a message of an agent");
}

TEST(Protocol, what_an_agent_says_of_an_end_must_make_sense) {
  EXPECT_EQ(error_from_agent(FrameType::ended, R"({"id":"a","outcome":"won","elapsed_s":1,"left_behind":0})"),
            "ended.outcome: is not text of the allowed form");
  EXPECT_EQ(error_from_agent(FrameType::ended,
                             R"({"id":"a","outcome":"exited","exit_code":0,"signal":9,"elapsed_s":1,"left_behind":0})"),
            "ended.signal: is given with exit_code");
  EXPECT_EQ(error_from_agent(FrameType::ended,
                             R"({"id":"a","outcome":"exited","exit_code":256,"elapsed_s":1,"left_behind":0})"),
            "ended.exit_code: is not a whole number from 0 to 255");
  EXPECT_EQ(error_from_agent(FrameType::welcome, R"({"protocol":1,"assay_version":"1","agent_sha256":")" + kHash +
                                                     R"(","facts":{"a":[1]}})"),
            "welcome.facts: is not an object of scalars");
}

TEST(Protocol, facts_of_a_wrong_type_are_refused_where_they_arrive) {
  const auto error = [](const std::string& facts) {
    return error_from_agent(FrameType::welcome, R"({"protocol":1,"assay_version":"1","agent_sha256":")" + kHash +
                                                    R"(","facts":)" + facts + "}");
  };
  EXPECT_EQ(error(R"({"name":7})"), "welcome.facts: name is not a text of 1 to 255 bytes");
  EXPECT_EQ(error(R"({"name":"n","boot_id":7})"), "welcome.facts: boot_id is not a text of 1 to 255 bytes");
  EXPECT_EQ(error(R"({"name":"n","memory":"lots"})"),
            "welcome.facts: memory is not a whole number from 1 to 1125899906842624");
  EXPECT_EQ(error(R"({"name":"n","cpus":-1})"), "welcome.facts: cpus is not a whole number from 1 to 1048576");
  EXPECT_EQ(error(R"({})"), "welcome.facts: name is missing");
}

TEST(Protocol, printable_text_holds_no_control_characters) {
  EXPECT_EQ(printable("a\x1b[31mb\xC3\xA4\n"), "a?[31mb???");
  EXPECT_EQ(printable("abcdef", 3), "abc");
}

}  // namespace
}  // namespace assay::wire
