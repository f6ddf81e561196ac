// storage_protocols: whether changes through a store's file system are visible through S3, and the reverse.
#include <chrono>
#include <filesystem>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "probes/core/json_io.h"
#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "probes/core/rendezvous.h"
#include "probes/core/secret_file.h"
#include "workloads/protocols/protocol_cases.h"
#include "workloads/storage/shared/case_tallies.h"
#include "workloads/storage/shared/common_spec.h"
#include "workloads/storage/shared/run_folder.h"
#include "workloads/storage/shared/storage_ranks.h"

namespace assay::protocols {
namespace {

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
  (void)cluster_storage::count_in_range(given, "rounds", kMostRounds);
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
