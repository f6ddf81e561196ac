// greeting: the line by which an agent that connects back identifies itself, and its answer, before the protocol
// begins.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace assay::wire {

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
