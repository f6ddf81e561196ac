// gpu_facts: asks for each fact separately; a question that fails is counted, and the next one follows.
#include "probes/amd/gpu_facts.h"

#include <algorithm>
#include <array>
#include <utility>

#include <unistd.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "probes/nvml/users.h"

namespace assay::amd {
namespace {

constexpr double kMicro = 1e-6, kMega = 1e6;

/// Collects the answers of one GPU.
class Facts {
 public:
  Facts(const AmdSmi& smi, AnswerLimit& limit, std::string name) : smi_(smi), limit_(limit), name_(std::move(name)) {}

  /// The value of `question()`, watched; a failure is counted under `what`.
  template <class Question>
  auto told(std::string_view what, const Question& question) {
    limit_.asking(fmt::format("{}: {}", name_, what));
    const auto answer = question();
    limit_.asking("");
    if (answer.failed() && state.query_errors++ == 0)
      state.first_error = fmt::format("{}: {}", what, smi_.words(answer.code));
    return answer.value;
  }
  template <class Number>
  void metric(std::string_view name, const std::optional<Number>& number) {
    if (number) state.metrics[name] = static_cast<double>(*number);
  }
  template <class Content>
  void condition(std::string_view name, const std::optional<Content>& content) {
    if (content) state.conditions[name] = *content;
  }
  /// A number that the library gives in another unit.
  template <class Number>
  void scaled(std::string_view name, const std::optional<Number>& number, double unit) {
    if (number) state.conditions[name] = static_cast<double>(*number) * unit;
  }
  void rename(std::string name) { name_ = std::move(name); }

  health::GpuState state;

