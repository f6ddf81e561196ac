// storage_protocols: whether changes through a store's file system are visible through S3, and the reverse.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "probes/core/json_io.h"
#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "probes/core/rendezvous.h"
#include "probes/core/secret_file.h"
#include "workloads/protocols/s3_client.h"
#include "workloads/storage/shared/common_spec.h"
#include "workloads/storage/shared/consistency_look.h"
#include "workloads/storage/shared/direct_file.h"
#include "workloads/storage/shared/payload.h"
#include "workloads/storage/shared/run_folder.h"
#include "workloads/storage/shared/storage_file.h"
#include "workloads/storage/shared/storage_ranks.h"

namespace assay::protocols {
namespace {

/// One way to the store; names are below the folder of the run. Calls throw std::system_error or S3Refused.
struct StoreAccess {
  std::string word;  ///< "posix" or "s3"
  std::function<std::string(const std::string& name, const cluster_storage::Content& bytes)>
      write;  ///< its ETag, if there are some
  std::function<std::optional<cluster_storage::Content>(const std::string& name)> read;
  std::function<std::optional<std::uint64_t>(const std::string& name)> size;
  std::function<bool(const std::string& name)> lists;
  std::function<void(const std::string& name)> remove;
};

constexpr std::uint64_t kContents = 8;  // of one rank in one round, at most

cluster_storage::Look judge_size(std::optional<std::uint64_t> found, std::uint64_t now, std::uint64_t before) {
  if (found == now) return {};
  if (!found) return {cluster_storage::Seen::old, "no size is reported, as of a missing name"};
  const auto seen = *found == before || *found == 0 ? cluster_storage::Seen::old : cluster_storage::Seen::wrong;
  return {seen, fmt::format("its size is reported as {} B and is {} B", *found, now)};
}

cluster_storage::Look judge_listing(bool found, bool now) {
  if (found == now) return {};
  return {cluster_storage::Seen::old, now ? "it is not listed" : "it is still listed"};
}

/// Through the file system at `folder`; every write is synced.
StoreAccess posix_access(const std::string& folder) {
  const auto path = [folder](const std::string& name) { return folder + "/" + name; };
  return {.word = "posix",
          .write =
              [path](const std::string& name, const cluster_storage::Content& bytes) {
                cluster_storage::write_durably(path(name), O_CREAT | O_TRUNC, bytes);
                return std::string();
              },
          .read = [path](const std::string& name) { return cluster_storage::content_on_storage(path(name)); },
          .size = [path](const std::string& name) -> std::optional<std::uint64_t> {
            struct stat found = {};
            if (lstat(path(name).c_str(), &found) == 0) return static_cast<std::uint64_t>(found.st_size);
            if (errno == ENOENT) return std::nullopt;
            throw std::system_error(errno, std::generic_category(), "stat " + path(name));
          },
          .lists =
              [folder](const std::string& name) {
                const auto names = cluster_storage::names_on_storage(folder);
                return std::ranges::find(names, name) != names.end();
              },
          .remove = [path](const std::string& name) { cluster_storage::unlink_on_storage(path(name)); }};
}

/// Through S3, under keys that begin with `prefix`. The client must outlive it.
StoreAccess s3_access(S3Client& client, const std::string& prefix) {
  return {
      .word = "s3",
      .write = [&client, prefix](const std::string& name,
                                 const cluster_storage::Content& bytes) { return client.put(prefix + name, bytes); },
      .read = [&client, prefix](const std::string& name) -> std::optional<cluster_storage::Content> {
        auto found = client.get(prefix + name);
        return found ? std::optional(std::move(found->body)) : std::nullopt;
      },
      .size = [&client, prefix](const std::string& name) { return client.size(prefix + name); },
      .lists = [&client, prefix](const std::string& name) { return client.lists(prefix + name); },
      .remove = [&client, prefix](const std::string& name) { client.remove(prefix + name); }};
}

/// Settings of all rounds.
struct ProtocolSettings {
  std::size_t size = 0;  ///< B of a file; those that overwrite it have half of that
  Seconds wait;
  std::uint64_t nonce = 0;
  std::vector<std::string> names;  ///< of the ranks
};

/// Makes the cases; every rank makes the same calls.
class ProtocolCases {
 public:
  ProtocolCases(Rendezvous& group, ProtocolSettings settings, StoreAccess posix, S3Client& client, std::string prefix)
      : group_(group),
        settings_(std::move(settings)),
        posix_(std::move(posix)),
        client_(client),
        prefix_(std::move(prefix)),
        s3_(s3_access(client_, prefix_)) {}
  /// Every rank acts on names of its own and looks at those of the rank `shift` before it.
  void round(std::uint64_t number, int shift);
  /// This rank's tallies, by case: "posix_to_s3.overwrite".
  [[nodiscard]] const std::map<std::string, cluster_storage::CaseTally>& tallies() const { return tallies_; }

