// rank_child: one rank as a child process of its leader, with a pipe each way, one line at a time.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "probes/core/descriptor.h"
#include "probes/core/units.h"

namespace assay::collective {

/// One rank's program. `title` names it in errors ("rank 3 (GPU-8f2…)").
struct RankProgram {
  std::string path;
  std::vector<std::string> arguments;    ///< argv, its own name first
  std::vector<std::string> environment;  ///< "NAME=VALUE"
  std::string title;
};

/// The kernel's view of a process.
struct ProcessSign {
  bool stopped = false;  ///< by a signal, or by a debugger
  Seconds cpu = {};      ///< time that its threads have run
};

/// A running rank. Nothing here waits but the constructor and reap(), each with a limit. It does not outlive this
/// object: the destructor kills and reaps it.
class RankChild {
 public:
  /// Longest answer of one rank, in B: the times of a batch or a log are a few thousand.
  static constexpr std::size_t kLongestAnswer = 1 << 20;
  /// Until a process begins its program, which the kernel may have to read from a disk that is busy.
  static constexpr Seconds kStartLimit = {30};
  /// Until a process that was killed is gone: it frees its memory, and waits for devices that hold some of it.
  static constexpr Seconds kReapLimit = {60};

  /// Starts it, with pipes for standard input and output; standard error is this process'. Throws std::system_error
  /// when it cannot be started, or has not begun its program within kStartLimit.
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
  /// Reads its output so far. Returns the error, in words that follow its title, when it has ended or says more than
  /// kLongestAnswer at once; it is reaped then in the first case.
  std::optional<std::string> read();
  /// The next whole line that it has said.
  std::optional<std::string> line();
  /// Closes its input, on which it ends.
  void dismiss() { input_.close(); }
  /// Whether it has ended and is reaped.
  bool ended() noexcept;
  /// The kernel's view of it; nothing if it has ended, or /proc does not say.
  [[nodiscard]] std::optional<ProcessSign> sign() const;
  /// SIGKILL; a stopped process dies of it, too. reap() follows.
  void kill() noexcept;
  /// Waits for its end, kReapLimit at most: one that a device holds on to is left to the kernel.
  void reap() noexcept;

 private:
  /// Whether it has ended within `limit`.
  bool await_end(Seconds limit) noexcept;

  pid_t process_ = -1;
  Descriptor input_, output_;
  std::string title_, received_, unsent_;
  bool ended_ = false;
  int status_ = 0;
};

}  // namespace assay::collective