 private:
  const AmdSmi& smi_;
  AnswerLimit& limit_;
  std::string name_;
};

std::optional<std::string> firmware_words(const smi::Firmware& firmware) {
  // Numbers of amdsmi_fw_block_t in words that stay: power management, compute queues, run list, copy engine, security.
  constexpr std::array<std::uint32_t, 5> kNamed = {1, 7, 9, 10, 31};
  std::vector<std::string> words;
  for (std::size_t i = 0; i < std::min<std::size_t>(firmware.count, std::size(firmware.list)); ++i) {
    if (std::ranges::find(kNamed, firmware.list[i].id) != kNamed.end())
      words.push_back(fmt::format("{}: {:#x}", firmware.list[i].id, firmware.list[i].version));
  }
  std::ranges::sort(words);
  return words.empty() ? std::nullopt : std::optional(fmt::format("{}", fmt::join(words, ", ")));
}

void ask_identity(const AmdGpu& gpu, const smi::Functions& f, Facts& facts) {
  if (const auto asic = facts.told("asic", [&] { return gpu.ask<smi::Asic>(f.asic); })) {
    facts.condition("model", text_in(asic->market_name));
    facts.condition("compute_units",
                    asic->compute_units == ~0U ? std::nullopt : std::optional(std::int64_t{asic->compute_units}));
  }
  if (const auto board = facts.told("board", [&] { return gpu.ask<smi::Board>(f.board); })) {
    facts.condition("serial", text_in(board->serial));
    facts.condition("part", text_in(board->model_number));
  }
  if (const auto vbios = facts.told("vbios", [&] { return gpu.ask<smi::Vbios>(f.vbios); }))
    facts.condition("vbios", text_in(vbios->version));
  if (const auto firmware = facts.told("firmware", [&] { return gpu.ask<smi::Firmware>(f.firmware); }))
    facts.condition("firmware", firmware_words(*firmware));
  facts.condition("compute_partition", facts.told("compute_partition", [&] { return gpu.compute_partition(); }));
  facts.condition("memory_partition", facts.told("memory_partition", [&] { return gpu.memory_partition(); }));
}

std::vector<BlockErrors> ask_errors(const AmdGpu& gpu, const smi::Functions& f, Facts& facts) {
  std::vector<BlockErrors> blocks;
  if (const auto errors = facts.told("ecc", [&] { return gpu.ask<smi::Errors>(f.errors); })) {
    facts.metric("ecc_corrected", reported(errors->corrected));
    facts.metric("ecc_uncorrected", reported(errors->uncorrected));
    facts.metric("ecc_deferred", reported(errors->deferred));
  }
  const auto guarded = facts.told("ecc_enabled", [&] { return gpu.ask<std::uint64_t>(f.protected_blocks); });
  if (guarded) facts.condition("ecc_mode", std::optional((*guarded & 1) != 0));
  for (std::size_t i = 0; guarded && i < std::size(smi::kBlocks); ++i) {
    if ((*guarded >> i & 1) == 0) continue;
    const auto errors = facts.told(fmt::format("ecc of {}", smi::kBlocks[i]),
                                   [&] { return gpu.ask<smi::Errors>(f.errors_of, 1U << i); });
    if (errors && reported(errors->corrected) && reported(errors->uncorrected))
      blocks.push_back(BlockErrors{.block = smi::kBlocks[i], .errors = *errors});
  }
  if (const auto pages = facts.told("bad_pages", [&] { return gpu.bad_pages(); })) {
    facts.metric("retired_pages", std::optional(pages->retired));
    facts.metric("retired_pages_pending", std::optional(pages->pending));
    facts.metric("retired_pages_failed", std::optional(pages->unreservable));
  }
  return blocks;
}

void ask_pcie(const AmdGpu& gpu, const smi::Functions& f, Facts& facts) {
  const auto pcie = facts.told("pcie", [&] { return gpu.ask<smi::Pcie>(f.pcie); });
  if (!pcie) return;
  facts.metric("pcie_generation", pcie_generation(pcie->speed));
  const auto most = reported(pcie->generation_max);
  facts.metric("pcie_generation_max", most && *most > 0 ? most : std::nullopt);
  facts.metric("pcie_width", reported(pcie->width));
  facts.metric("pcie_width_max", reported(pcie->width_max));
  facts.metric("pcie_replays", reported(pcie->replays));
}

void ask_links(const AmdGpu& gpu, const smi::Functions& f, Facts& facts) {
  if (const auto links = facts.told("xgmi_links", [&] { return gpu.ask<smi::XgmiLinks>(f.xgmi_links); })) {
    constexpr std::array kStates = {"down", "up", "disabled"};
    std::array<std::int64_t, kStates.size()> counts = {};
    std::vector<std::string> words;
    for (std::size_t i = 0; i < std::min<std::size_t>(links->count, smi::kXgmiLinks); ++i) {
      if (links->state[i] >= kStates.size()) continue;
      ++counts[links->state[i]];
      words.push_back(fmt::format("{} {}", i, kStates[links->state[i]]));
    }
    if (!words.empty()) {
      facts.metric("xgmi_links_up", std::optional(counts[1]));
      facts.metric("xgmi_links_down", std::optional(counts[0]));
      facts.condition("xgmi_states", std::optional(fmt::format("{}", fmt::join(words, ", "))));
    }
  }
  if (const auto state = facts.told("xgmi_errors", [&] { return gpu.ask<std::uint32_t>(f.xgmi_errors); }))
    facts.metric("xgmi_errors", std::optional(*state == 0 ? 0 : 1));
  ask_pcie(gpu, f, facts);
}

void ask_throttling(const AmdGpu& gpu, const smi::Functions& f, Facts& facts) {
  const auto times = facts.told("violations", [&] { return gpu.ask<smi::Violations>(f.violations); });
  if (!times) return;
  std::optional<std::uint64_t> hot;
  for (const std::uint64_t one : {times->processor_hot, times->socket_hot, times->regulator_hot, times->memory_hot})
    if (const auto count = reported(one)) hot = hot.value_or(0) + *count;
  facts.metric("thermal_violations", hot);
  facts.metric("power_violations", reported(times->power));
}

void ask_conditions(const AmdGpu& gpu, const smi::Functions& f, Facts& facts) {
  facts.condition("temperature_c", facts.told("temperature", [&] { return gpu.temperature_c(smi::kHotspot); }));
  facts.condition("memory_temperature_c",
                  facts.told("memory_temperature", [&] { return gpu.temperature_c(smi::kMemoryTemperature); }));
  facts.condition("power_w", facts.told("power", [&] { return gpu.power_w(); }));
  if (const auto cap = facts.told("power_cap", [&] { return gpu.ask<smi::PowerCap>(f.power_cap, 0U); })) {
    const auto now = reported(cap->now), by_default = reported(cap->by_default);
    facts.scaled("power_limit_w", now, kMicro);
    facts.scaled("power_limit_default_w", by_default, kMicro);
    if (now && by_default && *by_default > 0)
      facts.metric("power_limit_lowered", std::optional(*now < *by_default ? 1 : 0));
  }
  const auto clock = [&](const char* what, unsigned which, const char* now, const char* most) {
    const auto told = facts.told(what, [&] { return gpu.ask<smi::Clock>(f.clock, which); });
    if (!told) return;
    facts.scaled(now, reported(told->now), kMega);
    facts.scaled(most, reported(told->most), kMega);
  };
  clock("gfx_clock", smi::kClockGfx, "gfx_clock_hz", "gfx_clock_max_hz");
  clock("memory_clock", smi::kClockMemory, "memory_clock_hz", "memory_clock_max_hz");
}

}  // namespace

AnswerLimit::AnswerLimit(Seconds limit) : limit_(limit), watcher_([this] { watch(); }) {}

AnswerLimit::~AnswerLimit() {
  {
    const std::lock_guard guard(lock_);
    over_ = true;
  }
  changed_.notify_all();
  watcher_.join();
}

void AnswerLimit::asking(std::string question) {
  {
    const std::lock_guard guard(lock_);
    question_ = std::move(question);
    since_ = Clock::now();
  }
  changed_.notify_all();
}

void AnswerLimit::watch() {
  const auto limit = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(limit_.count));
  std::unique_lock guard(lock_);
  while (!over_) {
    if (question_.empty()) {
      changed_.wait(guard);
    } else if (const auto end = since_ + limit; Clock::now() < end) {
      changed_.wait_until(guard, end);
    } else {
      leave_stuck(
          fmt::format("{}: no answer for {:g} s, the driver hangs; hint: look for amdgpu in the kernel's log, "
                      "and reset the GPU or restart the node",
                      question_, limit_.count));
    }
  }
}

