// witness_watch: the journal is read whole at each look: what a head stands for are its first bytes.
#include "reports/cli/witness_watch.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <iostream>
#include <optional>

#include <sys/stat.h>

#include <fmt/format.h>

#include "orchestrator/files/atomic_file.h"
#include "orchestrator/files/digest.h"
#include "orchestrator/judge/evidence/journal.h"
#include "orchestrator/judge/verdict.h"
#include "probes/core/text.h"
#include "reports/cli/commands.h"
#include "reports/dossier/head.h"

namespace assay::report_cli {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

/// SIGINT and SIGTERM, held back so that a head is never half written, and waited for instead.
class HeldSignals {
 public:
  HeldSignals() {
    ::sigemptyset(&held_);
    ::sigaddset(&held_, SIGINT);
    ::sigaddset(&held_, SIGTERM);
    ::sigprocmask(SIG_BLOCK, &held_, &before_);
  }
  ~HeldSignals() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

  /// Waits; true when one of them came.
  [[nodiscard]] bool wait(Seconds most) const {
    timespec time{};
    time.tv_sec = static_cast<std::time_t>(most.count);
    constexpr double kNanoseconds = 1e9;
    time.tv_nsec = static_cast<long>((most.count - static_cast<double>(time.tv_sec)) * kNanoseconds);
    return ::sigtimedwait(&held_, nullptr, &time) > 0;
  }

 private:
  sigset_t held_{}, before_{};
};

/// The first free number in the folder: a watch that was ended goes on behind the heads of the one before.
std::size_t next_number(const std::string& folder) {
  constexpr std::size_t kMostDigits = 9;
  std::size_t next = 1;
  std::error_code unknown;  // a folder that cannot be read refuses the first head
  for (const auto& entry : fs::directory_iterator(folder, unknown)) {
    const std::string name = entry.path().stem().string();
    if (entry.path().extension() != ".head" || name.empty() || name.size() > kMostDigits) continue;
    if (name.find_first_not_of("0123456789") == std::string::npos) next = std::max(next, std::stoul(name) + 1);
  }
  return next;
}

class Watch {
 public:
  Watch(const WatchRequest& request, const dossier::Signer& key) : request_(request), key_(key) {}

  /// One look at the journal; an exit code when the watch is over.
  std::optional<int> look() {
    const auto journal = read_file(request_.journal);
    if (!journal) return seen_ ? refused({request_.journal, "is gone", "it was witnessed before"}) : waits();
    if (seen_ && !begins_with_seen(*journal)) {
      return refused(
          {request_.journal,
           fmt::format("does not begin with the {} lines that were witnessed {}", seen_->lines, seen_->seen_at),
           "a line was taken out of it or changed since: keep the heads, and tell the buyer"});
    }
    if (journal->find('\n') == std::string::npos) return waits();
    const auto head = dossier::head_of(*journal, request_.journal, std::chrono::system_clock::now());
    if (!head) return refused(head.error());
    if (seen_ && head->bytes == seen_->bytes) return waits();
    const auto text = dossier::head_text(*head, key_);
    if (!text) return refused(text.error());
    const std::string path = fmt::format("{}/{:04}.head", request_.folder, next_++);
    if (const auto problem = files::create_file(path, *text, 0644)) return bad_input(*problem);
    std::cout << fmt::format("{}: {} lines\n", harmless(path), head->lines) << std::flush;
    seen_ = *head;
    grew_ = Clock::now();
    const auto read = judge::read_journal(journal->substr(0, head->bytes), request_.journal);
    if (!read || !read->finished) return std::nullopt;
    std::cout << "the run has ended\n";
    return files::kExitSuccess;
  }

 private:
  [[nodiscard]] bool begins_with_seen(const std::string& journal) const {
    return journal.size() >= seen_->bytes && files::sha256(journal.substr(0, seen_->bytes)) == seen_->sha256;
  }

  /// Nothing new; the exit code when that has been so for too long.
  [[nodiscard]] std::optional<int> waits() const {
    if (std::chrono::duration<double>(Clock::now() - grew_).count() < request_.patience.count) return std::nullopt;
    std::cerr << fmt::format("{}: has not grown for {:g} s, and its run has not ended\n", harmless(request_.journal),
                             request_.patience.count);
    return judge::exit_code(judge::Overall::incomplete);
  }

  const WatchRequest& request_;
  const dossier::Signer& key_;
  std::optional<dossier::Head> seen_;
  Clock::time_point grew_ = Clock::now();
  std::size_t next_ = next_number(request_.folder);
};

}  // namespace

int watch_journal(const WatchRequest& request, const dossier::Signer& key) {
  if (::mkdir(request.folder.c_str(), 0755) != 0 && errno != EEXIST)
    return bad_input({request.folder, "cannot be made", "--out DIR, with --every"});
  const HeldSignals signals;
  Watch watch(request, key);
  while (true) {
    if (const auto over = watch.look()) return *over;
    if (!signals.wait(request.every)) continue;
    const auto over = watch.look();  // what was written until now
    return over ? *over : judge::exit_code(judge::Overall::incomplete);
  }
}

}  // namespace assay::report_cli
