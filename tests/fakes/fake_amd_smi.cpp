// fake_amd_smi: a libamd_smi.so.26 of a made-up node of eight GPUs with links to all others. ASSAY_FAKE_AMD_SMI has
// what differs, as JSON that is merged over it (RFC 7386): {"gpus": {"3": {"umc": [0, 1, 0]}}}. Its driver version says
// "simulated", so that no record taken with it can look like a real one. What a GPU has no key for is not supported; a
// key in its "fails" is answered with that status, and the one that "hangs" names never. Numbers in its "grows" are
// added each second to those of the same key: {"grows": {"violations": [0, 0, 20, 0, 0]}}.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <iostream>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

#include <nlohmann/json.hpp>

#include "probes/amd/smi_api.h"
#include "tests/fakes/settings.h"

namespace {

using nlohmann::json;
using namespace assay::amd::smi;  // NOLINT(google-build-using-namespace): a fake of all of it

constexpr const char* kHealthy = R"({
  "version": [26, 1, 0], "init": 0, "count": 8,
  "gpu": {
    "name": "AMD Instinct MI300X OAM", "part": "102-G30211-0C", "vbios": "022.040.003.042.000001", "driver": "6.12.12",
    "memory": 206141652992, "compute": "SPX", "memory_mode": "NPS1", "firmware": {"1": 5596160, "9": 66},
    "guarded": 143, "total": [0, 0, 0], "umc": [0, 0, 0], "sdma": [0, 0, 0], "gfx": [0, 0, 0], "mmhub": [0, 0, 0],
    "xgmi": [0, 0, 0], "pages": [], "pcie": [16, 32000, 16, 5, 0], "cap": [750000000, 750000000], "power": 140,
    "clock": [132, 2100], "memory_clock": [900, 1300], "hotspot": 41, "memory_temperature": 35,
    "violations": [0, 0, 0, 0, 0], "xgmi_state": 0, "links": [1, 1, 1, 1, 1, 1, 1, 2], "cache_kb": 262144,
    "energy": 1000000, "processes": [], "units": 304, "link": [1, 2]
  }
})";

struct Gpu {
  json state;
};

/// The node: `state` and the GPUs, each with its own over what all have.
struct Node {
  json state;
  std::deque<Gpu> gpus;
};

const Node& node() {
  static const Node the_node = [] {
    Node made;
    made.state = json::parse(kHealthy);
    if (const std::string given = assay::fakes::told("ASSAY_FAKE_AMD_SMI", reinterpret_cast<const void*>(&node));
        !given.empty()) {
      const json more = json::parse(given, nullptr, false);
      if (more.is_discarded()) std::cerr << "fake_amd_smi: ASSAY_FAKE_AMD_SMI is no JSON: " << given << '\n';
      made.state.merge_patch(more);
    }
    for (int i = 0; i < made.state.at("count"); ++i) {
      json gpu = made.state.at("gpu");
      const std::string digit = std::to_string(i);
      gpu["uuid"] = "a1ff74a1-0000-1000-8000-00000000000" + digit;
      gpu["bus"] = 0x05 + 0x10 * i;
      gpu["serial"] = "69234600000" + digit;
      if (made.state.contains("gpus")) gpu.merge_patch(made.state["gpus"].value(digit, json::object()));
      made.gpus.push_back({std::move(gpu)});
    }
    return made;
  }();
  return the_node;
}

/// Since the first question.
double seconds() {
  static const auto kFirst = std::chrono::steady_clock::now();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - kFirst).count();
}

/// Answers about `key` of a GPU: found gives the value to the caller.
template <class Found>
Status about(Handle handle, const std::string& key, const Found& found) {
  const json& state = static_cast<const Gpu*>(handle)->state;
  if (state.value("hangs", "") == key) std::this_thread::sleep_for(std::chrono::hours(1));
  if (state.contains("fails") && state["fails"].contains(key)) return state["fails"][key].get<Status>();
  if (state.value("lost", false)) return 12;  // AMDSMI_STATUS_IO
  const auto value = state.find(key);
  if (value == state.end()) return kNotSupported;
  const json rates = state.value("grows", json::object()).value(key, json::array());
  json now = *value;
  for (std::size_t i = 0; i < rates.size(); ++i)
    now[i] = now[i].get<std::int64_t>() + static_cast<std::int64_t>(rates[i].get<double>() * seconds());
  found(now);
  return kSuccess;
}

void put(const json& from, char* to, std::size_t room = kText) {
  const std::string text = from.get<std::string>();
  std::memcpy(to, text.c_str(), std::min(text.size() + 1, room));
}

