// proof_commands: asking for time stamps, adding them, and signing the head of a journal.

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string>

#include <sys/stat.h>

#include <fmt/format.h>

#include "orchestrator/files/atomic_file.h"
#include "orchestrator/files/digest.h"
#include "orchestrator/judge/evidence/journal.h"
#include "orchestrator/judge/verdict.h"
#include "probes/core/command.h"
#include "probes/core/text.h"
#include "probes/core/units.h"
#include "probes/core/utc_time.h"
#include "reports/cli/commands.h"
#include "reports/cli/signer_options.h"
#include "reports/dossier/head.h"
#include "reports/dossier/sign.h"
#include "reports/dossier/signer.h"
#include "reports/dossier/timestamp.h"
#include "reports/joint/joint.h"

namespace assay::report_cli {
namespace {

/// The watched journal of a witness.
struct WatchRequest {
  std::string journal;  ///< file
  std::string folder;   ///< for 0001.head and the following; made if it is missing
  Seconds every;        ///< between two looks at the journal
  Seconds patience;     ///< the watch ends when the journal has not grown for so long
};

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

/// The first free number in the folder: a new watch continues after the heads of the one before.
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

/// Signs a head whenever the journal has grown, until its run has ended, a signal comes (SIGINT, SIGTERM) or the
/// patience is over, and prints one line for each. The exit code: 0 the run has ended; 3 the watch ended before;
/// refused, and said at once: the journal lost or changed a line that was witnessed, or is gone.
int watch_journal(const WatchRequest& request, const dossier::Signer& key) {
  if (::mkdir(request.folder.c_str(), 0755) != 0 && errno != EEXIST)
    return bad_input({request.folder, "cannot be made", "--out DIR, with --every"});
  const HeldSignals signals;
  Watch watch(request, key);
  while (true) {
    if (const auto over = watch.look()) return *over;
    if (!signals.wait(request.every)) continue;
    const auto over = watch.look();  // the lines until now
    return over ? *over : judge::exit_code(judge::Overall::incomplete);
  }
}

constexpr const char* kExchange =
    "send it to an authority: curl -H 'Content-Type: application/timestamp-query' --data-binary @FILE URL > answer.tsr";

/// Adds the token of an answer to its signature.
int add_stamp(const std::string& path, dossier::Envelope envelope, const std::string& signature,
              const TimestampArguments& given) {
  if (given.authorities.empty())
    return bad_input({"--tsa", "is missing: certificates of the authority, PEM", "what was not checked is not kept"});
  const auto authorities = read_file(given.authorities);
  if (!authorities) return bad_input(authorities.error());
  const auto response = read_file(given.response, dossier::kLargestToken);
  if (!response) return bad_input(response.error());
  const auto token = dossier::token_of_response(*response, given.response);
  if (!token) return refused(token.error());
  const auto stamp = dossier::check_token(*token, signature, *authorities, given.response);
  if (!stamp) return refused(stamp.error());
  envelope.timestamps[signature] = *token;
  const auto text = dossier::written(envelope, dossier::kLargestEnvelope);
  if (!text) return refused(text.error());
  if (const auto problem = files::replace_file(path, *text)) return bad_input(*problem);
  std::cout << fmt::format("stamped {} by {}\n", utc_text(stamp->at), harmless(stamp->authority));
  return files::kExitSuccess;
}

int run_timestamp(const TimestampArguments& given) {
  if (!is_folder(given.directory)) return bad_input(not_a_folder(given.directory));
  const std::string directory = without_slash(given.directory);
  if (const auto problem = check_is_dossier(directory)) return bad_input(*problem);
  if (given.request.empty() == given.response.empty())
    return bad_input({"timestamp", "needs --request or --response", "first one to be sent, then the answer to it"});
  const auto key = dossier::load_public_key(given.key);
  if (!key) return bad_input(key.error());
  const char* const file = joint::is_joint(directory) ? joint::kJointFile : dossier::kStatementFile;
  const auto envelope = dossier::envelope_in(directory, file, dossier::kLargestEnvelope);
  if (!envelope) return refused(envelope.error());
  const std::string message = dossier::pre_authentication_encoding(envelope->payload_type, envelope->payload);
  const std::string* signature = dossier::signature_of(*envelope, message, *key);
  if (signature == nullptr) return refused({file, "has no valid signature of the key " + key->fingerprint(), ""});
  if (!given.response.empty()) return add_stamp(fmt::format("{}/{}", directory, file), *envelope, *signature, given);
  if (const auto problem = files::create_file(given.request, dossier::timestamp_request(*signature), 0644))
    return bad_input(*problem);
  std::cout << harmless_page(given.request) << '\n';
  std::cerr << harmless(kExchange) << '\n';
  return files::kExitSuccess;
}

/// A positive duration that `option` was given.
std::expected<Seconds, InputError> duration_of(const char* option, const std::string& text) {
  const auto seconds = parse_seconds(text);
  if (seconds && seconds->count > 0) return *seconds;
  return std::unexpected(InputError{option, fmt::format("'{}' is not a duration", text), "60s, 5min"});
}

int run_watch(const std::string& path, const WitnessArguments& given, const dossier::Signer& key) {
  const auto every = duration_of("--every", given.every);
  if (!every) return bad_input(every.error());
  const auto patience = duration_of("--patience", given.patience);
  if (!patience) return bad_input(patience.error());
  if (path == "-") return bad_input({"--every", "watches a file, not standard input", "name the journal or its run"});
  return watch_journal({.journal = path, .folder = without_slash(given.out), .every = *every, .patience = *patience},
                       key);
}

/// The journal at `path`, or standard input until its end: a pipe, or a socket of inetd, socat, ssh.
std::expected<std::string, InputError> journal_at(const std::string& path) {
  if (path != "-") return read_file(path);
  constexpr std::size_t kPart = 64 << 10;
  std::string journal, part(kPart, '\0');
  while (std::cin) {
    std::cin.read(part.data(), static_cast<std::streamsize>(part.size()));
    journal.append(part, 0, static_cast<std::size_t>(std::cin.gcount()));
    if (journal.size() > kLargestDocument)
      return std::unexpected(InputError{"standard input", "is over the limit of a journal", "name a file"});
  }
  return journal;
}

int run_witness(const WitnessArguments& given) {
  const auto key = dossier::load_signer(given.signer);
  if (!key) return bad_input(key.error());
  const std::string path = is_folder(given.journal) ? without_slash(given.journal) + "/journal.jsonl" : given.journal;
  if (!given.every.empty()) return run_watch(path, given, **key);
  const auto journal = journal_at(path);
  if (!journal) return bad_input(journal.error());
  const auto head = dossier::head_of(*journal, path, std::chrono::system_clock::now());
  if (!head) return refused(head.error());
  const auto text = dossier::head_text(*head, **key);
  if (!text) return bad_input(text.error());
  if (const auto problem = files::create_file(given.out, *text, 0644)) return bad_input(*problem);
  std::cout << fmt::format("run {}: {} lines, {} bytes, SHA-256 {}\n", harmless(head->run_id), head->lines, head->bytes,
                           head->sha256);
  return files::kExitSuccess;
}

}  // namespace

void add_proof_commands(Command& app, ProofArguments& given, Action& action) {
  auto& stamp = app.add_command("timestamp", "ask for a time stamp (RFC 3161) of a signature, or add the answer");
  add_option(stamp, "directory", given.timestamp.directory, "DIR", "folder of the dossier")->required();
  add_option(stamp, "--key", given.timestamp.key, "FILE", "public key of whose signature it is")->required();
  add_option(stamp, "--request", given.timestamp.request, "FILE", "write what is to be sent to the authority");
  add_option(stamp, "--response", given.timestamp.response, "FILE", "check the authority's answer, and add it");
  add_option(stamp, "--tsa", given.timestamp.authorities, "FILE",
             "with --response: certificates of the authority, PEM");
  end_command(stamp, "Example: assay timestamp run/dossier --key lab.key.pub --request signature.tsq", action,
              [&] { return run_timestamp(given.timestamp); });
  auto& witness = app.add_command("witness", "sign what a run's journal has so far, for a run that goes on");
  add_option(witness, "journal", given.witness.journal, "DIR|FILE",
             "folder of the run, a copy of its journal, or - for standard input")
      ->required();
  add_signer_options(witness, given.witness.signer, " of the witness")->required();
  add_option(witness, "--out", given.witness.out, "FILE", "file to write; with --every the folder")->required();
  auto* every = witness.add_option("--every", given.witness.every,
                                   "look again after this time, and sign whenever the journal has grown, until its "
                                   "run has ended: 60s");
  every->form("TIME");
  add_option(witness, "--patience", given.witness.patience, "TIME",
             "end when the journal has not grown for so long [24 h]")
      ->needs(every);
  end_command(
      witness,
      "Example: assay witness run --key witness.key --out 0001.head; assay witness run --key witness.key --every 60s "
      "--out heads",
      action, [&] { return run_witness(given.witness); });
}

}  // namespace assay::report_cli
