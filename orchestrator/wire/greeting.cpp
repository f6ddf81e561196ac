// greeting: writes and reads the line.
#include "orchestrator/wire/greeting.h"

#include "orchestrator/files/digest.h"
#include "probes/core/text.h"

namespace assay::wire {
namespace {

constexpr std::string_view kGreeting = "assay-dial/1 ";

}  // namespace

static_assert(kTokenDigits == 64, "a token has the form of a SHA-256");

bool is_token(std::string_view text) { return files::is_sha256(text); }

std::string to_line(const Greeting& greeting) {
  return std::string(kGreeting) + greeting.token + ' ' + greeting.node + '\n';
}

std::optional<Greeting> greeting_from(std::string_view line) {
  if (!line.starts_with(kGreeting)) return std::nullopt;
  line.remove_prefix(kGreeting.size());
  if (line.size() <= kTokenDigits || line[kTokenDigits] != ' ') return std::nullopt;
  Greeting greeting{.token = std::string(line.substr(0, kTokenDigits)),
                    .node = std::string(line.substr(kTokenDigits + 1))};
  if (!is_token(greeting.token) || !is_node_name(greeting.node)) return std::nullopt;
  return greeting;
}

}  // namespace assay::wire
