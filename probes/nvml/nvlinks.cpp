// nvlinks: link by link, because the driver's totals cover only the first twelve. The driver may contradict itself: a
// link that is active at 0 B/s, a state that two calls answer differently, one silent link among others that answer.
// Then both answers are kept, and the contradiction is named.
#include "probes/nvml/nvlinks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include <fmt/format.h>

namespace assay::nvml {

namespace api = nvml_api;
namespace {

constexpr std::array kErrorFields = {api::kFieldLinkReplay,    api::kFieldLinkRecovery,      api::kFieldLinkCrc,
                                     api::kFieldLinkMalformed, api::kFieldLinkOverrun,       api::kFieldLinkReceive,
                                     api::kFieldLinkIntegrity, api::kFieldLinkRecoveryEvents};

/// Errors of one link; nothing if the driver counts none. Sets `code` when a question failed.
std::optional<std::uint64_t> errors_of(const NvmlGpu& gpu, unsigned link, api::Return& code) {
  std::optional<std::uint64_t> sum;
  const auto fields = gpu.fields(kErrorFields, link);
  if (fields.failed()) code = fields.code;
  if (fields.value) {
    for (const auto& number : *fields.value) {
      if (const auto count = whole(number)) sum = sum.value_or(0) + *count;
    }
  }
  if (sum) return sum;
  for (int counter = 0; counter < api::kLinkErrorCounters; ++counter) {
    const auto errors = gpu.link_errors(link, counter);
    if (errors.failed()) code = errors.code;
    if (errors.value) sum = sum.value_or(0) + *errors.value;
  }
  return sum;
}

/// The reported number of links, as far as links can be asked for.
unsigned links_to_ask(const std::optional<double>& told) {
  return static_cast<unsigned>(std::clamp(told.value_or(api::kMaxLinks), 0.0, double{api::kMaxLinks}));
}

/// Numbers of links by a word that they share.
using ByWord = std::map<std::string, std::vector<unsigned>>;

std::string text_of(const ByWord& words) {
  std::string text;
  for (const auto& [word, numbers] : words)
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", word, ranges_of(numbers));
  return text;
}

constexpr double kMegabyte = 1e6;  // "MBps" of nvml.h: nvidia-smi prints 26562 as 26.562 GB/s

constexpr std::array kLinkFields = {api::kFieldLinkSpeed,        api::kFieldLinkState,
                                    api::kFieldLinkRecovery,     api::kFieldLinkRecoveryEvents,
                                    api::kFieldLinkEffectiveBer, api::kFieldLinkSymbolBer};
enum LinkField : std::size_t { speed_mbps, state, recoveries_old, recoveries_new, effective_ber, symbol_ber };

/// The answers about one link.
class LinkReading {
 public:
  LinkReading(const NvmlGpu& gpu, unsigned number, LinkFacts& facts, ByWord& states) : facts_(facts) {
    link_.number = number;
    const auto by_call = gpu.link_active(number);
    const auto answers = gpu.fields(kLinkFields, number);
    if (by_call.failed()) code_ = by_call.code;
    if (answers.value) std::ranges::copy(*answers.value, fields_.begin());
    if (answers.failed()) ask_singly(gpu);
    is_there_ = by_call.value.has_value() || fields_[state].has_value();
    link_.active = by_call.value.value_or(fields_[state].value_or(api::kLinkInactive) != api::kLinkInactive);
    if (by_call.value && fields_[state] && *by_call.value != (*fields_[state] != api::kLinkInactive))
      contradict("is {} by its state and {} by its field", *by_call.value ? "active" : "inactive",
                 *by_call.value ? "inactive" : "active");
    link_.sleeping = link_.active && fields_[state] == double{api::kLinkSleeping};
    if (is_there_) states[link_.sleeping ? "sleeping" : link_.active ? "active" : "inactive"].push_back(number);
  }

