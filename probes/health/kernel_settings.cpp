// kernel_settings: reads /proc and /sys; a text that has not the form the kernel documents gives nothing.
#include "probes/health/kernel_settings.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <set>
#include <sstream>

#include <fmt/format.h>

#include "probes/core/machine_tree.h"
#include "probes/core/text.h"
#include "probes/core/whole_number.h"

namespace assay::health {
namespace {

constexpr std::size_t kLongText = 8 << 10;  // the parameters of nvidia are 2 kB
constexpr const char* kCpuTree = "sys/devices/system/cpu/";

void put(Values& values, const char* name, std::optional<std::string> text) {
  if (text) values[name] = std::move(*text);
}

/// A whole number from 0 to `most` that fills the text.
std::optional<std::int64_t> whole(std::string_view text, std::int64_t most) {
  const auto value = whole_number(text);
  return value && *value >= 0 && *value <= most ? value : std::nullopt;
}

/// A file of one word of letters, digits, hyphens and underscores, a letter first.
std::optional<std::string> word_in(const MachineTree& tree, const std::string& path) {
  auto line = line_of(tree, path);
  if (!line || !has_only(*line, "_-") || std::isalpha(static_cast<unsigned char>(line->front())) == 0)
    return std::nullopt;
  return line;
}

/// The word in brackets of "always [madvise] never", if it is one that the kernel documents.
std::optional<std::string> chosen(const MachineTree& tree, const std::string& path) {
  constexpr std::array<std::string_view, 5> kWords = {"always", "defer", "defer+madvise", "madvise", "never"};
  const auto line = line_of(tree, path);
  if (!line) return std::nullopt;
  const auto begin = line->find('['), end = line->find(']');
  if (begin == std::string::npos || end == std::string::npos || end < begin) return std::nullopt;
  auto word = line->substr(begin + 1, end - begin - 1);
  if (std::ranges::find(kWords, word) == kWords.end()) return std::nullopt;
  return word;
}

bool is_numbered(std::string_view name, std::string_view prefix) {
  return name.starts_with(prefix) && whole(name.substr(prefix.size()), std::numeric_limits<int>::max()).has_value();
}

/// The soft limit in the line of /proc/self/limits that begins with `name`.
std::optional<std::string> limit_of(const MachineTree& tree, std::string_view name) {
  std::istringstream lines(tree.text("proc/self/limits").value_or(""));
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(name)) continue;
    std::istringstream words(line.substr(name.size()));
    std::string soft;
    if (words >> soft) return soft;
  }
  return std::nullopt;
}

void put_limits(Values& values, const MachineTree& tree) {
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  if (const auto locked = limit_of(tree, "Max locked memory")) {
    const auto bytes = whole(*locked, kMost);
    if (bytes || *locked == "unlimited") values["memlock_unlimited"] = !bytes;
    if (bytes) values["memlock_limit"] = *bytes;
  }
  const auto files = limit_of(tree, "Max open files");
  if (!files) return;
  // The kernel keeps even an unlimited process to fs.nr_open.
  const auto count = *files == "unlimited" ? tree.number("proc/sys/fs/nr_open") : whole(*files, kMost);
  if (count && *count >= 0) values["open_files_limit"] = *count;
}

/// Base page size: that of the first mapping of this process.
std::optional<std::int64_t> page_size(const MachineTree& tree) {
  constexpr std::string_view kKey = "\nKernelPageSize:", kUnit = " kB";
  constexpr std::int64_t kLargest_kB = 64;
  const auto text = tree.text("proc/self/smaps");
  const auto found = text ? text->find(kKey) : std::string::npos;
  if (found == std::string::npos) return std::nullopt;
  const auto begin = found + kKey.size();
  const auto line = told(std::string_view(*text).substr(begin, text->find('\n', begin) - begin));
  if (!line || !line->ends_with(kUnit)) return std::nullopt;
  const auto size = whole(std::string_view(*line).substr(0, line->size() - kUnit.size()), kLargest_kB);
  if (!size || *size == 0) return std::nullopt;
  return *size * 1024;
}

/// Each file of `directory` with its line, "name: line", one after the other.
std::optional<std::string> all_of(const MachineTree& tree, const std::string& directory, const char* between,
                                  const char* after) {
  std::string all;
  for (const auto& name : tree.names(directory)) {
    const auto line = line_of(tree, directory + "/" + name);
    if (line) all += (all.empty() ? "" : after) + name + between + *line;
  }
  if (all.empty() || all.size() > kLongText) return std::nullopt;
  return all;
}

/// "performance", or "performance x 60, powersave x 4" where policies differ.
std::optional<std::string> governor(const MachineTree& tree) {
  std::map<std::string, int> counts;
  for (const auto& policy : tree.names(fmt::format("{}cpufreq", kCpuTree))) {
    if (!is_numbered(policy, "policy")) continue;
    const auto word = word_in(tree, fmt::format("{}cpufreq/{}/scaling_governor", kCpuTree, policy));
    if (!word) return std::nullopt;
    ++counts[*word];
  }
  if (counts.empty()) return std::nullopt;
  if (counts.size() == 1) return counts.begin()->first;
  std::string all;
  for (const auto& [word, count] : counts) all += fmt::format("{}{} x {}", all.empty() ? "" : ", ", word, count);
  return all;
}

