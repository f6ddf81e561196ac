// node_processes: a probe of several nodes, each played by a process of this machine.
#pragma once

#include <future>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tests/unit/free_port.h"
#include "tests/unit/probe_process.h"

namespace assay {

/// `words` and `more` behind them.
inline std::vector<std::string> with(std::vector<std::string> words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// Runs `count` nodes to their end, by rank; rank 1 is told to stop after `stop_s`, where that is not 0.
inline std::vector<ProbeOutput> run_nodes(const std::string& probe, int count, const std::vector<std::string>& more,
                                          unsigned stop_s = 0) {
  const std::string at = fmt::format("--rendezvous=127.0.0.1:{}", free_port());
  std::vector<std::future<ProbeOutput>> running;
  for (int rank = 0; rank < count; ++rank) {
    const std::vector<std::string> words = {probe, fmt::format("--rank={}", rank), fmt::format("--world={}", count), at,
                                            "--token=0123456789abcdef0123456789abcdef"};
    running.push_back(std::async(std::launch::async, run_probe, with(words, more), rank == 1 ? stop_s : 0U));
  }
  std::vector<ProbeOutput> outputs;
  for (auto& one : running) outputs.push_back(one.get());
  return outputs;
}

}  // namespace assay