  NvLinkFacts take() {
    if (const auto mbps = fields_[speed_mbps]) link_.speed = *mbps * kMegabyte;
    if (link_.active && link_.speed && *link_.speed <= 0) contradict("is active at {:g} B/s", *link_.speed);
    const auto recoveries = fields_[recoveries_new] ? fields_[recoveries_new] : fields_[recoveries_old];
    link_.recoveries = whole(recoveries);
    link_.effective_ber = rate_in(effective_ber, "effective");
    link_.symbol_ber = rate_in(symbol_ber, "symbol");
    return link_;
  }
  /// Whether the driver knows such a link.
  [[nodiscard]] bool is_there() const { return is_there_; }
  [[nodiscard]] api::Return code() const { return code_; }

 private:
  /// Asks for one field at a time, after one of them failed: the others may answer.
  void ask_singly(const NvmlGpu& gpu) {
    for (std::size_t i = 0; i < kLinkFields.size(); ++i) {
      const auto answer = gpu.field(kLinkFields[i], link_.number);
      fields_[i] = answer.value;
      if (answer.code == api::kGpuIsLost) code_ = answer.code;
      if (answer.failed()) contradict("answers field {} with an error (NVML {})", kLinkFields[i], answer.code);
    }
  }
  template <class... Words>
  void contradict(fmt::format_string<Words...> words, Words&&... given) {
    facts_.contradictions.push_back(
        fmt::format("link {} {}", link_.number, fmt::format(words, std::forward<Words>(given)...)));
  }
  std::optional<double> rate_in(LinkField field, const char* which) {
    if (!fields_[field]) return std::nullopt;
    const auto rate = bit_error_rate(*fields_[field]);
    if (!rate) contradict("has {:g} as its {} bit error rate, which is none", *fields_[field], which);
    return rate;
  }

  LinkFacts& facts_;
  NvLinkFacts link_;
  std::array<std::optional<double>, kLinkFields.size()> fields_ = {};
  bool is_there_ = false;
  api::Return code_ = api::kSuccess;
};

/// Names each link without a figure that others of the same GPU have.
void find_silent(LinkFacts& facts) {
  const auto compare = [&](const char* what, auto member) {
    const auto tells = [&](const NvLinkFacts& link) { return (link.*member).has_value(); };
    if (std::ranges::none_of(facts.links, tells)) return;
    for (const NvLinkFacts& link : facts.links) {
      if (link.active && !link.sleeping && !tells(link))
        facts.contradictions.push_back(fmt::format("link {} has no {}, others have", link.number, what));
    }
  };
  compare("speed", &NvLinkFacts::speed);
  compare("recoveries", &NvLinkFacts::recoveries);
  compare("effective bit error rate", &NvLinkFacts::effective_ber);
  compare("symbol bit error rate", &NvLinkFacts::symbol_ber);
}

/// The device at the other end of `link`; empty if the driver does not report it.
std::string remote_end(const NvmlGpu& gpu, unsigned link) {
  constexpr std::array kKinds = {"gpu", "npu", "switch"};
  const auto kind = gpu.link_remote_kind(link).value;
  const auto address = gpu.link_remote_address(link).value.value_or("");
  if (!kind && address.empty()) return "";
  const bool known = kind && *kind >= 0 && static_cast<std::size_t>(*kind) < kKinds.size();
  return fmt::format("{}{}{}", known ? kKinds[static_cast<std::size_t>(*kind)] : "unknown", address.empty() ? "" : " ",
                     address);
}

}  // namespace

std::optional<double> bit_error_rate(double packed) {
  constexpr unsigned kBits = 12, kExponentBits = 8;
  if (!(packed >= 0 && packed < (1U << kBits)) || packed != std::floor(packed)) return std::nullopt;
  const auto bits = static_cast<unsigned>(packed);
  const unsigned mantissa = bits >> kExponentBits, exponent = bits & ((1U << kExponentBits) - 1);
  const double rate = mantissa * std::pow(10.0, -static_cast<double>(exponent));
  return rate <= 1 ? std::optional(rate) : std::nullopt;
}

std::string ranges_of(const std::vector<unsigned>& numbers) {
  std::string text;
  for (std::size_t first = 0, last = 0; first < numbers.size(); first = ++last) {
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : " ", numbers[first]);
    if (last > first) text += fmt::format("-{}", numbers[last]);
  }
  return text;
}