/// The latency in us that the processors must keep for some program: a number of four bytes.
std::optional<std::int64_t> latency_limit_us(const MachineTree& tree) {
  std::int32_t limit = 0;
  const auto bytes = tree.bytes("dev/cpu_dma_latency", sizeof limit);
  if (!bytes || bytes->size() != sizeof limit) return std::nullopt;
  std::memcpy(&limit, bytes->data(), sizeof limit);
  return limit < 0 ? std::nullopt : std::optional<std::int64_t>(limit);
}

void put_idle_states(Values& values, const MachineTree& tree) {
  constexpr double kMicrosecond = 1e-6;
  const auto limit = latency_limit_us(tree);
  std::string deepest;
  std::int64_t slowest = -1;
  for (const auto& cpu : tree.names(kCpuTree)) {
    if (!is_numbered(cpu, "cpu")) continue;
    for (const auto& state : tree.names(kCpuTree + cpu + "/cpuidle")) {
      if (!is_numbered(state, "state")) continue;
      const std::string directory = kCpuTree + cpu + "/cpuidle/" + state;
      const auto name = line_of(tree, directory + "/name");
      const auto off = tree.number(directory + "/disable"), latency = tree.number(directory + "/latency");
      if (!name || !off || !latency || *off < 0 || *off > 1 || *latency < 0 ||
          *latency > std::numeric_limits<int>::max())
        return;
      if (*off != 0 || (limit && *latency > *limit) || *latency <= slowest) continue;
      slowest = *latency;
      deepest = *name;
    }
  }
  if (slowest < 0) return;
  values["c_state_deepest"] = deepest;
  values["c_state_exit_latency_s"] = static_cast<double>(slowest) * kMicrosecond;
}

/// Values by key of the command line that concern IOMMUs; the last of a key counts.
std::optional<std::vector<std::string>> iommu_words(const MachineTree& tree) {
  const auto line = line_of(tree, "proc/cmdline", kLongText);
  if (!line) return std::nullopt;
  std::vector<std::string> words;
  std::istringstream all(*line);
  for (std::string word; all >> word;) {
    const auto key = word.substr(0, word.find_first_of(".="));
    if (key == "iommu" || key == "intel_iommu" || key == "amd_iommu" || key == "arm-smmu" || key == "arm-smmu-v3")
      words.push_back(word);
  }
  return words;
}

std::optional<std::string> mode_asked_for(const MachineTree& tree) {
  std::optional<std::string> mode;
  for (const auto& word : iommu_words(tree).value_or(std::vector<std::string>())) {
    if (word == "iommu=pt" || word == "iommu.passthrough=1" || word == "iommu.passthrough=on") mode = "passthrough";
    if (word == "iommu=nopt" || word == "iommu.passthrough=0" || word == "iommu.passthrough=off") mode = "translated";
  }
  return mode;
}

/// The mode of one group; nothing if the kernel does not show it.
std::optional<std::string> mode_of_group(const MachineTree& tree, const std::string& group) {
  auto type = line_of(tree, group + "/type");
  if (!type) return std::nullopt;
  if (*type == "identity") return "passthrough";
  if (type->starts_with("DMA")) return "translated";  // DMA, DMA-FQ, DMA-SQ
  if (*type == "unmanaged" || *type == "blocked") return type;
  return std::nullopt;
}

}  // namespace

std::optional<std::string> line_of(const MachineTree& tree, const std::string& path, std::size_t longest) {
  auto text = tree.text(path);
  const auto is_plain = [](unsigned char c) { return c >= 0x20 && c < 0x7F; };
  if (!text || text->size() > longest || !std::ranges::all_of(*text, is_plain)) return std::nullopt;
  return text;
}

std::optional<std::string> numbers_on(const MachineTree& tree, const std::string& directory) {
  std::string on;
  bool any = false;
  for (const auto& name : tree.names(directory)) {
    if (!is_numbered(name, "")) continue;
    const auto value = tree.number(directory + "/" + name);
    if (!value || *value < 0 || *value > 1) return std::nullopt;
    any = true;
    if (*value == 1) on += (on.empty() ? "" : " ") + name;
  }
  if (!any) return std::nullopt;
  return on.empty() ? "none" : on;
}

