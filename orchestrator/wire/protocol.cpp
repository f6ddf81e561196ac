// protocol: framing, and the strict reading of every message.
#include "orchestrator/wire/protocol.h"

#include <algorithm>
#include <array>
#include <cctype>

#include <fmt/format.h>

#include "orchestrator/files/digest.h"
#include "probes/core/host_facts.h"
#include "probes/core/json_io.h"
#include "probes/core/strict_object.h"

namespace assay::wire {
namespace {

using nlohmann::json;

constexpr std::size_t kLengthBytes = 4;
constexpr std::size_t kDataHeader = 2;          // channel and length of the id
constexpr std::size_t kMaxPath = 4095;          // PATH_MAX of Linux without its end
constexpr std::size_t kMaxArguments = 256;      // the most flags of a probe is below 30
constexpr std::size_t kMaxArgument = 16 << 10;  // a rendezvous with a long list of peers

struct Named {
  FrameType type;
  std::string_view name;
};
constexpr std::array kTypes = {
    Named{FrameType::hello, "hello"},   Named{FrameType::program, "program"}, Named{FrameType::data, "data"},
    Named{FrameType::run, "run"},       Named{FrameType::stop, "stop"},       Named{FrameType::kill, "kill"},
    Named{FrameType::ping, "ping"},     Named{FrameType::bye, "bye"},         Named{FrameType::welcome, "welcome"},
    Named{FrameType::stored, "stored"}, Named{FrameType::refused, "refused"}, Named{FrameType::ended, "ended"},
    Named{FrameType::pong, "pong"},
};

std::string_view name_of(FrameType type) {
  const auto found = std::ranges::find(kTypes, type, &Named::type);
  return found == kTypes.end() ? "unknown" : found->name;
}

std::string framed(FrameType type, std::string_view payload) {
  const auto length = static_cast<std::uint32_t>(payload.size() + 1);
  std::string frame;
  frame.reserve(kLengthBytes + length);
  for (const unsigned shift : {24U, 16U, 8U, 0U}) frame += static_cast<char>((length >> shift) & 0xFFU);
  frame += static_cast<char>(type);
  return frame.append(payload);
}

std::string framed_json(FrameType type, const json& payload) { return framed(type, payload.dump()); }

constexpr const char* kHint = "both sides must be of one assay version";

std::optional<int> optional_whole(StrictObject& fields, const char* name, int most) {
  if (fields.optional(name) == nullptr) return std::nullopt;
  return static_cast<int>(fields.whole(name, 0, most));
}

bool is_sentence(std::string_view text) {
  constexpr std::size_t kMaxSentence = 4096;  // a reason is a line or two
  return text.size() <= kMaxSentence;
}
bool is_outcome(std::string_view text) {
  constexpr std::array<std::string_view, 6> kOutcomes = {"exited",       "signalled",    "deadline",
                                                         "output_limit", "memory_limit", "stopped"};
  return std::ranges::find(kOutcomes, text) != kOutcomes.end();
}
bool is_argument(std::string_view text) {
  return text.size() <= kMaxArgument && text.find('\0') == std::string_view::npos;
}

bool is_token(std::string_view text) {
  constexpr std::size_t kMaxToken = 128;
  return text.size() <= kMaxToken && std::ranges::all_of(text, [](unsigned char c) { return std::isxdigit(c) != 0; });
}

std::vector<std::string> arguments_of(StrictObject& fields) {
  const json& list = fields.need("arguments");
  if (!list.is_array() || list.size() > kMaxArguments)
    fields.refuse("arguments", fmt::format("is not a list of at most {} texts", kMaxArguments));
  std::vector<std::string> arguments;
  for (const auto& entry : list) {
    if (!entry.is_string() || !is_argument(entry.get_ref<const std::string&>()))
      fields.refuse(fmt::format("arguments[{}]", arguments.size()), "is not text of the allowed form");
    arguments.push_back(entry.get<std::string>());
  }
  return arguments;
}

wire::Limits limits_of(StrictObject& fields) {
  StrictObject limits(fields.need("limits"), fields.path("limits"), kHint);
  const wire::Limits result{
      .memory_bytes = limits.count("memory_bytes", 1, UINT64_MAX),
      .output_bytes = limits.count("output_bytes", 1, UINT64_MAX),
      .cpu_s = limits.number("cpu_s", 1e-3, 1e9)};  // up to 30 years, of a thousand cores half a day
  limits.done();
  return result;
}

json facts_of(StrictObject& fields) {
  const json& facts = fields.need("facts");
  const auto values = values_from(facts);
  if (!values) fields.refuse("facts", "is not an object of scalars");
  if (const auto problem = problem_of_facts(*values)) fields.refuse("facts", *problem);
  return facts;
}

std::expected<wire::Data, InputError> read_data(const Frame& frame) {
  const auto error = [](const std::string& what) { return std::unexpected(InputError{"data", what, kHint}); };
  const std::string_view payload = frame.payload;
  if (payload.size() < kDataHeader) return error("is shorter than its header");
  const auto channel = static_cast<std::uint8_t>(payload[0]);
  const auto id_size = static_cast<std::size_t>(static_cast<unsigned char>(payload[1]));
  if (channel < static_cast<std::uint8_t>(Channel::out) || channel > static_cast<std::uint8_t>(Channel::program)) {
    return error(fmt::format("channel {} is none of 1, 2, 3", channel));
  }
  if (payload.size() <= kDataHeader + id_size) return error("has no bytes after its id");
  wire::Data data{.channel = static_cast<Channel>(channel),
                  .id = std::string(payload.substr(kDataHeader, id_size)),
                  .bytes = std::string(payload.substr(kDataHeader + id_size))};
  if (!is_run_id(data.id)) return error("id is not of the allowed form");
  if (data.bytes.size() > kMaxChunk)
    return error(fmt::format("carries {} bytes, over {}", data.bytes.size(), kMaxChunk));
  return data;
}

std::unexpected<InputError> misplaced(const Frame& frame, const char* side) {
  return std::unexpected(InputError{std::string(name_of(frame.type)), fmt::format("is not a message of {}", side),
                                    "the two ends of the stream are mixed up"});
}

constexpr std::int64_t kMaxProtocol = 1'000'000;  // any number is read; the session refuses another than kProtocol
constexpr int kMaxStatus = 255;                   // exit codes and signals are bytes

/// The message that `read` makes of the fields of `frame`, all of which it must take.
template <class Any>
std::expected<Any, InputError> decode(const Frame& frame, Any (*read)(FrameType, StrictObject&)) {
  constexpr JsonLimits kLimits{.max_bytes = kMaxPayload, .max_depth = 4};
  const std::string name(name_of(frame.type));
  const auto parsed = parse_json(frame.payload, name, kLimits);
  if (!parsed) return std::unexpected(parsed.error());
  return read_strictly("", [&] {
    StrictObject fields(*parsed, name, kHint);
    Any message = read(frame.type, fields);
    fields.done();
    return message;
  });
}

bool is_path(const std::string& text) {
  return !text.empty() && text.size() <= kMaxPath && text.find('\0') == std::string::npos;
}

/// Fields that an agent or orchestrator of another version has not: it must be able to say so.
wire::Hello hello_from(StrictObject& fields) {
  wire::Hello hello{static_cast<int>(fields.whole("protocol", 1, kMaxProtocol))};
  if (fields.optional("directories") == nullptr) return hello;
  for (const auto& entry : fields.list("directories")) {
    if (!entry.is_string() || !is_path(entry.get<std::string>()) || hello.directories.size() == kMostDirectories)
      fields.refuse("directories", fmt::format("is not a list of at most {} paths", kMostDirectories));
    hello.directories.push_back(entry.get<std::string>());
  }
  return hello;
}

std::map<std::string, std::uint64_t> free_of(StrictObject& fields) {
  std::map<std::string, std::uint64_t> free;
  const json* const given = fields.optional("free");
  if (given == nullptr) return free;
  if (!given->is_object() || given->size() > kMostDirectories) fields.refuse("free", "is not an object of few counts");
  for (const auto& [directory, bytes] : given->items()) {
    if (!is_path(directory) || !bytes.is_number_unsigned()) fields.refuse("free", "has a value that is no count");
    free.emplace(directory, bytes.get<std::uint64_t>());
  }
  return free;
}

wire::Run run_from(StrictObject& fields) {
  return {.id = fields.text("id", is_run_id),
          .sha256 = fields.text("sha256", files::is_sha256),
          .arguments = arguments_of(fields),
          .token = fields.text("token", is_token),
          .deadline_s = fields.number("deadline_s", 1e-3, kMaxDeadline_s),
          .limits = limits_of(fields)};
}

wire::Ended ended_from(StrictObject& fields) {
  wire::Ended ended{.id = fields.text("id", is_run_id),
                    .outcome = fields.text("outcome", is_outcome),
                    .exit_code = optional_whole(fields, "exit_code", kMaxStatus),
                    .signal = optional_whole(fields, "signal", kMaxStatus),
                    .elapsed_s = fields.number("elapsed_s", 0, 2 * kMaxDeadline_s),
                    .left_behind = static_cast<int>(fields.whole("left_behind", 0, INT32_MAX))};
  if (ended.exit_code && ended.signal) fields.refuse("signal", "is given with exit_code");
  return ended;
}

wire::ToAgent to_agent_from(FrameType type, StrictObject& fields) {
  switch (type) {
    case FrameType::hello:
      return hello_from(fields);
    case FrameType::program:
      return wire::Program{.sha256 = fields.text("sha256", files::is_sha256),
                           .size = fields.count("size", 1, kMaxProgram)};
    case FrameType::run:
      return run_from(fields);
    case FrameType::stop:
      return wire::Stop{fields.text("id", is_run_id)};
    case FrameType::kill:
      return wire::Kill{fields.text("id", is_run_id)};
    case FrameType::ping:
      return wire::Ping{};
    default:
      return wire::Bye{};
  }
}

wire::FromAgent from_agent_from(FrameType type, StrictObject& fields) {
  switch (type) {
    case FrameType::welcome:
      return wire::Welcome{.protocol = static_cast<int>(fields.whole("protocol", 1, kMaxProtocol)),
                           .assay_version = fields.text("assay_version", is_run_id),
                           .agent_sha256 = fields.text("agent_sha256", files::is_sha256),
                           .facts = facts_of(fields),
                           .free = free_of(fields)};
    case FrameType::stored:
      return wire::Stored{fields.text("sha256", files::is_sha256)};
    case FrameType::refused:
      return wire::Refused{.what = fields.text("what", is_run_id), .reason = fields.text("reason", is_sentence)};
    case FrameType::ended:
      return ended_from(fields);
    default:
      return wire::Pong{};
  }
}

constexpr std::string_view kGreeting = "assay-dial/1 ";

}  // namespace

void FrameReader::feed(std::string_view bytes) {
  if (broken_) return;
  pending_.erase(0, taken_);
  taken_ = 0;
  pending_.append(bytes);
}

std::expected<std::optional<Frame>, InputError> FrameReader::next() {
  if (broken_) return std::unexpected(*broken_);
  const auto refuse = [&](std::string what) {
    broken_ = InputError{fmt::format("byte {} of the stream", offset_), std::move(what),
                         "something else than assay writes to this stream; look for output of login scripts"};
    return std::unexpected(*broken_);
  };
  const std::string_view rest = std::string_view(pending_).substr(taken_);
  if (rest.size() < kLengthBytes) return std::nullopt;
  std::uint32_t length = 0;
  for (const char c : rest.substr(0, kLengthBytes)) length = (length << 8U) | static_cast<unsigned char>(c);
  if (length < 1 || length > kMaxPayload + 1) {
    return refuse(fmt::format("a frame of {} bytes; 1 to {} are allowed", length, kMaxPayload + 1));
  }
  if (rest.size() < kLengthBytes + 1) return std::nullopt;
  const auto type = static_cast<FrameType>(rest[kLengthBytes]);
  if (std::ranges::find(kTypes, type, &Named::type) == kTypes.end()) {
    return refuse(fmt::format("unknown frame type {}", static_cast<unsigned>(type)));
  }
  if (type == FrameType::data && length > 1 + kDataHeader + kMaxId + kMaxChunk) {
    return refuse(
        fmt::format("a data frame of {} bytes; {} are allowed", length, 1 + kDataHeader + kMaxId + kMaxChunk));
  }
  if (rest.size() < kLengthBytes + length) return std::nullopt;
  Frame frame{.type = type, .payload = std::string(rest.substr(kLengthBytes + 1, length - 1))};
  taken_ += kLengthBytes + length;
  offset_ += kLengthBytes + length;
  return frame;
}

std::string encode(const wire::Data& data) {
  std::string payload;
  payload.reserve(kDataHeader + data.id.size() + data.bytes.size());
  payload += static_cast<char>(data.channel);
  payload += static_cast<char>(data.id.size());
  payload.append(data.id).append(data.bytes);
  return framed(FrameType::data, payload);
}

std::string encode(const wire::ToAgent& message) {
  struct Visitor {
    std::string operator()(const wire::Hello& m) const {
      return framed_json(FrameType::hello, json{{"protocol", m.protocol}, {"directories", m.directories}});
    }
    std::string operator()(const wire::Program& m) const {
      return framed_json(FrameType::program, json{{"sha256", m.sha256}, {"size", m.size}});
    }
    std::string operator()(const wire::Data& m) const { return encode(m); }
    std::string operator()(const wire::Run& m) const {
      const json limits = {
          {"memory_bytes", m.limits.memory_bytes}, {"output_bytes", m.limits.output_bytes}, {"cpu_s", m.limits.cpu_s}};
      return framed_json(FrameType::run, json{{"id", m.id},
                                              {"sha256", m.sha256},
                                              {"arguments", m.arguments},
                                              {"token", m.token},
                                              {"deadline_s", m.deadline_s},
                                              {"limits", limits}});
    }
    std::string operator()(const wire::Stop& m) const { return framed_json(FrameType::stop, json{{"id", m.id}}); }
    std::string operator()(const wire::Kill& m) const { return framed_json(FrameType::kill, json{{"id", m.id}}); }
    std::string operator()(const wire::Ping&) const { return framed_json(FrameType::ping, json::object()); }
    std::string operator()(const wire::Bye&) const { return framed_json(FrameType::bye, json::object()); }
  };
  return std::visit(Visitor{}, message);
}

std::string encode(const wire::FromAgent& message) {
  struct Visitor {
    std::string operator()(const wire::Welcome& m) const {
      return framed_json(FrameType::welcome, json{{"protocol", m.protocol},
                                                  {"assay_version", m.assay_version},
                                                  {"agent_sha256", m.agent_sha256},
                                                  {"facts", m.facts},
                                                  {"free", m.free}});
    }
    std::string operator()(const wire::Stored& m) const {
      return framed_json(FrameType::stored, json{{"sha256", m.sha256}});
    }
    std::string operator()(const wire::Refused& m) const {
      return framed_json(FrameType::refused, json{{"what", m.what}, {"reason", m.reason}});
    }
    std::string operator()(const wire::Data& m) const { return encode(m); }
    std::string operator()(const wire::Ended& m) const {
      json fields = {{"id", m.id}, {"outcome", m.outcome}, {"elapsed_s", m.elapsed_s}, {"left_behind", m.left_behind}};
      if (m.exit_code) fields["exit_code"] = *m.exit_code;
      if (m.signal) fields["signal"] = *m.signal;
      return framed_json(FrameType::ended, fields);
    }
    std::string operator()(const wire::Pong&) const { return framed_json(FrameType::pong, json::object()); }
  };
  return std::visit(Visitor{}, message);
}

std::expected<wire::ToAgent, InputError> decode_to_agent(const Frame& frame) {
  if (frame.type == FrameType::data) return read_data(frame);
  if (frame.type >= FrameType::welcome) return misplaced(frame, "an orchestrator");
  return decode(frame, to_agent_from);
}

std::expected<wire::FromAgent, InputError> decode_from_agent(const Frame& frame) {
  if (frame.type == FrameType::data) return read_data(frame);
  if (frame.type < FrameType::welcome) return misplaced(frame, "an agent");
  return decode(frame, from_agent_from);
}

static_assert(kTokenDigits == 64, "a token has the form of a SHA-256");

bool is_greeting_token(std::string_view text) { return files::is_sha256(text); }

std::string to_line(const Greeting& greeting) {
  return std::string(kGreeting) + greeting.token + ' ' + greeting.node + '\n';
}

std::optional<Greeting> greeting_from(std::string_view line) {
  if (!line.starts_with(kGreeting)) return std::nullopt;
  line.remove_prefix(kGreeting.size());
  if (line.size() <= kTokenDigits || line[kTokenDigits] != ' ') return std::nullopt;
  Greeting greeting{.token = std::string(line.substr(0, kTokenDigits)),
                    .node = std::string(line.substr(kTokenDigits + 1))};
  if (!is_greeting_token(greeting.token) || !is_node_name(greeting.node)) return std::nullopt;
  return greeting;
}

}  // namespace assay::wire
