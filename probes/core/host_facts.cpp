// host_facts: read from /proc, /sys, uname and adjtimex.
#include "probes/core/host_facts.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include <sched.h>
#include <sys/resource.h>
#include <sys/timex.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <fmt/format.h>

#include "probes/core/text.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

std::vector<int> allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

std::string cpu_path(int cpu, std::string_view rest) {
  return fmt::format("/sys/devices/system/cpu/cpu{}/{}", cpu, rest);
}

/// First value of `key` in /proc/cpuinfo.
std::optional<std::string> cpuinfo(std::string_view key) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    const auto colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return std::nullopt;
}

std::int64_t count_numa_nodes() {
  std::error_code ignored;
  std::int64_t nodes = 0;
  for (const auto& entry : fs::directory_iterator("/sys/devices/system/node", ignored)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("node") && name.size() > 4 && std::isdigit(static_cast<unsigned char>(name[4])) != 0) ++nodes;
  }
  return std::max<std::int64_t>(nodes, 1);
}

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

}  // namespace

std::optional<std::string> read_fact(const std::string& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  std::ostringstream text;
  text << file.rdbuf();
  if (file.bad()) return std::nullopt;
  std::string content = text.str();
  while (!content.empty() && std::isspace(static_cast<unsigned char>(content.back())) != 0) content.pop_back();
  return content;
}

std::vector<int> one_cpu_per_core(const MachineTree& tree) {
  std::set<std::string> seen;
  std::vector<int> cpus;
  for (const int cpu : allowed_cpus()) {
    const auto core = core_of(tree, cpu);
    if (!core || seen.insert(*core).second) cpus.push_back(cpu);
  }
  return cpus;
}

std::optional<Bytes> last_level_cache() {
  std::map<std::string, std::uint64_t> caches;  // shared_cpu_list of each last-level cache, and its size
  for (const int cpu : allowed_cpus()) {
    int best_level = 0;
    std::string list;
    std::uint64_t size = 0;
    for (int index = 0; index < 8; ++index) {  // 4 is usual; 8 is a bound
      const std::string base = cpu_path(cpu, fmt::format("cache/index{}/", index));
      const auto level = read_fact(base + "level");
      const auto text = read_fact(base + "size");
      const auto shared = read_fact(base + "shared_cpu_list");
      if (!level || !text || !shared || std::stoi(*level) <= best_level) continue;
      const auto bytes = parse_bytes(*text);
      if (!bytes) continue;
      best_level = std::stoi(*level);
      list = *shared;
      size = bytes->count;
    }
    if (best_level > 0) caches[list] = size;
  }
  if (caches.empty()) return std::nullopt;
  Bytes sum;
  for (const auto& [list, size] : caches) sum.count += size;
  return sum;
}

Bytes total_memory() {
  return {static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE))};
}

std::optional<bool> clock_synchronised() {
  timex state = {};
  const int result = adjtimex(&state);
  if (result == -1) return std::nullopt;
  return result != TIME_ERROR && (state.status & STA_UNSYNC) == 0;
}

std::vector<std::string> cpu_flags() {
  auto line = cpuinfo("flags");
  if (!line) line = cpuinfo("Features");  // Arm
  std::istringstream words(line.value_or(""));
  return {std::istream_iterator<std::string>(words), {}};
}

namespace {

constexpr std::size_t kLongestFact = 255;

bool is_visible(unsigned char c) { return c > 0x20 && c < 0x7F; }

/// Texts of the kernel may be anything: they are made fit for problem_of_facts, or left out.
void make_fit(Values& facts) {
  for (auto& [name, value] : facts) {
    auto* text = std::get_if<std::string>(&value);
    if (text == nullptr) continue;
    *text = without_controls(*text, kLongestFact);
    std::ranges::replace_if(
        *text, [&](unsigned char c) { return c == '\n' || c == '\t' || (name == "name" && !is_visible(c)); }, '?');
  }
  std::erase_if(facts, [](const auto& fact) {
    return fact.first != "name" && problem_of_facts({{"name", std::string("n")}, fact}).has_value();
  });
  if (std::get<std::string>(facts.at("name")).empty()) facts["name"] = std::string("unnamed");
}

}  // namespace