Values kernel_settings(const MachineTree& tree) {
  constexpr std::int64_t kNumaModes = 3;  // 1 normal, 2 memory tiers
  Values values;
  put(values, "kernel", line_of(tree, "proc/sys/kernel/osrelease"));
  if (const auto line = line_of(tree, "proc/sys/kernel/numa_balancing")) {
    if (const auto mode = whole(*line, kNumaModes)) values["numa_balancing"] = *mode;
  }
  put(values, "transparent_huge_pages", chosen(tree, "sys/kernel/mm/transparent_hugepage/enabled"));
  put(values, "transparent_huge_pages_defrag", chosen(tree, "sys/kernel/mm/transparent_hugepage/defrag"));
  if (const auto size = page_size(tree)) values["page_size"] = *size;
  put(values, "clock_source", word_in(tree, "sys/devices/system/clocksource/clocksource0/current_clocksource"));
  put(values, "mitigations", all_of(tree, "sys/devices/system/cpu/vulnerabilities", ": ", " | "));
  if (const auto words = iommu_words(tree))
    values["iommu_parameters"] = words->empty() ? "none" : fmt::format("{}", fmt::join(*words, " "));
  put_limits(values, tree);
  return values;
}

Values processor_settings(const MachineTree& tree) {
  Values values;
  put(values, "governor", governor(tree));
  put_idle_states(values, tree);
  const auto active = tree.number(fmt::format("{}smt/active", kCpuTree));
  if (active && (*active == 0 || *active == 1)) values["smt"] = *active == 1;
  return values;
}

Values module_settings(const MachineTree& tree) {
  Values values;
  const auto loaded = tree.names("sys/module");
  if (loaded.empty()) return values;
  values["nvidia_peermem_loaded"] = std::ranges::find(loaded, "nvidia_peermem") != loaded.end();
  for (const char* name : {"nvidia", "nvidia_peermem", "mlx5_core", "ib_core", "rdma_cm"}) {
    const std::string directory = std::string("sys/module/") + name;
    put(values, fmt::format("{}_version", name).c_str(), line_of(tree, directory + "/version"));
    if (std::string_view(name) != "nvidia")
      put(values, fmt::format("{}_parameters", name).c_str(), all_of(tree, directory + "/parameters", "=", " "));
  }
  // The driver of NVIDIA shows all its parameters in a file of its own, "Name: value" a line, also to those without
  // root.
  std::istringstream lines(tree.text("proc/driver/nvidia/params").value_or(""));
  std::string all;
  for (std::string line; std::getline(lines, line);) {
    const auto colon = line.find(": ");
    if (colon == std::string::npos) continue;
    all += fmt::format("{}{}={}", all.empty() ? "" : " ", line.substr(0, colon), line.substr(colon + 2));
  }
  const auto is_plain = [](unsigned char c) { return c >= 0x20 && c < 0x7F; };
  if (!all.empty() && all.size() <= kLongText && std::ranges::all_of(all, is_plain)) values["nvidia_parameters"] = all;
  if (const auto version = tree.text("proc/driver/nvidia/version"); version && version->starts_with("NVRM version:"))
    values["nvidia_open_module"] = version->find("Open Kernel Module") != std::string::npos;
  return values;
}

std::optional<std::string> iommu_mode(const MachineTree& tree, const std::vector<std::string>& addresses) {
  const auto groups = tree.names("sys/kernel/iommu_groups");
  if (groups.empty()) {
    const bool is_shown = tree.exists("sys/kernel/iommu_groups") && tree.exists("sys/class/iommu");
    return is_shown && tree.names("sys/class/iommu").empty() ? std::optional<std::string>("off") : std::nullopt;
  }
  std::set<std::string> modes;
  const auto add = [&](const std::optional<std::string>& mode) {
    const auto known = mode ? mode : mode_asked_for(tree);
    if (known) modes.insert(*known);
    return known.has_value();
  };
  for (const auto& address : addresses) {
    const std::string group = "sys/bus/pci/devices/" + address + "/iommu_group";
    if (!add(tree.exists(group) ? mode_of_group(tree, group) : "off")) return std::nullopt;
  }
  if (addresses.empty()) {
    for (const auto& group : groups) {
      if (!add(mode_of_group(tree, "sys/kernel/iommu_groups/" + group))) return std::nullopt;
    }
  }
  if (modes.size() == 1) return *modes.begin();
  return fmt::format("mixed: {}", fmt::join(modes, ", "));
}

std::optional<double> huge_pages_reserved(const MachineTree& tree) {
  constexpr std::string_view kPrefix = "hugepages-", kUnit = "kB";
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  std::optional<double> bytes;
  for (const auto& name : tree.names("sys/kernel/mm/hugepages")) {
    if (!name.starts_with(kPrefix) || !name.ends_with(kUnit)) continue;
    const auto size =
        whole(std::string_view(name).substr(kPrefix.size(), name.size() - kPrefix.size() - kUnit.size()), kMost);
    const auto pages = tree.number("sys/kernel/mm/hugepages/" + name + "/nr_hugepages");
    if (!size || !pages || *pages < 0) return std::nullopt;
    bytes = bytes.value_or(0) + static_cast<double>(*size) * 1024 * static_cast<double>(*pages);
  }
  return bytes;
}

}  // namespace assay::health
