// metadata_phase: makes one call after the other and times each; refusals and wrong answers are counted.
#include "workloads/storage/metadata/metadata_phase.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <system_error>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "probes/core/descriptor.h"
#include "probes/core/probe.h"
#include "probes/core/whole_number.h"
#include "workloads/storage/shared/concurrent_work.h"
#include "workloads/storage/shared/payload.h"
#include "workloads/storage/shared/storage_ranks.h"

namespace assay::cluster_storage {
namespace {

constexpr std::string_view kMoved = "moved-";
constexpr std::size_t kDigits = 8;

std::optional<std::uint64_t> number_in(std::string_view digits) {
  return digits.size() == kDigits ? whole_number<std::uint64_t>(digits) : std::nullopt;
}

using nlohmann::json;

constexpr std::size_t kWord = sizeof(std::uint64_t);

/// How one operation ended.
struct Outcome {
  int refused = 0;    ///< errno; 0: it was done
  std::string wrong;  ///< error in the answer; empty: right
};

Outcome outcome_of(int returned) { return {.refused = returned == 0 ? 0 : errno, .wrong = ""}; }

/// The bytes of a file; the payload comes in whole words, the last one is cut.
std::vector<std::byte> content_of(const MetadataSettings& settings, std::uint64_t stream, std::uint64_t index) {
  std::vector<std::byte> bytes((settings.size + kWord - 1) / kWord * kWord);
  fill_payload({.rank = stream, .step = index, .nonce = settings.nonce}, 0, bytes);
  bytes.resize(settings.size);
  return bytes;
}

Outcome make_file(const std::string& path, const std::vector<std::byte>& content) {
  Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file) return outcome_of(-1);
  for (std::size_t done = 0; done < content.size();) {
    const ssize_t wrote = ::write(file.number(), content.data() + done, content.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return outcome_of(-1);
    if (wrote == 0) return {.refused = EIO, .wrong = ""};
    done += static_cast<std::size_t>(wrote);
  }
  return outcome_of(::close(file.release()));  // storages that write late refuse here
}

Outcome look_at(const std::string& path, std::size_t size) {
  struct stat found = {};
  if (::lstat(path.c_str(), &found) != 0) return outcome_of(-1);
  if (!S_ISREG(found.st_mode)) return {.wrong = "it is no file"};
  if (static_cast<std::size_t>(found.st_size) == size) return {};
  return {.wrong = fmt::format("its size is {} B, not {} B", found.st_size, size)};
}

Outcome read_file_of(const std::string& path, const std::vector<std::byte>& expected) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return outcome_of(-1);
  std::vector<std::byte> found(expected.size() + 1);  // one more, to see the end
  std::size_t done = 0;
  while (done < found.size()) {
    const ssize_t got = ::read(file.number(), found.data() + done, found.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return outcome_of(-1);
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  if (done != expected.size()) return {.wrong = fmt::format("it has {} B, not {} B", done, expected.size())};
  const auto [at, other] = std::mismatch(expected.begin(), expected.end(), found.begin());
  if (at == expected.end()) return {};
  return {.wrong = fmt::format("its content differs from B {} on", at - expected.begin())};
}

json metadata_words(const MetadataClient& client) {
  json words = {{"time", client.time_s},
                {"operations", client.operations},
                {"failures", client.failures},
                {"wrong", client.wrong},
                {"bad", client.first_bad}};
  if (client.latency_p99) words["p99"] = *client.latency_p99;
  return words;
}

MetadataClient metadata_in(const json& words) {
  MetadataClient client{.time_s = words.at("time").get<double>(),
                        .operations = words.at("operations").get<double>(),
                        .latency_p99 = std::nullopt,
                        .failures = words.at("failures").get<std::uint64_t>(),
                        .wrong = words.at("wrong").get<std::uint64_t>(),
                        .first_bad = words.at("bad").get<std::string>()};
  if (const auto p99 = words.find("p99"); p99 != words.end()) client.latency_p99 = p99->get<double>();
  return client;
}

}  // namespace

std::string metadata_folder(const MetadataLayout& layout, std::uint64_t set, std::uint64_t stream) {
  return layout.shared ? fmt::format("set-{:04}-shared", set) : fmt::format("set-{:04}-stream-{:08}", set, stream);
}

std::string metadata_file(std::uint64_t stream, std::uint64_t index, bool renamed) {
  return fmt::format("{}{:08}-{:08}", renamed ? kMoved : std::string_view("made-"), stream, index);
}

ListingCheck::ListingCheck(const MetadataLayout& layout, std::uint64_t stream)
    : first_stream_(layout.shared ? 0 : stream),
      files_(layout.files),
      seen_((layout.shared ? layout.streams : 1) * layout.files),
      missing_(seen_.size()) {}

void ListingCheck::add(std::string_view name) {
  std::optional<std::uint64_t> stream, index;
  if (name.size() == kMoved.size() + 2 * kDigits + 1 && name.starts_with(kMoved)) {
    stream = number_in(name.substr(kMoved.size(), kDigits));
    index = number_in(name.substr(kMoved.size() + kDigits + 1));
  }
  if (!stream || !index || *stream < first_stream_ || *index >= files_ ||
      (*stream - first_stream_) * files_ + *index >= seen_.size()) {
    if (unknown_++ == 0) first_unknown_ = name;
    return;
  }
  const std::size_t place = (*stream - first_stream_) * files_ + *index;
  if (seen_[place]) {
    ++twice_;
    return;
  }
  seen_[place] = true;
  --missing_;
}

std::string ListingCheck::text() const {
  if (errors() == 0) return "";
  std::string words = fmt::format("of {} names {} are missing, {} come twice, {} are not expected", seen_.size(),
                                  missing_, twice_, unknown_);
  if (!first_unknown_.empty()) words += fmt::format(", the first '{}'", first_unknown_);
  return words;
}

/// One thread's part of a phase.
struct MetadataGroup::ThreadPart {
  std::uint64_t stream = 0;  ///< whose files it works on
  std::string folder;        ///< of the files
  bool lists = true;         ///< of a directory that all share, one thread of each rank makes the listing
  MetadataClient taken = {};
  TimeClasses latency = {};

