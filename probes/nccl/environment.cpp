// environment: spelling NCCL's variables.
#include "probes/nccl/environment.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

namespace assay::nccl {
namespace {

constexpr std::array<std::string_view, 3> kPrefixes = {"NCCL_", "RCCL_", "HSA_"};
constexpr std::string_view kLogging = "NCCL_DEBUG";  // and NCCL_DEBUG_FILE, _SUBSYS, _TIMESTAMP_…

// NCCL's own spelling: src/init.cc, ncclAlgoStr and ncclProtoStr.
constexpr std::array<std::pair<std::string_view, std::string_view>, 10> kSpelling = {{
    {"ring", "Ring"},
    {"tree", "Tree"},
    {"nvls", "NVLS"},
    {"nvls_tree", "NVLSTree"},
    {"collnet_direct", "CollNetDirect"},
    {"collnet_chain", "CollNetChain"},
    {"pat", "PAT"},
    {"ll", "LL"},
    {"ll128", "LL128"},
    {"simple", "Simple"},
}};

std::string spelled(std::string_view word) {
  for (const auto& [ours, theirs] : kSpelling) {
    if (ours == word) return std::string(theirs);
  }
  throw std::logic_error("NCCL has no '" + std::string(word) + "'");
}

Variables all_variables(const char* const* environment) {
  Variables all;
  for (; *environment != nullptr; ++environment) {
    const std::string_view entry(*environment);
    const auto equals = entry.find('=');
    if (equals != std::string_view::npos) all.emplace(entry.substr(0, equals), entry.substr(equals + 1));
  }
  return all;
}

}  // namespace

Variables nccl_variables(const char* const* environment) {
  Variables all = all_variables(environment);
  std::erase_if(all, [](const auto& variable) {
    return variable.first.starts_with(kLogging) ||
           std::ranges::none_of(kPrefixes, [&](std::string_view prefix) { return variable.first.starts_with(prefix); });
  });
  return all;
}

std::vector<std::string> rank_environment(const char* const* environment, const Forced& forced) {
  Variables all = all_variables(environment);
  std::erase_if(all, [](const auto& variable) { return variable.first.starts_with(kLogging); });
  all["NCCL_DEBUG"] = "INFO";
  all["NCCL_DEBUG_SUBSYS"] = "INIT,TUNING";  // INIT covers the lines on NET, P2P and SHM, which carry it as well
  if (forced.algorithm != "default") all["NCCL_ALGO"] = spelled(forced.algorithm);
  // Without it NCCL drops both algorithms (2.28 tuning.cc) and fails for want of any other.
  if (forced.algorithm.starts_with("collnet")) all["NCCL_COLLNET_ENABLE"] = "1";
  if (forced.protocol != "default") all["NCCL_PROTO"] = spelled(forced.protocol);
  if (forced.collnet != "default") all["NCCL_COLLNET_ENABLE"] = forced.collnet;
  if (forced.nvls != "default") all["NCCL_NVLS_ENABLE"] = forced.nvls;
  if (forced.mnnvl != "default") all["NCCL_MNNVL_ENABLE"] = forced.mnnvl;
  if (forced.gpudirect != "default") all["NCCL_NET_GDR_LEVEL"] = forced.gpudirect == "0" ? "LOC" : "SYS";
  std::vector<std::string> result;
  for (const auto& [name, value] : all) result.emplace_back(name).append("=").append(value);
  return result;
}

std::string words(const Variables& variables) {
  std::string text;
  for (const auto& [name, value] : variables)
    text.append(text.empty() ? "" : " ").append(name).append("=").append(value);
  return text.empty() ? "none" : text;
}

}  // namespace assay::nccl
