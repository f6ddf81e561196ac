// recorded_calls: a core and a line that compute and move nothing and write down what they are asked.
#pragma once

#include <charconv>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "workloads/train/engine/executor.h"

namespace assay::train {

/// Calls in their order: "compute 3", "carry 4", "mark 7".
using Calls = std::vector<std::string>;

class RecordedCore {
 public:
  explicit RecordedCore(Calls& calls) : calls_(calls) {}
  void begin(std::size_t count) { calls_.push_back(fmt::format("begin {}", count)); }
  void compute(std::size_t op) { calls_.push_back(fmt::format("compute {}", op)); }
  void lend(std::size_t op) { calls_.push_back(fmt::format("lend {}", op)); }
  void take(std::size_t op) { calls_.push_back(fmt::format("take {}", op)); }
  void mark(std::size_t call) { calls_.push_back(fmt::format("mark {}", call)); }
  void end() { calls_.push_back("end"); }
  [[nodiscard]] double seconds(std::size_t call) const { return static_cast<double>(call); }

 private:
  Calls& calls_;
};

class RecordedLine {
 public:
  explicit RecordedLine(Calls& calls) : calls_(calls) {}
  void restart() { calls_.push_back("restart"); }
  void carry(std::size_t op) { calls_.push_back(fmt::format("carry {}", op)); }
  void post(std::size_t op) { calls_.push_back(fmt::format("post {}", op)); }
  void wait(std::size_t posted) { calls_.push_back(fmt::format("wait {}", posted)); }

 private:
  Calls& calls_;
};

/// What an executor asks of them for `part` of a step.
inline Calls recorded(const std::vector<Op>& ops, bool beside, Part part) {
  Calls calls;
  RecordedCore core(calls);
  RecordedLine line(calls);
  Executor executor(ops, beside, core, line);
  (void)executor.walk(
      part, [](std::size_t) {}, [](std::size_t) {});  // its times are the calls' own numbers
  return calls;
}

/// The operations among them, in their order.
inline std::vector<std::size_t> operations_of(const Calls& calls) {
  std::vector<std::size_t> ops;
  for (const std::string& call : calls) {
    const auto space = call.find(' ');
    const std::string word = call.substr(0, space);
    if (word != "compute" && word != "carry" && word != "post") continue;
    std::size_t op = 0;
    std::from_chars(call.data() + space + 1, call.data() + call.size(), op);
    ops.push_back(op);
  }
  return ops;
}

}  // namespace assay::train
