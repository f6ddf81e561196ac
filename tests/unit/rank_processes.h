// rank_processes: the processes of ranks, as a test finds them that has only started their leader.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include <sys/types.h>

namespace assay {

/// Children of `leader` whose program calls itself `name`, by process id; none of it before it has begun its program.
inline std::vector<pid_t> ranks_of(pid_t leader, const std::string& name) {
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string pid = entry.path().filename();
    if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream stat(entry.path() / "stat"), line(entry.path() / "cmdline");
    const std::string text((std::istreambuf_iterator<char>(stat)), {});
    std::istringstream after(text.substr(std::min(text.rfind(')') + 1, text.size())));
    char state = 0;
    pid_t parent = 0;
    std::string program;
    after >> state >> parent;
    std::getline(line, program, '\0');
    if (parent == leader && program == name) found.push_back(std::stoi(pid));
  }
  std::ranges::sort(found);
  return found;
}

}  // namespace assay
