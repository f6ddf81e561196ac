// log: a strict scanner over NCCL's lines. Formats: NCCL v2.28.9 src/debug.cc, enqueue.cc, transport/*.cc, init.cc;
// RCCL 2.21 to 2.28, the same files (ROCm/rccl 0cbce2a, ROCm/rocm-systems projects/rccl, read on 2026-11-28).
#include "probes/nccl/log.h"

#include <algorithm>
#include <charconv>
#include <ranges>

namespace assay::nccl {
namespace {

constexpr std::size_t kMaxWarnings = 20;  // one failure repeats itself; the first lines have the cause

/// Takes a text apart from its front; every step says whether the text was as expected.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  bool literal(std::string_view expected) {
    if (!rest_.starts_with(expected)) return false;
    rest_.remove_prefix(expected.size());
    return true;
  }
  bool number(std::int64_t& value) {
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc{}) return false;
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return true;
  }
  bool number() {
    std::int64_t ignored = 0;
    return number(ignored);
  }
  /// Everything before `mark`, which is taken, too.
  bool until(std::string_view mark, std::string_view& value) {
    const auto at = rest_.find(mark);
    if (at == std::string_view::npos || at == 0) return false;
    value = rest_.substr(0, at);
    rest_.remove_prefix(at + mark.size());
    return true;
  }
  /// "3[0]": a rank and its GPU; RCCL has the GPU's address instead, "3[c1000]".
  bool peer() {
    std::string_view address;
    return number() && literal("[") && until("]", address) &&
           address.find_first_not_of("0123456789abcdef") == std::string_view::npos;
  }
  /// Cuts off RCCL's words on its communicator: " comm 0x55d0 nRanks 08".
  void cut_communicator() {
    const auto at = rest_.rfind(" comm 0x");
    Scanner behind(at == std::string_view::npos ? "" : rest_.substr(at));
    std::string_view address;
    if (behind.literal(" comm 0x") && behind.until(" nRanks ", address) && behind.number() && behind.done())
      rest_ = rest_.substr(0, at);
  }
  [[nodiscard]] bool done() const { return rest_.empty(); }
  [[nodiscard]] std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

bool one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}

/// "AllReduce: 8388608 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..15}"
std::optional<Choice> read_choice(std::string_view message) {
  Scanner scan(message);
  std::string_view function, algorithm, protocol;
  std::int64_t bytes = 0, low = 0, high = 0;
  const bool whole = scan.until(": ", function) && scan.number(bytes) && scan.literal(" Bytes -> Algo ") &&
                     scan.until(" proto ", algorithm) && scan.until(" channel{Lo..Hi}={", protocol) &&
                     scan.number(low) && scan.literal("..") && scan.number(high) && scan.literal("}") && scan.done();
  if (!whole || bytes < 0 || low < 0 || high < low) return std::nullopt;
  if (!one_of(algorithm, {"TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT"}))
    return std::nullopt;
  if (!one_of(protocol, {"LL", "LL128", "SIMPLE"})) return std::nullopt;
  return Choice{.function = std::string(function),
                .bytes = bytes,
                .algorithm = std::string(algorithm),
                .protocol = std::string(protocol),
                .channels = high - low + 1};
}

/// Behind "NET/" or "COLLNET/": "IB/0/GDRDMA(PCI)/Shared", "IB/0(3)/GDRDMA", "AWS Libfabric/1". The plug-in's name may
/// hold anything, so the device is looked for from the end. Spaces in it become underlines: the list has spaces
/// between.
std::optional<std::string> read_net(std::string_view prefix, std::string_view path) {
  const auto cut = [&](std::string_view suffix) {
    const bool there = path.ends_with(suffix);
    if (there) path.remove_suffix(suffix.size());
    return there;
  };
  (void)cut("/Shared");  // whether buffers are shared changes no path
  const bool direct = cut("/GDRDMA(PCI)") || cut("/GDRDMA");
  const auto slash = path.rfind('/');
  if (slash == std::string_view::npos || slash == 0) return std::nullopt;
  Scanner device(path.substr(slash + 1));
  if (!device.number()) return std::nullopt;
  if (!device.done() && !(device.literal("(") && device.number() && device.literal(")") && device.done()))
    return std::nullopt;
  std::string name(path.substr(0, slash));
  std::ranges::replace(name, ' ', '_');
  return std::string(prefix) + name + (direct ? "/GDRDMA" : "");
}

/// Behind "via P2P/".
std::optional<std::string> read_p2p(std::string_view path) {
  Scanner scan(path);
  std::string kind;
  if (scan.literal("direct pointer"))
    kind = "direct";
  else if (scan.literal("MNNVL") || scan.literal("CUMEMMNNVL"))  // RCCL's spelling
    kind = "MNNVL";
  else if (scan.literal("CUMEM"))
    (void)scan.literal("CUMEM"), kind = "CUMEM";
  else if (scan.literal("IPC"))
    kind = "IPC";
  else if (scan.literal("indirect/") && scan.peer())
    kind = "indirect";
  else
    return std::nullopt;
  (void)scan.literal("/read");  // both directions are the same path
  (void)scan.literal("/CE");
  return scan.done() ? std::optional("P2P/" + kind) : std::nullopt;
}

