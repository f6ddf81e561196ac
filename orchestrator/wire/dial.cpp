// dial: one line each way.
#include "orchestrator/wire/dial.h"

#include <algorithm>

#include "orchestrator/files/digest.h"

namespace assay {
namespace {

constexpr std::string_view kGreeting = "assay-dial/1 ";

bool is_alphanumeric(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

}  // namespace

static_assert(kTokenDigits == 64, "is_dial_token takes what is_sha256 takes");

bool is_dial_token(std::string_view text) { return is_sha256(text); }

bool is_node_name(std::string_view text) {
  constexpr std::size_t kLongest = 63;
  return !text.empty() && text.size() <= kLongest && is_alphanumeric(text.front()) &&
         std::ranges::all_of(text, [](char c) { return is_alphanumeric(c) || c == '.' || c == '_' || c == '-'; });
}

std::string to_line(const Greeting& greeting) {
  return std::string(kGreeting) + greeting.token + ' ' + greeting.node + '\n';
}

std::optional<Greeting> greeting_from(std::string_view line) {
  if (!line.starts_with(kGreeting)) return std::nullopt;
  line.remove_prefix(kGreeting.size());
  if (line.size() <= kTokenDigits || line[kTokenDigits] != ' ') return std::nullopt;
  Greeting greeting{.token = std::string(line.substr(0, kTokenDigits)),
                    .node = std::string(line.substr(kTokenDigits + 1))};
  if (!is_dial_token(greeting.token) || !is_node_name(greeting.node)) return std::nullopt;
  return greeting;
}

}  // namespace assay
