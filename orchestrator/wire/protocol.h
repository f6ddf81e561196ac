// protocol: messages of orchestrator and agent over one byte stream. Each side treats the other as hostile.
//
// A frame is a length (u32, big endian, of the rest), a type (u8) and a payload: a closed JSON object, or for
// `data` a channel (u8), the length of an id (u8), the id and raw bytes. Before it begins, an agent that connects back
// identifies itself by a line, and has an answer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <nlohmann/json.hpp>

#include "probes/core/error.h"
#include "probes/core/text.h"

namespace assay::wire {

/// Rises with every change of a frame; both sides refuse another number.
inline constexpr int kProtocol = 3;
/// The largest payload of a frame; the largest control message, host facts with reasons, stays below 64 KiB.
inline constexpr std::size_t kMaxPayload = 1 << 20;
/// The most bytes in one data frame: large enough to be cheap, small enough that no stream starves another.
inline constexpr std::size_t kMaxChunk = 64 << 10;
/// The largest program: statically linked CUDA libraries reach some 600 MB.
inline constexpr std::uint64_t kMaxProgram = 1ULL << 30;
/// The most directories of a hello: storages of one node that a plan writes to.
inline constexpr std::size_t kMostDirectories = 32;
/// The longest deadline of a run: a soak of two weeks.
inline constexpr double kMaxDeadline_s = 14.0 * 86400;

/// The type of a frame, as on the wire.
enum class FrameType : std::uint8_t {
  hello = 1,
  program = 2,
  data = 3,
  run = 4,
  stop = 5,
  kill = 6,
  ping = 7,
  bye = 8,
  welcome = 16,
  stored = 17,
  refused = 18,
  ended = 19,
  pong = 20,
};

/// One frame as read: its type is known, its size within bounds, its payload not looked at.
struct Frame {
  FrameType type = FrameType::ping;
  std::string payload;
};

/// Cuts a byte stream into frames. Pure and incremental: the pieces in which bytes arrive do not matter.
class FrameReader {
 public:
  /// Takes more bytes of the stream; call next() until it has nothing before feeding again.
  void feed(std::string_view bytes);
  /// The next whole frame; nothing while it is incomplete. An error (unknown type, size out of bounds) names the byte
  /// of the stream, and every later call returns it again: a stream that lost its frames cannot find them again.
  std::expected<std::optional<Frame>, InputError> next();

 private:
  std::string pending_;
  std::size_t taken_ = 0;     // bytes at the front of pending_ that are used up
  std::uint64_t offset_ = 0;  // of pending_[taken_] in the stream
  std::optional<InputError> broken_;
};

/// Content of a data frame.
enum class Channel : std::uint8_t { out = 1, err = 2, program = 3 };

// The messages.

/// The orchestrator's first word. The agent says how much is free in `directories`, of which the plan writes to.
struct Hello {
  int protocol = kProtocol;
  std::vector<std::string> directories = {};  ///< at most kMostDirectories; relative: to the agent's directory
};
/// A program of `size` bytes follows in data frames whose id is `sha256`.
struct Program {
  std::string sha256;
  std::uint64_t size = 0;
};
/// Bytes of a run's stdout or stderr (id of the run), or of a program (id is its sha256). 1 to kMaxChunk bytes.
struct Data {
  Channel channel = Channel::out;
  std::string id;
  std::string bytes;
};
/// Limits of a run. cpu_s counts per process (RLIMIT_CPU); memory is the resident set of the whole process tree.
struct Limits {
  std::uint64_t memory_bytes = 0;
  std::uint64_t output_bytes = 0;
  double cpu_s = 0;
};
/// Start a stored program. `token` is the secret by which the ranks of a step know each other; empty: none. It travels
/// apart from the arguments, because every user of a node can read those.
struct Run {
  std::string id;
  std::string sha256;
  std::vector<std::string> arguments;
  std::string token;
  double deadline_s = 0;
  Limits limits;
};
/// SIGTERM to a run; it is killed when it does not end.
struct Stop {
  std::string id;
};
/// SIGKILL to the whole tree of a run.
struct Kill {
  std::string id;
};
/// The orchestrator is there.
struct Ping {};
/// No more: kill running programs, clean up, exit.
struct Bye {};

/// The agent's answer to hello: its own facts and its host's (host_facts, an object of scalars).
struct Welcome {
  int protocol = kProtocol;
  std::string assay_version;
  std::string agent_sha256;
  nlohmann::json facts;
  std::map<std::string, std::uint64_t> free = {};  ///< B in each directory of the hello that could be asked
};
/// A program arrived whole and has the SHA-256 that was announced.
struct Stored {
  std::string sha256;
};
/// The program or run named by `what` is refused.
struct Refused {
  std::string what;
  std::string reason;
};
/// A run is over and its tree is gone. outcome: exited | signalled | deadline | output_limit | memory_limit | stopped.
/// exit_code or signal say how the program itself ended; `left_behind` counts processes that outlived it and were
/// killed.
struct Ended {
  std::string id;
  std::string outcome;
  std::optional<int> exit_code;
  std::optional<int> signal;
  double elapsed_s = 0;
  int left_behind = 0;
};
/// The agent is there.
struct Pong {};

using ToAgent = std::variant<Hello, Program, Data, Run, Stop, Kill, Ping, Bye>;
using FromAgent = std::variant<Welcome, Stored, Refused, Data, Ended, Pong>;

/// The whole frame of a message. Precondition: it is one that decode takes back (asserted by the tests, not at run
/// time).
std::string encode(const wire::ToAgent& message);
/// The whole frame of a message.
std::string encode(const wire::FromAgent& message);
/// The whole frame of data, which both directions have.
std::string encode(const wire::Data& data);

/// The message in `frame`; an error names the type and the field, and refuses unknown and missing fields, values out of
/// bounds, and types that belong to the other direction.
std::expected<wire::ToAgent, InputError> decode_to_agent(const Frame& frame);
/// The message in `frame`, as decode_to_agent.
std::expected<wire::FromAgent, InputError> decode_from_agent(const Frame& frame);

/// The first line of an agent: "assay-dial/1 TOKEN NODE\n".
struct Greeting {
  std::string token;  ///< kTokenDigits hexadecimal digits
  std::string node;   ///< Slurm's name of the node it runs on
};

/// 256 bits: cannot be guessed; as long as the pin.
inline constexpr std::size_t kTokenBytes = 32;
inline constexpr std::size_t kTokenDigits = 2 * kTokenBytes;
/// The longest greeting or answer, with its newline.
inline constexpr std::size_t kMaxGreetingLine = 512;

/// The line of a greeting, with its newline.
std::string to_line(const Greeting& greeting);
/// The greeting in a line without its newline; nothing if it is not one.
std::optional<Greeting> greeting_from(std::string_view line);

/// The answer that accepts a greeting, with its newline; the protocol begins after it.
inline constexpr std::string_view kGreetingAccepted = "assay-dial/1 welcome\n";
/// The answer that refuses it, before the stream is closed; a reason in printable ASCII follows, and a newline.
inline constexpr std::string_view kGreetingRefused = "assay-dial/1 refused ";

/// True for exactly kTokenDigits lower-case hexadecimal digits.
bool is_greeting_token(std::string_view text);

}  // namespace assay::wire
