// rank_child: one rank as a child process of its leader, with a pipe each way, one line at a time.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "probes/core/descriptor.h"

namespace assay {

/// One rank's program. `title` names it in errors ("rank 3 (GPU-8f2…)").
struct RankProgram {
  std::string path;
  std::vector<std::string> arguments;    ///< argv, its own name first
  std::vector<std::string> environment;  ///< "NAME=VALUE"
  std::string title;
};

/// A running rank. Nothing here waits but end(). It does not outlive this object: the destructor kills and reaps it.
class RankChild {
 public:
  /// Longest answer of one rank, in B: the times of a batch or what a log says are a few thousand.
  static constexpr std::size_t kLongestAnswer = 1 << 20;

  /// Starts it, with pipes for standard input and output; standard error is this process'. Throws std::system_error
  /// when it cannot be started.
  explicit RankChild(const RankProgram& program);
  RankChild(RankChild&& other) noexcept;
  RankChild& operator=(RankChild&&) = delete;
  ~RankChild();

  [[nodiscard]] const std::string& title() const { return title_; }
  /// Its answers come here, for poll.
  [[nodiscard]] int output() const { return output_.number(); }
  /// It is asked here, for poll while there is something unsent().
  [[nodiscard]] int input() const { return input_.number(); }

  /// Puts a request, a line without its end, behind those that are not sent yet.
  void ask(std::string_view request);
  /// Whether its pipe has not taken all of the requests.
  [[nodiscard]] bool unsent() const { return !unsent_.empty(); }
  /// Hands its pipe as much as it takes now. A rank that is gone shows in read().
  void write();
  /// Reads what it has said by now. What is wrong, in words that follow its title, when it has ended or says more than
  /// kLongestAnswer at once; it is reaped then in the first case.
  std::optional<std::string> read();
  /// The next whole line that it has said.
  std::optional<std::string> line();
  /// Closes its input, on which it ends.
  void dismiss() { input_.close(); }
  /// Whether it has ended and is reaped.
  bool ended();
  /// SIGKILL; a stopped process dies of it, too. reap() follows.
  void kill() noexcept;
  /// Waits for its end.
  void reap() noexcept;

 private:
  pid_t process_ = -1;
  Descriptor input_, output_;
  std::string title_, received_, unsent_;
  bool ended_ = false;
  int status_ = 0;
};

}  // namespace assay