/// "Channel 00/0 : 0[0] -> 1[1] [send] via NET/IB/0/GDRDMA" and its kin.
std::optional<std::string> read_transport(std::string_view message) {
  Scanner scan(message);
  scan.cut_communicator();
  if (scan.literal("CollNet ")) {
    if (!(scan.number() && scan.literal("/") && scan.number() && scan.literal(" : ") && scan.number()))
      return std::nullopt;
    if (!scan.literal(" [send] via COLLNET/") && !scan.literal(" [receive] via COLLNET/")) return std::nullopt;
    return read_net("COLLNET/", scan.rest());
  }
  if (!scan.literal("Channel ") || !scan.number()) return std::nullopt;
  if (scan.literal("/") && !scan.number()) return std::nullopt;  // shared memory has no number of the connection
  if (!(scan.literal(" : ") && scan.peer() && scan.literal(" -> ") && scan.peer())) return std::nullopt;
  if (scan.literal(" [send] via NET/") || scan.literal(" [receive] via NET/")) return read_net("NET/", scan.rest());
  if (scan.literal(" via P2P/")) return read_p2p(scan.rest());
  if (scan.literal(" via SHM/") && one_of(scan.rest(), {"direct/direct", "CE/direct", "direct/CE", "CE/CE", "direct"}))
    return "SHM";
  return std::nullopt;
}

/// "NVLS multicast support is not available on dev 0 (NVLS_NCHANNELS 0)"; the part in brackets is new in 2.27 and gone
/// in 2.30.
std::optional<bool> read_multicast(std::string_view message) {
  Scanner scan(message);
  if (!scan.literal("NVLS multicast support is ")) return std::nullopt;
  const bool available = !scan.literal("not ");
  if (!(scan.literal("available on dev ") && scan.number())) return std::nullopt;
  if (scan.literal(" (NVLS_NCHANNELS ") && !(scan.number() && scan.literal(")"))) return std::nullopt;
  return scan.done() ? std::optional(available) : std::nullopt;
}

/// "NVLS comm 0x55d0 headRank 0 nHeads 8 nvlsRanks 8 buffSize …": NVLS has its buffers.
bool is_nvls_buffers(std::string_view message) {
  Scanner scan(message);
  std::string_view address;
  return scan.literal("NVLS comm ") && scan.until(" headRank ", address) && scan.number() && scan.literal(" nHeads ") &&
         scan.number();
}

/// "Channel 00/0 : 7[7] -> 8[0] [send] via NET/IB/3/GDRDMA": by which adapter a channel leaves for another node. The 0
/// behind the channel is that of collectives; networks other than NET/IB number adapters in ways of their own.
void read_send(std::string_view message, NcclLog& log) {
  Scanner scan(message);
  std::int64_t channel = 0, adapter = 0;
  if (scan.literal("Channel ") && scan.number(channel) && scan.literal("/0 : ") && scan.peer() &&
      scan.literal(" -> ") && scan.peer() && scan.literal(" [send] via NET/IB/") && scan.number(adapter))
    log.sends[channel].insert(adapter);
}

/// "NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.0.0.1<0>".
bool read_adapters(std::string_view message, NcclLog& log) {
  Scanner scan(message);
  if (!scan.literal("NET/IB : Using")) return false;
  std::int64_t number = 0;
  std::string_view port;
  while (scan.literal(" [") && scan.number(number) && scan.literal("]") && scan.until("/", port) &&
         (scan.literal("IB") || scan.literal("RoCE")))
    log.adapters.emplace(number, port);
  return true;
}

void read_message(std::string_view message, NcclLog& log) {
  read_send(message, log);
  if (auto choice = read_choice(message)) {
    if (std::ranges::find(log.choices, *choice) == log.choices.end()) log.choices.push_back(std::move(*choice));
  } else if (auto transport = read_transport(message)) {
    log.transports.insert(std::move(*transport));
  } else if (read_adapters(message, log)) {
    return;
  } else if (const auto multicast = read_multicast(message)) {
    log.multicast = log.multicast.value_or(true) && *multicast;
  } else if (is_nvls_buffers(message)) {
    log.transports.insert("NVLS");
  } else if (Scanner scan(message); scan.literal("Using network ") && !scan.done()) {
    log.network = std::string(scan.rest());
  }
}

/// The message of "n01:4711:4722 [3] NCCL INFO message"; nothing for a line of another form.
std::optional<std::string_view> message_of(std::string_view line, std::string_view level) {
  const auto at = line.find(level);
  if (at == std::string_view::npos) return std::nullopt;
  const auto head = line.substr(0, at);
  const auto space = head.rfind(' ');
  return space != std::string_view::npos && head.find(':') < space ? std::optional(line.substr(at + level.size()))
                                                                   : std::nullopt;
}

}  // namespace

NcclLog read_nccl_log(std::string_view text) {
  NcclLog log;
  for (const auto range : text | std::views::split('\n')) {
    const std::string_view line(range.begin(), range.end());
    if (const auto message = message_of(line, "] NCCL INFO ")) {
      read_message(*message, log);
    } else if (const auto warning = message_of(line, " NCCL WARN "); warning && log.warnings.size() < kMaxWarnings) {
      log.warnings.emplace_back(*warning);
    }
  }
  return log;
}

}  // namespace assay::nccl