 private:
  struct Turn;
  bool attempt(const std::string& which, const std::function<void()>& work, const std::string& who);
  void act_and_look(const Turn& turn, const std::string& act, const std::function<void()>& work,
                    const std::vector<std::pair<std::string, std::function<cluster_storage::Look()>>>& looks);
  void through(Turn turn, const StoreAccess& writer, const StoreAccess& reader);
  void same_etag(const Turn& turn, const std::string& mine);
  [[nodiscard]] cluster_storage::Content content(std::uint64_t rank, std::uint64_t step, std::size_t size) const;

  Rendezvous& group_;
  ProtocolSettings settings_;
  StoreAccess posix_;
  S3Client& client_;
  std::string prefix_;
  StoreAccess s3_;
  std::map<std::string, cluster_storage::CaseTally> tallies_;
};

/// The acting and the looking rank, and the name.
struct ProtocolCases::Turn {
  std::uint64_t round = 0, self = 0, writer = 0;
  std::string who;          ///< writer and reader
  std::string pair;         ///< "posix_to_s3"
  std::uint64_t first = 0;  ///< number of its first content
};

cluster_storage::Content ProtocolCases::content(std::uint64_t rank, std::uint64_t step, std::size_t size) const {
  cluster_storage::Content bytes(size);
  cluster_storage::fill_payload({.rank = rank, .step = step, .nonce = settings_.nonce}, 0, bytes);
  return bytes;
}

/// Does `work`; whether the store refused none of it. A refusal is counted.
bool ProtocolCases::attempt(const std::string& which, const std::function<void()>& work, const std::string& who) {
  std::string why;
  try {
    work();
    return true;
  } catch (const std::system_error& error) {
    why = error.what();
  } catch (const S3Refused& error) {
    why = error.what();
  }
  tallies_[which].fault(&cluster_storage::CaseTally::failures, fmt::format("{}: refused: {}", who, why));
  return false;
}

/// Every rank acts on its own name; then each looks at its writer's, where the act was not refused.
void ProtocolCases::act_and_look(
    const Turn& turn, const std::string& act, const std::function<void()>& work,
    const std::vector<std::pair<std::string, std::function<cluster_storage::Look()>>>& looks) {
  const bool mine = attempt(turn.pair + "." + act, work, settings_.names[turn.self]);
  const auto done = group_.all_gather(mine ? "1" : "0");
  for (const auto& [name, look] : looks) {
    const std::string which = turn.pair + "." + name;
    if (done[turn.writer] == "1")
      attempt(
          which, [&, &by = look] { cluster_storage::check_until_right(tallies_[which], by, settings_.wait, turn.who); },
          turn.who);
  }
  group_.barrier();
}

/// The ETag that PUT returned to the writer is the one that another rank gets with the object.
void ProtocolCases::same_etag(const Turn& turn, const std::string& mine) {
  const auto told = group_.all_gather(mine);
  const std::string theirs = fmt::format("{}{}-{:04}-{:06}", prefix_, turn.pair, turn.round, turn.writer);
  const std::string& expected = told[turn.writer];
  const std::string which = turn.pair + ".etag";
  const auto look = [&]() -> cluster_storage::Look {
    const auto found = client_.get(theirs);
    if (found && found->etag == expected) return {};
    return {found ? cluster_storage::Seen::wrong : cluster_storage::Seen::old,
            found ? fmt::format("its ETag is {} and was reported as {}", found->etag, expected)
                  : "there is no such object"};
  };
  if (!expected.empty())
    attempt(
        which, [&] { cluster_storage::check_until_right(tallies_[which], look, settings_.wait, turn.who); }, turn.who);
  group_.barrier();
}

void ProtocolCases::through(Turn turn, const StoreAccess& writer, const StoreAccess& reader) {
  turn.pair = writer.word + "_to_" + reader.word;
  const auto name_of = [&](std::uint64_t rank) { return fmt::format("{}-{:04}-{:06}", turn.pair, turn.round, rank); };
  const std::string mine = name_of(turn.self), theirs = name_of(turn.writer);
  const std::size_t half = settings_.size / 2;
  const cluster_storage::Content old = content(turn.writer, turn.first, settings_.size),
                                 now = content(turn.writer, turn.first + 1, half);
  std::string etag;
  act_and_look(turn, "new", [&] { (void)writer.write(mine, content(turn.self, turn.first, settings_.size)); },
               {{"new", [&] { return cluster_storage::judge_content(reader.read(theirs), old, std::nullopt); }},
                {"listing", [&] { return judge_listing(reader.lists(theirs), true); }}});
  act_and_look(turn, "overwrite", [&] { etag = writer.write(mine, content(turn.self, turn.first + 1, half)); },
               {{"overwrite", [&] { return cluster_storage::judge_content(reader.read(theirs), now, old); }},
                {"size", [&] { return judge_size(reader.size(theirs), half, settings_.size); }}});
  if (writer.word == "s3" && reader.word == "s3") same_etag(turn, etag);
  act_and_look(turn, "remove", [&] { writer.remove(mine); },
               {{"remove", [&] { return cluster_storage::judge_content(reader.read(theirs), std::nullopt, now); }},
                {"listing", [&] { return judge_listing(reader.lists(theirs), false); }}});
}

void ProtocolCases::round(std::uint64_t number, int shift) {
  const auto world = static_cast<std::uint64_t>(group_.world());
  const auto self = static_cast<std::uint64_t>(group_.rank());
  const std::uint64_t writer = (self + world - static_cast<std::uint64_t>(shift)) % world;
  Turn turn{.round = number,
            .self = self,
            .writer = writer,
            .who = fmt::format("{} to {}", settings_.names[writer], settings_.names[self]),
            .pair = "",
            .first = number * kContents};
  through(turn, posix_, s3_);
  turn.first += 2;
  through(turn, s3_, posix_);
  turn.first += 2;
  through(turn, s3_, s3_);
}

using namespace cluster_storage::common_spec;

constexpr std::int64_t kMostRounds = 1000;
constexpr std::uint64_t kSmallest = 4096, kLargest = 16 << 20, kMultiple = 16;
constexpr double kLongestWait_s = 120, kPatience_s = 1800;
constexpr auto kLookAgain = std::chrono::milliseconds(50);

constexpr Parameter kParameters[] = {
    parameter("directory", "", ".",
              "directory that shows the objects of the bucket as files, by the same path on every node"),
    parameter("endpoint", "", "http://127.0.0.1:9000", "of S3, as http or https and HOST:PORT"),
    parameter("bucket", "", "assay", "whose objects are the files"),
    parameter("prefix", "", "", "prefix of the keys of files in the directory, such as data/"),
    parameter("region", "", "us-east-1", "that requests are signed for"),
    parameter("credentials", "", "/etc/assay/s3.json",
              "file on every node that only its owner may read: {\"access_key\": ..., \"secret_key\": ...}"),
    parameter("size", "B", "256KiB",
              "bytes of each file, a multiple of 16 B from 4 KiB to 16 MiB; an overwrite has half of that", "16KiB"),
    kRounds,
    parameter("wait", "s", "15s", "an effect that is not seen by then counts as one that never came, at most 2 min",
              "2s"),
    kClients,
    kState,
};
constexpr ConditionSpec kConditions[] = {
    kFilesystem,       kMountSource,
    kMountOptions,     kNonceOfFiles,
    kClientsTotal,     kEveryReaderElsewhere,
    kPreloaded,        {.name = "s3_library", .meaning = "Library that made the requests."},
    kAbandonedRemoved, kDeviceClass,
    kEmulatedDrive,
};
constexpr SpaceRule kSpace[] = {
    {.shared = true, .held = "2 ranks size", .times = "rounds"},
};
constexpr ProbeSpec kSpec{
    .name = "storage_protocols",
    .revision = 2,
    .scope = Scope::group,
    .measures =
        "Whether a store shows to other nodes through S3 changes of its files, and as files changes made through S3: "
        "stale and wrong content, and successes that were none, counted by case.",
    .method =
        "Every rank acts on names of its own; when all have, by an exchange over the network, each looks at the name "
        "of another through the other protocol, and compares every byte with payload that no other run wrote. "
        "posix_to_s3, s3_to_posix, s3_to_s3, and for each of them new: written whole, then read; listing: it is "
        "listed, and no longer once removed; overwrite: by half as many bytes; size: by stat or HEAD; remove; and "
        "between clients of S3 etag: that of PUT equals that of GET. Files are synced and closed before; fsync is a "
        "raw system call. A reader that finds the old content, or an object that ends early, looks again every 10 ms "
        "until `wait` is over: it was stale if it comes, and the success of the writer was false if it does not. A "
        "redirection, an error such as 503 and a body shorter than announced are refusals. Every check counts in one "
        "class at most. Requests are signed (AWS Signature Version 4) with the hash of their body and made by libcurl; "
        "a proxy is not used.",
    .source = "AWS, Amazon S3 API Reference, Authenticating Requests (AWS Signature Version 4); POSIX.1-2017.",
    .needs =
        "Two or more nodes with one store as a file system and as a bucket; libcurl 7.85 or newer, and credentials.",
    .typical = {60},
    .deadline = {3600},
    .parameters = kParameters,
    .metrics = kCaseMetrics,
    .conditions = kConditions,
    .space = kSpace,
};

void check(const Parameters& given) {
  (void)given.count("rounds", 1, kMostRounds);
  const auto size = given.bytes("size").count;
  if (size < kSmallest || size > kLargest || size % kMultiple != 0)
    throw BadParameter(fmt::format("size: {} B is not a multiple of 16 B from 4 KiB to 16 MiB", size));
  const double wait_s = given.seconds("wait").count;
  if (!(wait_s > 0) || wait_s > kLongestWait_s)
    throw BadParameter(fmt::format("wait: {:g} s is not above 0 and at most 2 min", wait_s));
  if (!is_plain_key(given.text("prefix")) || given.text("prefix").starts_with("/"))
    throw BadParameter(fmt::format("prefix: '{}' is not of letters, digits, '.', '-', '_' and '/', or begins with one",
                                   given.text("prefix")));
  const std::string wrong = wrong_with(
      S3Bucket{.endpoint = given.text("endpoint"), .region = given.text("region"), .bucket = given.text("bucket")});
  if (!wrong.empty()) throw BadParameter(wrong);
}

S3Bucket bucket_of(const Parameters& given) {
  const std::string& path = given.text("credentials");
  if (!std::filesystem::exists(path))
    throw Skip(fmt::format("{} is not there: give each node the credentials of the bucket, with --credentials", path));
  const auto text = read_secret_file(path);
  if (!text) throw std::runtime_error(text.error().text());
  const auto words = parse_json(*text, path);
  const auto word = [&](const char* name) {
    if (!words || !words->is_object() || !words->contains(name) || !words->at(name).is_string())
      throw std::runtime_error(fmt::format("{}: is not {{\"access_key\": TEXT, \"secret_key\": TEXT}}", path));
    return words->at(name).get<std::string>();
  };
  return {.endpoint = given.text("endpoint"),
          .region = given.text("region"),
          .bucket = given.text("bucket"),
          .access_key = word("access_key"),
          .secret_key = word("secret_key")};
}

/// Throws where the bucket does not show the owner's mark that rank 0 wrote into the folder.
void demand_one_store(S3Client& client, const std::string& prefix, const Parameters& given) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(given.seconds("wait").count);
  std::string why = "there is no such object";
  while (std::chrono::steady_clock::now() < until && !stop_requested()) {
    try {
      if (client.get(prefix + "owner")) return;
    } catch (const S3Refused& refused) {
      why = refused.what();
    }
    std::this_thread::sleep_for(kLookAgain);
  }
  throw std::runtime_error(
      fmt::format("the bucket {} does not show under {}owner the files of {} ({}): name the bucket, and the prefix, "
                  "that the directory shows",
                  given.text("bucket"), prefix, given.text("directory"), why));
}

void run(const Parameters& given, Rendezvous& group, Recorder& record) {
  const auto world = static_cast<std::uint64_t>(group.world());
  const auto rounds = static_cast<std::uint64_t>(given.count("rounds"));
  const std::uint64_t size = given.bytes("size").count;
  const cluster_storage::StorageRanks ranks =
      cluster_storage::meet_on_storage(group, given, {.bytes = world * size * 2, .names = world * 2});
  S3Client client(bucket_of(given));
  cluster_storage::RunFolder folder(group, given.text("directory"), ranks.nonce);
  const std::string prefix = given.text("prefix") + std::filesystem::path(folder.path()).filename().string() + "/";
  demand_one_store(client, prefix, given);
  ProtocolCases cases(group,
                      {.size = static_cast<std::size_t>(size),
                       .wait = given.seconds("wait"),
                       .nonce = ranks.nonce,
                       .names = ranks.names},
                      posix_access(folder.path()), client, prefix);
  for (std::uint64_t round = 0; round < rounds; ++round) cases.round(round, static_cast<int>(round % (world - 1)) + 1);
  const auto tallies = cluster_storage::gather_tallies(group, cases.tallies(), record);
  cluster_storage::record_ranks(ranks, record);
  record.condition("s3_library", client.library());
  if (group.rank() == 0) {
    cluster_storage::record_tallies(tallies, record);
    record.condition("abandoned_removed", std::int64_t{folder.abandoned()});
  }
  group.barrier();  // the folder is not removed while a rank may still look at it
}

void measure(const Parameters& given, const Placement& placement, Recorder& record) {
  check(given);
  if (placement.world == 1)
    throw Skip("one rank alone: this probe looks from node to node; use it with scope group or cluster");
  work_together(placement, {.exchange = {kPatience_s}}, [&](Rendezvous& group) { run(given, group, record); });
}

}  // namespace
}  // namespace assay::protocols

int main(int argc, char** argv) {
  return assay::probe_main(argc, argv, assay::protocols::kSpec, assay::protocols::measure);
}
