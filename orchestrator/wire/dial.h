// dial: the words with which an agent that was started by somebody else reports to assay, before the protocol begins.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace assay::wire {

/// What an agent says first: "assay-dial/1 TOKEN NODE\n".
struct Greeting {
  std::string token;  ///< kTokenDigits hexadecimal digits
  std::string node;   ///< the name that Slurm gives the node it runs on
};

/// 256 bits: nobody guesses it, and as many as the pin has.
inline constexpr std::size_t kTokenBytes = 32;
inline constexpr std::size_t kTokenDigits = 2 * kTokenBytes;
/// The longest greeting or answer, with its newline.
inline constexpr std::size_t kMaxDialLine = 512;

/// The line of a greeting, with its newline.
std::string to_line(const Greeting& greeting);
/// The greeting in a line without its newline; nothing when it is none.
std::optional<Greeting> greeting_from(std::string_view line);

/// What assay answers, with the newline: the protocol begins.
inline constexpr std::string_view kDialWelcome = "assay-dial/1 welcome\n";
/// What it answers instead, before it closes the stream; a reason in printable ASCII follows, and the newline.
inline constexpr std::string_view kDialRefused = "assay-dial/1 refused ";

/// True for exactly kTokenDigits lower-case hexadecimal digits.
bool is_dial_token(std::string_view text);
}  // namespace assay::wire