Values host_facts() {
  Values facts;
  utsname names = {};
  if (uname(&names) == 0) {
    facts["name"] = std::string(names.nodename);
    facts["kernel"] = std::string(names.release);
    facts["machine"] = std::string(names.machine);
  }
  if (!facts.contains("name")) facts["name"] = std::string("unnamed");
  if (auto model = cpuinfo("model name")) facts["cpu_model"] = std::move(*model);
  std::set<std::string> sockets;
  const auto cpus = allowed_cpus();
  for (const int cpu : cpus) sockets.insert(read_fact(cpu_path(cpu, "topology/physical_package_id")).value_or("0"));
  facts["cpus"] = static_cast<std::int64_t>(cpus.size());
  facts["cores"] = static_cast<std::int64_t>(one_cpu_per_core().size());
  facts["sockets"] = static_cast<std::int64_t>(sockets.size());
  facts["numa_nodes"] = count_numa_nodes();
  facts["memory"] = static_cast<std::int64_t>(total_memory().count);
  if (const auto cache = last_level_cache()) facts["last_level_cache"] = static_cast<std::int64_t>(cache->count);
  const auto flags = cpu_flags();
  const bool guest = std::ranges::find(flags, "hypervisor") != flags.end();
  const auto vendor = read_fact("/sys/class/dmi/id/sys_vendor");
  facts["hypervisor"] = guest ? vendor.value_or("unnamed") : std::string("none");
  make_fit(facts);
  return facts;
}

std::optional<std::string> problem_of_facts(const Values& facts) {
  constexpr std::string_view kTexts[] = {"name", "kernel", "machine", "cpu_model", "hypervisor", "boot_id"};
  constexpr std::string_view kCounts[] = {"cpus", "cores", "sockets", "numa_nodes"};
  constexpr std::string_view kSizes[] = {"memory", "last_level_cache"};
  constexpr std::int64_t kMostCount = 1 << 20, kMostBytes = std::int64_t{1} << 50;
  if (!facts.contains("name")) return "name is missing";
  for (const auto& [name, value] : facts) {
    const auto is_in = [&](const auto& names) { return std::ranges::find(names, name) != std::end(names); };
    if (is_in(kTexts)) {
      const auto* text = std::get_if<std::string>(&value);
      if (text == nullptr || text->empty() || text->size() > kLongestFact || has_controls(*text) ||
          text->find_first_of("\n\t") != std::string::npos)
        return fmt::format("{} is not a text of 1 to {} bytes", name, kLongestFact);
      if (name == "name" && !std::ranges::all_of(*text, is_visible)) return "name is not of visible ASCII";
    } else if (is_in(kCounts) || is_in(kSizes)) {
      const std::int64_t most = is_in(kCounts) ? kMostCount : kMostBytes;
      const auto* count = std::get_if<std::int64_t>(&value);
      if (count == nullptr || *count < 1 || *count > most)
        return fmt::format("{} is not a whole number from 1 to {}", name, most);
    } else if (name != "simulated" || !std::holds_alternative<bool>(value)) {
      return fmt::format("'{}' is not a known fact", printable(name, kLongestFact));
    }
  }
  return std::nullopt;
}

LoadMeter::LoadMeter() : begin_(take()) {}

std::optional<LoadMeter::Reading> LoadMeter::take() {
  std::ifstream file("/proc/stat");
  std::string label;
  double user = 0, nice = 0, system = 0, idle = 0, iowait = 0, irq = 0, softirq = 0, steal = 0;
  if (!(file >> label >> user >> nice >> system >> idle >> iowait >> irq >> softirq >> steal)) return std::nullopt;
  const double ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  const double busy = user + nice + system + irq + softirq;
  Reading reading{.total_s = (busy + idle + iowait + steal) / ticks, .busy_s = busy / ticks, .steal_s = steal / ticks};
  for (const auto who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage = {};
    if (getrusage(who, &usage) == 0) reading.ours_s += seconds(usage.ru_utime) + seconds(usage.ru_stime);
  }
  return reading;
}

std::optional<LoadMeter::Shares> LoadMeter::read() const {
  const auto now = take();
  if (!begin_ || !now || now->total_s <= begin_->total_s) return std::nullopt;
  const double total = now->total_s - begin_->total_s;
  const double others = (now->busy_s - begin_->busy_s) - (now->ours_s - begin_->ours_s);
  return Shares{.others = std::clamp(others / total, 0.0, 1.0), .steal = (now->steal_s - begin_->steal_s) / total};
}

}  // namespace assay