std::optional<int> pcie_generation(std::uint32_t rate) {
  constexpr std::array<std::uint32_t, 6> kRates = {2500, 5000, 8000, 16000, 32000, 64000};
  const auto found = std::ranges::find(kRates, rate);
  return found == kRates.end() ? std::nullopt : std::optional(static_cast<int>(found - kRates.begin()) + 1);
}

std::optional<double> growth_of(std::string_view name, const GpuFacts& begin, const GpuFacts& end) {
  const auto before = begin.state.metrics.find(name), after = end.state.metrics.find(name);
  if (before == begin.state.metrics.end() || after == end.state.metrics.end() || after->second < before->second)
    return std::nullopt;
  return after->second - before->second;
}

std::optional<std::string> driver_version(const AmdSmi& smi, const AmdGpu& gpu) {
  const auto driver = gpu.ask<smi::Driver>(smi.functions().driver);
  return driver.value ? text_in(driver.value->version) : std::nullopt;
}

std::map<std::string_view, double> read_gpu_state(const AmdSmi& smi, const AmdGpu& gpu, AnswerLimit& limit,
                                                  std::int64_t& failures) {
  Facts facts(smi, limit, "a GPU under load");
  ask_conditions(gpu, smi.functions(), facts);
  ask_pcie(gpu, smi.functions(), facts);
  failures += facts.state.query_errors;
  std::map<std::string_view, double> numbers = std::move(facts.state.metrics);
  for (const auto& [name, value] : facts.state.conditions) numbers[name] = std::get<double>(value);
  return numbers;
}

std::optional<std::int64_t> other_processes(const Answer<std::vector<std::uint32_t>>& listed) {
  if (!listed.value) return std::nullopt;
  std::vector<nvml::GpuProcess> all;
  for (const std::uint32_t pid : *listed.value) {
    if (pid != static_cast<std::uint32_t>(getpid())) all.push_back({.pid = pid, .memory = std::nullopt});
  }
  return nvml::other_processes(
      {.listed = all, .own = std::nullopt, .outermost = nvml::in_outermost_namespace(), .memory_used = std::nullopt});
}

GpuFacts read_gpu_facts(const AmdSmi& smi, const AmdGpu& gpu, std::size_t index, AnswerLimit& limit) {
  const smi::Functions& f = smi.functions();
  const std::string number = fmt::format("index-{}", index);
  Facts facts(smi, limit, number);
  GpuFacts all;
  const auto uuid = facts.told("uuid", [&] { return gpu.uuid(); });
  const auto address = facts.told("pci_address", [&] { return gpu.pci_address(); });
  all.answers = uuid.has_value() || address.has_value();
  all.pci_address = address.value_or("");
  all.subject = {.kind = "gpu", .id = uuid.value_or(address.value_or(number))};
  facts.rename(all.subject.id);
  facts.condition("pci_address", address);
  ask_identity(gpu, f, facts);
  all.blocks = ask_errors(gpu, f, facts);
  ask_links(gpu, f, facts);
  ask_throttling(gpu, f, facts);
  Answer<std::vector<std::uint32_t>> users;
  (void)facts.told("processes", [&] { return users = gpu.processes(); });  // counted below
  facts.metric("other_processes", other_processes(users));
  ask_conditions(gpu, f, facts);
  all.state = std::move(facts.state);
  return all;
}

}  // namespace assay::amd
