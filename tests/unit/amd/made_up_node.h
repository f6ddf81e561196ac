// made_up_node: a node of made-up AMD GPUs, whose libraries say what a test wants.
#pragma once

#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "tests/unit/paths.h"
#include "tests/unit/probe_process.h"

namespace assay::amd {

/// A node of one GPU, its caches small, or what `hip` and `smi` say.
struct Node {
  std::string hip = "gpus=1 memory=259";
  std::string smi = R"({"count": 1, "gpu": {"cache_kb": 64}})";
  std::vector<std::string> more = {};
  std::string rccl = "fault=none";
  std::vector<std::string> folders = {"amdhip", "amd_26", "rccl"};  ///< of libraries; a path is taken as it is
  std::vector<std::string> sampling = {"--min-samples=2", "--max-samples=2", "--warmup-limit=0s"};
};

inline Record record_on(const Node& node, const std::string& probe, std::vector<std::string> arguments) {
  std::map<std::string, std::string> variables = {
      {"ASSAY_FAKE_AMDHIP", node.hip}, {"ASSAY_FAKE_AMD_SMI", node.smi}, {"ASSAY_FAKE_RCCL", node.rccl}};
  for (const std::string& folder : node.folders)
    variables["ASSAY_LIBRARY_PATH"] += (folder[0] == '/' ? folder : build_file("tests/fakes/" + folder)) + ":";
  for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
  arguments.emplace_back("--quick");
  arguments.insert(arguments.end(), node.sampling.begin(), node.sampling.end());
  arguments.insert(arguments.end(), node.more.begin(), node.more.end());
  const Record record = record_of(probe_file(probe), arguments);
  for (const auto& [name, value] : variables) unsetenv(name.c_str());
  return record;
}
inline Subject node_of(const Record& record) { return {"node", std::get<std::string>(record.start.host.at("name"))}; }

/// The first GPU.
inline const Subject kGpu = {"gpu", "a1ff74a1-0000-1000-8000-000000000000"};

}  // namespace assay::amd