  void take(double seconds, const Outcome& outcome, const std::string& path, std::string_view attempted) {
    latency.add(seconds);
    taken.failures += outcome.refused != 0 ? 1 : 0;
    taken.wrong += outcome.wrong.empty() ? 0 : 1;
    if (!taken.first_bad.empty() || (outcome.refused == 0 && outcome.wrong.empty())) return;
    taken.first_bad = fmt::format("{} {}: {}", attempted, path,
                                  outcome.refused != 0 ? std::strerror(outcome.refused) : outcome.wrong);
  }
};

std::uint64_t MetadataGroup::stream_of(std::size_t part) const {
  return static_cast<std::uint64_t>(group_.rank()) * settings_.threads + part;
}

void MetadataGroup::prepare(std::uint64_t set) {
  for (std::size_t part = 0; part < settings_.threads; ++part) {
    const std::string path = settings_.folder + "/" + metadata_folder(settings_.layout, set, stream_of(part));
    if (settings_.layout.shared && (part > 0 || group_.rank() > 0)) continue;
    if (::mkdir(path.c_str(), 0700) != 0) throw std::system_error(errno, std::generic_category(), path);
  }
  group_.barrier();
}

/// Reads the whole directory; every name counts as an operation.
void MetadataGroup::list(ThreadPart& part) const {
  if (!part.lists) return;
  ListingCheck check(settings_.layout, part.stream);
  const auto begin = PhaseClock::now();
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(part.folder.c_str()), ::closedir);
  Outcome outcome;
  if (!folder) outcome = outcome_of(-1);
  while (folder) {
    errno = 0;
    const dirent* const entry = ::readdir(folder.get());
    if (entry == nullptr) {
      outcome.refused = errno;
      break;
    }
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    check.add(name);
    ++part.taken.operations;
    if (abandoned_) throw std::runtime_error("given up, since the group has ended");
  }
  part.take(passed_since(begin), outcome, part.folder, "readdir");
  if (outcome.refused != 0 || check.errors() == 0) return;
  part.taken.wrong += check.errors();
  if (part.taken.first_bad.empty()) part.taken.first_bad = fmt::format("readdir {}: {}", part.folder, check.text());
}

void MetadataGroup::work(MetadataMove move, std::uint64_t set, ThreadPart& part) const {
  part.folder = settings_.folder + "/" + metadata_folder(settings_.layout, set, part.stream);
  if (move == MetadataMove::readdir) return list(part);
  for (std::uint64_t index = 0; index < settings_.layout.files; ++index) {
    if (stop_requested()) throw std::runtime_error("stopped by a signal");
    if (abandoned_) throw std::runtime_error("given up, since the group has ended");
    const std::string made = part.folder + "/" + metadata_file(part.stream, index, false);
    const std::string moved = part.folder + "/" + metadata_file(part.stream, index, true);
    std::vector<std::byte> content;
    if (move == MetadataMove::create || move == MetadataMove::read)
      content = content_of(settings_, part.stream, set * settings_.layout.files + index);
    const auto begin = PhaseClock::now();
    Outcome outcome;
    if (move == MetadataMove::create) outcome = make_file(made, content);
    if (move == MetadataMove::stat) outcome = look_at(made, settings_.size);
    if (move == MetadataMove::read) outcome = read_file_of(made, content);
    if (move == MetadataMove::rename) outcome = outcome_of(::rename(made.c_str(), moved.c_str()));
    if (move == MetadataMove::unlink) outcome = outcome_of(::unlink(moved.c_str()));
    const double took_s = passed_since(begin);
    part.take(took_s, outcome, move == MetadataMove::unlink ? moved : made, word_of(move));
    ++part.taken.operations;
  }
}

MetadataTaken MetadataGroup::run(MetadataMove move, std::uint64_t set) {
  std::vector<ThreadPart> parts(settings_.threads);
  const auto back = static_cast<std::uint64_t>(settings_.shift) * settings_.threads;
  for (std::size_t part = 0; part < parts.size(); ++part) {
    parts[part].stream = move == MetadataMove::create
                             ? stream_of(part)
                             : (stream_of(part) + settings_.layout.streams - back) % settings_.layout.streams;
    parts[part].lists = !settings_.layout.shared || part == 0;
  }
  const double spread_s = start_together(group_);
  const auto times_s = run_concurrently(
      parts.size(), [&](std::size_t part) { work(move, set, parts[part]); }, [&] { group_.check(); }, abandoned_);
  MetadataClient mine{.time_s = std::ranges::max(times_s)};
  TimeClasses latency;
  for (const auto& part : parts) {
    mine.operations += part.taken.operations;
    mine.failures += part.taken.failures;
    mine.wrong += part.taken.wrong;
    if (mine.first_bad.empty()) mine.first_bad = part.taken.first_bad;
    latency.add(part.latency);
  }
  mine.latency_p99 = latency.quantile(0.99);
  json words = metadata_words(mine);
  words["spread"] = spread_s;
  MetadataTaken taken;
  for (const auto& one : gather_words(group_, words)) {
    taken.clients.push_back(metadata_in(one));
    taken.start_spread_s = std::max(taken.start_spread_s, one.at("spread").get<double>());
  }
  return taken;
}

}  // namespace assay::cluster_storage