/// A list whose length is asked for first, without a place to put it.
template <class T>
Status list(const std::vector<T>& all, std::uint32_t* count, T* to) {
  if (to != nullptr) std::ranges::copy(all, to);
  *count = static_cast<std::uint32_t>(all.size());
  return kSuccess;
}

Status numbers(Handle handle, const std::string& key, Errors* to) {
  return about(handle, key,
               [&](const json& n) { *to = {.corrected = n.at(0), .uncorrected = n.at(1), .deferred = n.at(2)}; });
}

}  // namespace

extern "C" {

Status amdsmi_init(std::uint64_t flags) {
  return flags == kInitGpus ? node().state.at("init").get<Status>() : kInvalid;
}
Status amdsmi_shut_down() { return kSuccess; }
Status amdsmi_get_lib_version(Version* to) {
  const json& version = node().state.at("version");
  *to = {.major = version.at(0), .minor = version.at(1), .release = version.at(2), .build = "simulated"};
  return kSuccess;
}
Status amdsmi_status_code_to_string(Status code, const char** to) {
  static const std::map<Status, const char*> kWords = {{12, "AMDSMI_STATUS_IO: I/O Error"},
                                                       {kDriverNotLoaded, "AMDSMI_STATUS_DRIVER_NOT_LOADED"}};
  const auto found = kWords.find(code);
  *to = found == kWords.end() ? "another status" : found->second;
  return kSuccess;
}
/// One GPU a socket, as on a baseboard.
Status amdsmi_get_socket_handles(std::uint32_t* count, Handle* to) {
  std::vector<Handle> all;
  for (const Gpu& gpu : node().gpus) all.push_back(const_cast<Gpu*>(&gpu));  // handles are not const, the state is
  return list(all, count, to);
}
Status amdsmi_get_processor_handles(Handle socket, std::uint32_t* count, Handle* to) {
  return list(std::vector<Handle>{socket}, count, to);
}
Status amdsmi_get_processor_type(Handle, unsigned* type) {
  *type = kTypeGpu;
  return kSuccess;
}
Status amdsmi_get_gpu_device_uuid(Handle gpu, unsigned* length, char* to) {
  return about(gpu, "uuid", [&](const json& uuid) {
    const std::string text = uuid;
    *length = static_cast<unsigned>(text.copy(to, *length - 1));
    to[*length] = '\0';
  });
}
Status amdsmi_get_gpu_device_bdf(Handle gpu, std::uint64_t* bits) {
  return about(gpu, "bus", [&](const json& bus) {
    *bits = bus.get<std::uint64_t>() << 8 | static_cast<const Gpu*>(gpu)->state.value("function", 0U);
  });
}
Status amdsmi_get_gpu_asic_info(Handle gpu, Asic* to) {
  return about(gpu, "name", [&](const json& name) {
    put(name, to->market_name);
    to->compute_units = static_cast<Gpu*>(gpu)->state.at("units");
  });
}
Status amdsmi_get_gpu_board_info(Handle gpu, Board* to) {
  return about(gpu, "serial", [&](const json& serial) {
    put(serial, to->serial);
    put(static_cast<Gpu*>(gpu)->state.at("part"), to->model_number);
  });
}
Status amdsmi_get_gpu_driver_info(Handle gpu, Driver* to) {
  return about(gpu, "driver", [&](const json& v) { put("simulated " + v.get<std::string>(), to->version); });
}
Status amdsmi_get_gpu_vbios_info(Handle gpu, Vbios* to) {
  return about(gpu, "vbios", [&](const json& version) { put(version, to->version); });
}
Status amdsmi_get_fw_info(Handle gpu, Firmware* to) {
  return about(gpu, "firmware", [&](const json& all) {
    for (const auto& [id, version] : all.items()) {
      auto& one = to->list[to->count++];
      one.id = static_cast<std::uint32_t>(std::stoul(id));
      one.version = version;
    }
  });
}
Status amdsmi_get_gpu_total_ecc_count(Handle gpu, Errors* to) { return numbers(gpu, "total", to); }
Status amdsmi_get_gpu_ecc_count(Handle gpu, unsigned block, Errors* to) {
  std::size_t bit = 0;
  while (block > 1) block >>= 1, ++bit;
  return numbers(gpu, kBlocks[bit], to);
}
Status amdsmi_get_gpu_ecc_enabled(Handle gpu, std::uint64_t* mask) {
  return about(gpu, "guarded", [&](const json& bits) { *mask = bits; });
}
Status amdsmi_get_gpu_bad_page_info(Handle gpu, std::uint32_t* count, Page* to) {
  return about(gpu, "pages", [&](const json& states) {
    std::vector<Page> all;
    for (const json& state : states) all.push_back({.address = 4096 * all.size(), .size = 4096, .state = state});
    list(all, count, to);
  });
}
Status amdsmi_get_gpu_compute_partition(Handle gpu, char* to, std::uint32_t room) {
  return about(gpu, "compute", [&](const json& mode) { put(mode, to, room); });
}
Status amdsmi_get_gpu_memory_partition(Handle gpu, char* to, std::uint32_t room) {
  return about(gpu, "memory_mode", [&](const json& mode) { put(mode, to, room); });
}
Status amdsmi_get_pcie_info(Handle gpu, Pcie* to) {
  return about(gpu, "pcie", [&](const json& n) {
    to->width = n.at(0), to->speed = n.at(1), to->width_max = n.at(2), to->generation_max = n.at(3);
    to->replays = n.at(4);
  });
}
Status amdsmi_get_power_cap_info(Handle gpu, std::uint32_t sensor, PowerCap* to) {
  if (sensor != 0) return kInvalid;
  return about(gpu, "cap", [&](const json& n) { to->now = n.at(0), to->by_default = n.at(1); });
}
Status amdsmi_get_power_info(Handle gpu, Power* to) {
  return about(gpu, "power", [&](const json& w) { *to = {.socket = w, .now = w, .average = 0xffffffff}; });
}
Status amdsmi_get_clock_info(Handle gpu, unsigned which, Clock* to) {
  return about(gpu, which == kClockGfx ? "clock" : "memory_clock",
               [&](const json& n) { *to = {.now = n.at(0), .least = 0, .most = n.at(1)}; });
}
Status amdsmi_get_temp_metric(Handle gpu, unsigned where, unsigned what, std::int64_t* to) {
  if (what != kTemperatureNow) return kInvalid;
  return about(gpu, where == kHotspot ? "hotspot" : "memory_temperature", [&](const json& c) { *to = c; });
}
Status amdsmi_get_violation_status(Handle gpu, Violations* to) {
  return about(gpu, "violations", [&](const json& n) {
    to->processor_hot = n.at(0), to->power = n.at(1), to->socket_hot = n.at(2), to->regulator_hot = n.at(3);
    to->memory_hot = n.at(4);
  });
}
Status amdsmi_gpu_xgmi_error_status(Handle gpu, std::uint32_t* state) {
  return about(gpu, "xgmi_state", [&](const json& number) { *state = number; });
}
Status amdsmi_get_gpu_xgmi_link_status(Handle gpu, XgmiLinks* to) {
  return about(gpu, "links", [&](const json& states) {
    for (const json& state : states) to->state[to->count++] = state;
  });
}
Status amdsmi_get_gpu_cache_info(Handle gpu, Caches* to) {
  return about(gpu, "cache_kb", [&](const json& kb) {
    to->count = 2;
    to->list[0].size_kb = 4, to->list[0].level = 2;
    to->list[1].size_kb = kb, to->list[1].level = 3;
  });
}
Status amdsmi_get_gpu_memory_total(Handle gpu, unsigned type, std::uint64_t* to) {
  if (type != kVram) return kInvalid;
  return about(gpu, "memory", [&](const json& bytes) { *to = bytes; });
}
Status amdsmi_get_energy_count(Handle gpu, std::uint64_t* counts, float* resolution, std::uint64_t* time) {
  return about(gpu, "energy", [&](const json& count) {
    // As many counts more as the power makes of the time since the first question.
    constexpr double kMicro = 1e-6, kResolution_uj = 15.259;
    const double power_w = static_cast<const Gpu*>(gpu)->state.value("power", 0);
    *counts = count.get<std::uint64_t>() + static_cast<std::uint64_t>(power_w * seconds() / (kResolution_uj * kMicro));
    *resolution = static_cast<float>(kResolution_uj), *time = 1;
  });
}
Status amdsmi_get_gpu_process_list(Handle gpu, std::uint32_t* count, Process* to) {
  return about(gpu, "processes", [&](const json& ids) {
    std::vector<Process> all;
    for (const json& id : ids) {
      all.emplace_back();
      all.back().pid = id;
    }
    list(all, count, to);
  });
}
/// As `gpu` sees it: hops and type.
Status amdsmi_topo_get_link_type(Handle gpu, Handle, std::uint64_t* hops, unsigned* type) {
  return about(gpu, "link", [&](const json& n) { *hops = n.at(0), *type = n.at(1); });
}

}  // extern "C"