Answer<LinkFacts> read_nvlink_facts(const NvmlGpu& gpu) {
  const auto told = gpu.field(api::kFieldLinkCount);
  if (told.failed()) return {.value = std::nullopt, .code = told.code};
  LinkFacts facts;
  ByWord states, ends;
  if (told.value && (*told.value > api::kMaxLinks || *told.value < 0))
    facts.contradictions.push_back(
        fmt::format("the GPU has {:g} links, and NVML at most {}", *told.value, api::kMaxLinks));
  for (unsigned number = 0; number < links_to_ask(told.value); ++number) {
    LinkReading reading(gpu, number, facts, states);
    if (reading.code() != api::kSuccess) return {.value = std::nullopt, .code = reading.code()};
    if (!reading.is_there()) {
      if (told.value) facts.contradictions.push_back(fmt::format("link {} is counted and has no state", number));
      continue;
    }
    facts.links.push_back(reading.take());
    if (const auto end = remote_end(gpu, number); !end.empty()) ends[end].push_back(number);
  }
  if (facts.links.empty()) return {.value = std::nullopt, .code = api::kNotSupported};
  find_silent(facts);
  facts.states = text_of(states);
  facts.remote_ends = text_of(ends);
  return {.value = std::move(facts), .code = api::kSuccess};
}

Answer<C2cLinks> read_c2c_links(const NvmlGpu& gpu) {
  constexpr std::array kFields = {api::kFieldC2cState, api::kFieldC2cSpeed, api::kFieldC2cCrc, api::kFieldC2cReplay,
                                  api::kFieldC2cReplayBackToBack};
  const auto told = gpu.field(api::kFieldC2cCount);
  if (!told.value || told.failed()) return {.value = std::nullopt, .code = told.code};
  C2cLinks all;
  ByWord states;
  for (unsigned number = 0; number < links_to_ask(told.value); ++number) {
    const auto answers = gpu.fields(kFields, number);
    if (answers.failed()) return {.value = std::nullopt, .code = answers.code};
    NvLinkFacts link;
    link.number = number;
    if (answers.value) {
      const auto& fields = *answers.value;
      link.active = fields[0].value_or(0) == 1;
      if (fields[1]) link.speed = *fields[1] * kMegabyte;
      for (std::size_t counter = 2; counter < kFields.size(); ++counter)
        if (const auto count = whole(fields[counter])) all.errors = all.errors.value_or(0) + *count;
    }
    if (link.active && link.speed && *link.speed <= 0)
      all.facts.contradictions.push_back(fmt::format("C2C link {} is active at {:g} B/s", number, *link.speed));
    states[link.active ? "active" : "inactive"].push_back(number);
    all.facts.links.push_back(link);
  }
  if (all.facts.links.empty()) return {.value = std::nullopt, .code = api::kNotSupported};
  all.facts.states = text_of(states);
  return {.value = std::move(all), .code = api::kSuccess};
}

Answer<NvLinks> read_nvlinks(const NvmlGpu& gpu) {
  const auto told = gpu.field(api::kFieldLinkCount);
  if (told.failed()) return {.value = std::nullopt, .code = told.code};
  const unsigned count = links_to_ask(told.value);
  NvLinks links;
  api::Return code = api::kSuccess;
  for (unsigned link = 0; link < count; ++link) {
    const auto active = gpu.link_active(link);
    if (active.failed()) code = active.code;
    // A link that the driver counts and does not answer for is not up.
    if (!active.value && !told.value) continue;
    ++(active.value.value_or(false) ? links.active : links.inactive);
    if (const auto errors = errors_of(gpu, link, code)) links.errors = links.errors.value_or(0) + *errors;
  }
  if (code != api::kSuccess) return {.value = std::nullopt, .code = code};
  if (links.active + links.inactive == 0) return {.value = std::nullopt, .code = api::kNotSupported};
  return {.value = links, .code = api::kSuccess};
}

}  // namespace assay::nvml
