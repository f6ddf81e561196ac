// storage_phase: barrier, work until the stonewall, wear-out, fsync, close; then the ranks exchange their results.
#include "workloads/storage/cluster/storage_phase.h"

#include <algorithm>
#include <cmath>

#include <fcntl.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "probes/core/filesystem_facts.h"
#include "workloads/storage/shared/cold_read.h"
#include "workloads/storage/shared/concurrent_work.h"
#include "workloads/storage/shared/storage_ranks.h"

namespace assay::cluster_storage {
namespace {

/// Reads among the first `operations`.
std::uint64_t reads_among(std::uint64_t operations, double read_share) {
  return static_cast<std::uint64_t>(std::floor(static_cast<double>(operations) * read_share));
}

using nlohmann::json;

template <class Number>
void put(json& words, const char* name, const std::optional<Number>& value) {
  if (value) words[name] = *value;
}

template <class Number>
std::optional<Number> taken_from(const json& words, const char* name) {
  const auto found = words.find(name);
  return found == words.end() ? std::nullopt : std::optional(found->get<Number>());
}

json words_of_client(const ClientPhase& client) {
  json words = {{"active", client.active},           {"open", client.open_s},      {"sync", client.sync_s},
                {"close", client.close_s},           {"time", client.time_s},      {"bytes", client.bytes},
                {"wall", client.bytes_at_stonewall}, {"wrong", client.mismatches}, {"where", client.first_wrong},
                {"reached", client.reached}};
  put(words, "p99", client.latency_p99);
  put(words, "resident", client.resident);
  put(words, "wire", client.wire);
  return words;
}

ClientPhase client_in(const json& words) {
  return {.active = words.at("active").get<bool>(),
          .open_s = words.at("open").get<double>(),
          .sync_s = words.at("sync").get<double>(),
          .close_s = words.at("close").get<double>(),
          .time_s = words.at("time").get<double>(),
          .bytes = words.at("bytes").get<double>(),
          .bytes_at_stonewall = words.at("wall").get<double>(),
          .latency_p99 = taken_from<double>(words, "p99"),
          .mismatches = words.at("wrong").get<std::uint64_t>(),
          .first_wrong = words.at("where").get<std::string>(),
          .resident = taken_from<std::uint64_t>(words, "resident"),
          .wire = taken_from<double>(words, "wire"),
          .reached = words.at("reached").get<std::vector<std::uint64_t>>()};
}

}  // namespace

std::string block_file(const BlockLayout& layout, std::uint64_t set, std::uint64_t stream) {
  return layout.shared ? fmt::format("set-{:04}-shared", set) : fmt::format("set-{:04}-stream-{:06}", set, stream);
}

MixedOperation mixed_operation(std::uint64_t index, double read_share) {
  const std::uint64_t before = reads_among(index, read_share);
  if (reads_among(index + 1, read_share) > before) return {.reads = true, .number = before};
  return {.reads = false, .number = index - before};
}

std::uint64_t mixed_operations(std::uint64_t reads, std::uint64_t writes, double read_share) {
  std::uint64_t low = 0, high = reads + writes;  // as many as that are too many unless they fit exactly
  while (low < high) {
    const std::uint64_t middle = low + (high - low + 1) / 2;
    const std::uint64_t read = reads_among(middle, read_share);
    if (read <= reads && middle - read <= writes) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

/// One thread's part.
struct StorageGroup::ThreadPart {
  BlockStream stream;
  std::uint64_t number = 0;  ///< of all ranks' streams
  BlockFile written = {}, read = {};
  StreamTaken taken = {};
  std::uint64_t next = 0;
  double open_s = 0, sync_s = 0, close_s = 0;
};

std::vector<double> PhaseTaken::at_stonewall() const {
  std::vector<double> bytes;
  for (const auto& client : clients) {
    if (client.active) bytes.push_back(client.bytes_at_stonewall);
  }
  return bytes;
}

double PhaseTaken::bandwidth() const {
  double bytes = 0, longest_s = 0;
  for (const auto& client : clients) {
    bytes += client.bytes;
    longest_s = std::max(longest_s, client.time_s);
  }
  return bytes / longest_s;
}

std::vector<std::uint64_t> PhaseTaken::reached() const {
  std::vector<std::uint64_t> all;
  for (const auto& client : clients) all.insert(all.end(), client.reached.begin(), client.reached.end());
  return all;
}

StorageGroup::StorageGroup(Rendezvous& group, const StorageSettings& settings) : group_(group), settings_(settings) {
  for (std::size_t part = 0; part < settings_.threads; ++part)
    parts_.push_back({.stream = BlockStream(settings_.stream), .number = stream_of(part)});
}

StorageGroup::~StorageGroup() = default;

std::uint64_t StorageGroup::stream_of(std::size_t part) const {
  return static_cast<std::uint64_t>(group_.rank()) * settings_.threads + part;
}

std::uint64_t StorageGroup::read_by(std::uint64_t stream) const {
  const auto back = static_cast<std::uint64_t>(settings_.shift) * settings_.threads;
  return (stream + settings_.layout.streams - back) % settings_.layout.streams;
}

void StorageGroup::open_files(ThreadPart& part, const PhasePlan& plan) {
  const auto begin = PhaseClock::now();
  const int direct = settings_.stream.direct ? O_DIRECT : 0;
  const auto path = [&](std::uint64_t set, std::uint64_t stream) {
    return settings_.folder + "/" + block_file(settings_.layout, set, stream);
  };
  if (plan.move != Move::write)
    part.read = open_block_file(path(plan.read_set, read_by(part.number)), O_RDONLY | direct);
  if (plan.move != Move::read) {
    const int fresh = settings_.layout.shared ? O_CREAT : O_CREAT | O_EXCL;
    part.written = open_block_file(path(plan.written_set, part.number), O_WRONLY | fresh | direct);
  }
  part.open_s = passed_since(begin);
}

BlockOperation StorageGroup::operation(const ThreadPart& part, const PhasePlan& plan, std::uint64_t index) const {
  const MixedOperation turn = plan.move == Move::mixed
                                  ? mixed_operation(index, settings_.read_share)
                                  : MixedOperation{.reads = plan.move == Move::read, .number = index};
  const std::uint64_t stream = turn.reads ? read_by(part.number) : part.number;
  return {.file = turn.reads ? &part.read : &part.written,
          .reads = turn.reads,
          .offset = block_offset(settings_.layout, stream, turn.number),
          .key = {.rank = stream, .step = turn.reads ? plan.read_set : plan.written_set, .nonce = settings_.nonce},
          .payload_offset = turn.number * settings_.layout.block};
}

/// Empties this rank's page cache of the files to be read; pages that stayed, if the kernel reports them.
std::optional<std::uint64_t> StorageGroup::drop_cache(const PhasePlan& plan) {
  if (plan.move == Move::write) return std::nullopt;
  std::vector<std::string> paths;
  for (const auto& part : parts_) {
    paths.push_back(settings_.folder + "/" + block_file(settings_.layout, plan.read_set, read_by(part.number)));
    if (settings_.layout.shared) break;
  }
  return drop_cached(paths);
}

/// `work` for every lane on a thread of its own, until all are over or another rank has ended early.
void StorageGroup::together(const std::function<void(ThreadPart&)>& work) {
  run_concurrently(
      parts_.size(), [&](std::size_t i) { work(parts_[i]); }, [&] { group_.check(); }, abandoned_);
}

/// Until the stonewall, and beyond it as far as the furthest stream went where the phase is to be complete. Returns
/// when the stonewall was, s from the common start.
double StorageGroup::work(const PhasePlan& plan, ClientPhase& mine) {
  std::optional<PhaseClock::time_point> until;
  if (plan.duration_s)
    until = begin_ + std::chrono::duration_cast<PhaseClock::duration>(std::chrono::duration<double>(*plan.duration_s));
  const auto go_on = [&](ThreadPart& part, std::uint64_t limit, std::optional<PhaseClock::time_point> end) {
    part.next = part.stream.run({.operation = [&](std::uint64_t index) { return operation(part, plan, index); },
                                 .first = part.next,
                                 .limit = std::min(limit, plan.limits[part.number]),
                                 .until = end,
                                 .abandoned = &abandoned_},
                                begin_, part.taken);
  };
  if (mine.active) {
    together([&](ThreadPart& part) {
      open_files(part, plan);
      go_on(part, UINT64_MAX, until);
    });
  }
  std::uint64_t furthest = 0;
  bool out_of_work = true;
  for (const auto& part : parts_) {
    furthest = std::max(furthest, part.next);
    out_of_work = out_of_work && part.next >= plan.limits[part.number];
  }
  std::vector<Standing> standings;
  const json words = {{"next", furthest}, {"end", passed_since(begin_)}, {"out", out_of_work}};
  const auto all = gather_words(group_, words);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (!plan.active[rank]) continue;
    standings.push_back({.end_s = all[rank].at("end").get<double>(), .out_of_work = all[rank].at("out").get<bool>()});
    furthest = std::max(furthest, all[rank].at("next").get<std::uint64_t>());
  }
  if (mine.active && plan.complete) together([&](ThreadPart& part) { go_on(part, furthest, std::nullopt); });
  return stonewall_of(standings, plan.duration_s).value_or(0);
}

/// fsync and close, and this rank's work up to then.
void StorageGroup::finish(const PhasePlan& plan, double stonewall_s, ClientPhase& mine) {
  together([&](ThreadPart& part) {
    const auto written = PhaseClock::now();
    if (plan.move != Move::read) part.stream.sync(part.written);
    part.sync_s = passed_since(written);
    const auto synced = PhaseClock::now();
    part.written.descriptor.close();
    part.read.descriptor.close();
    part.close_s = passed_since(synced);
  });
  const auto closed = PhaseClock::now();
  if (plan.move != Move::read) sync_directory(settings_.folder);
  const double names_s = passed_since(closed);
  mine.time_s = passed_since(begin_);
  Progress moved;
  TimeClasses latency;
  for (const auto& part : parts_) {
    moved.add(part.taken.moved);
    latency.add(part.taken.latency);
    mine.open_s = std::max(mine.open_s, part.open_s);
    mine.sync_s = std::max(mine.sync_s, part.sync_s + names_s);
    mine.close_s = std::max(mine.close_s, part.close_s);
    mine.mismatches += part.taken.mismatches;
    if (mine.first_wrong.empty()) mine.first_wrong = part.taken.first_wrong;
  }
  mine.bytes = static_cast<double>(moved.total());
  mine.bytes_at_stonewall = moved.bytes_by({stonewall_s});
  mine.latency_p99 = latency.quantile(0.99);
}

PhaseTaken StorageGroup::run(const PhasePlan& plan) {
  ClientPhase mine{.active = plan.active[static_cast<std::size_t>(group_.rank())]};
  for (auto& part : parts_) {
    part.taken = {};
    part.next = plan.firsts[part.number];
  }
  if (mine.active) mine.resident = drop_cache(plan);
  const Arrivals arrivals(settings_.folder);
  const double in_barrier_s = start_together(group_);
  begin_ = PhaseClock::now();
  const double stonewall_s = work(plan, mine);
  if (mine.active) finish(plan, stonewall_s, mine);
  if (mine.active && plan.move == Move::read) mine.wire = arrivals.since();
  for (const auto& part : parts_) mine.reached.push_back(mine.active ? part.next : 0);
  json words = words_of_client(mine);
  words["barrier"] = in_barrier_s;
  PhaseTaken taken{.stonewall_s = stonewall_s, .start_spread_s = 0, .clients = {}};
  for (const auto& one : gather_words(group_, words)) {
    taken.clients.push_back(client_in(one));
    taken.start_spread_s = std::max(taken.start_spread_s, one.at("barrier").get<double>());
  }
  return taken;
}

double StorageGroup::payload_ceiling() {
  constexpr std::size_t kPiece = 256 << 10, kPieces = 64;  // in the second-level cache, as one transfer is; 16 MiB
  const auto times = run_concurrently(parts_.size(), [&](std::size_t part) {
    std::vector<std::byte> piece(kPiece);
    for (std::size_t i = 0; i < kPieces; ++i) {
      const PayloadKey key{.rank = part, .step = i, .nonce = settings_.nonce};
      fill_payload(key, 0, piece);
      if (payload_mismatches(key, 0, piece) != 0) throw std::logic_error("the payload does not equal itself");
    }
  });
  // Each piece is both made and compared; a phase does one of the two.
  return 2.0 * kPiece * kPieces * static_cast<double>(parts_.size()) / std::ranges::max(times);
}

}  // namespace assay::cluster_storage
