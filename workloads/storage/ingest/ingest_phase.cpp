// ingest_phase: writes one file for each sample, reads it in pieces, and compares every byte on arrival.
#include "workloads/storage/ingest/ingest_phase.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <exception>
#include <memory>
#include <stdexcept>
#include <system_error>
#include <thread>

#include <fcntl.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "probes/core/probe.h"
#include "workloads/storage/shared/concurrent_work.h"
#include "workloads/storage/shared/direct_file.h"
#include "workloads/storage/shared/payload.h"
#include "workloads/storage/shared/storage_file.h"
#include "workloads/storage/shared/storage_ranks.h"

namespace assay::cluster_storage {
namespace {

constexpr auto kSlice = std::chrono::milliseconds(100);  // the longest a stop goes unnoticed
using FeedClock = std::chrono::steady_clock;

double between(FeedClock::time_point from, FeedClock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

using nlohmann::json;

constexpr std::size_t kIngestPiece = 1 << 20;  // one read; a multiple of kDirectBlock
constexpr double kStarvedAfter_s = 1e-3;       // a shorter wait is the scheduler's, not the storage's
constexpr std::uint64_t kSamplesOfRank = std::uint64_t{1} << 32;

json ingest_words(const IngestClient& client) {
  json words = {{"use", client.utilisation}, {"starved", client.starved},  {"time", client.time_s},
                {"samples", client.samples}, {"wrong", client.mismatches}, {"where", client.first_wrong},
                {"bytes", client.cold.bytes}};
  if (client.cold.resident) words["resident"] = *client.cold.resident;
  if (client.cold.wire) words["wire"] = *client.cold.wire;
  return words;
}

IngestClient ingest_in(const json& words) {
  IngestClient client{.utilisation = words.at("use").get<double>(),
                      .starved = words.at("starved").get<double>(),
                      .time_s = words.at("time").get<double>(),
                      .samples = words.at("samples").get<double>(),
                      .mismatches = words.at("wrong").get<std::uint64_t>(),
                      .first_wrong = words.at("where").get<std::string>(),
                      .cold = {.active = true, .bytes = words.at("bytes").get<double>(), .resident = {}, .wire = {}}};
  if (const auto found = words.find("resident"); found != words.end())
    client.cold.resident = found->get<std::uint64_t>();
  if (const auto found = words.find("wire"); found != words.end()) client.cold.wire = found->get<double>();
  return client;
}

}  // namespace

void IngestFeed::check() const {
  if (stop_requested()) throw std::runtime_error("stopped by a signal");
  if (abandoned_) throw std::runtime_error("given up, since the group has ended");
}

template <class Condition>
void IngestFeed::wait_until(std::unique_lock<std::mutex>& lock, Condition condition) {
  while (!condition()) {
    check();
    changed_.wait_for(lock, kSlice);
  }
}

std::optional<std::uint64_t> IngestFeed::next() {
  std::unique_lock lock(mutex_);
  check();
  if (taken_ == samples_) return std::nullopt;
  const std::uint64_t place = taken_++;
  wait_until(lock, [&] { return place / batch_ <= step_ + ahead_; });
  return place;
}

void IngestFeed::ready(std::uint64_t place) {
  const std::scoped_lock lock(mutex_);
  ++read_of_step_[place / batch_];
  changed_.notify_all();
}

void IngestFeed::wait_for(std::uint64_t step) {
  std::unique_lock lock(mutex_);
  wait_until(lock, [&] { return read_of_step_[step] == batch_; });
  step_ = step + 1;
  changed_.notify_all();
}

IngestTimes IngestFeed::run(double compute_s, double starved_after_s) {
  IngestTimes times;
  auto ended = FeedClock::now();
  for (std::uint64_t step = 0; step < samples_ / batch_; ++step) {
    wait_for(step);
    const auto begun = FeedClock::now();
    std::this_thread::sleep_for(std::chrono::duration<double>(compute_s));
    const double waited_s = between(ended, begun);
    ended = FeedClock::now();
    if (step == 0) continue;  // nothing could have been read ahead of it
    times.waited_s += waited_s;
    times.computed_s += between(begun, ended);
    if (waited_s > starved_after_s) ++times.starved_steps;
  }
  return times;
}

/// One reading thread and its findings.
struct IngestGroup::Reader {
  DirectMemory memory{kIngestPiece};
  double bytes = 0, samples = 0;
  std::uint64_t mismatches = 0;
  std::string first_wrong;
};

std::uint64_t IngestGroup::writer() const {
  return static_cast<std::uint64_t>((group_.rank() + group_.world() - settings_.shift) % group_.world());
}

std::string IngestGroup::path(std::uint64_t set, std::uint64_t rank, std::uint64_t sample) const {
  return fmt::format("{}/set-{:04}-rank-{:06}-sample-{:08}", settings_.folder, set, rank, sample);
}

std::uint64_t IngestGroup::size_of(std::uint64_t set, std::uint64_t rank, std::uint64_t sample) const {
  return sample_size(settings_.record, settings_.deviation, settings_.nonce + set, rank * kSamplesOfRank + sample);
}

void IngestGroup::write_sample(std::uint64_t set, std::uint64_t sample) const {
  const auto self = static_cast<std::uint64_t>(group_.rank());
  const std::string name = path(set, self, sample);
  Descriptor file = open_on_storage(name, O_WRONLY | O_CREAT | O_EXCL);
  std::vector<std::byte> piece(kIngestPiece);
  const std::uint64_t size = size_of(set, self, sample);
  for (std::uint64_t done = 0; done < size; done += piece.size()) {
    if (stop_requested()) throw std::runtime_error("stopped by a signal");
    if (abandoned_) throw std::runtime_error("given up, since the group has ended");
    piece.resize(std::min<std::uint64_t>(kIngestPiece, size - done));
    fill_payload({.rank = self * kSamplesOfRank + sample, .step = set, .nonce = settings_.nonce}, done, piece);
    write_on_storage(file, piece, done, name);
  }
  sync_and_close(std::move(file), name);
}

/// `work` for every thread. The first that fails ends the others, which wait for it, and its failure is thrown.
void IngestGroup::side_by_side(std::size_t threads, const std::function<void(std::size_t)>& work) {
  std::mutex mutex;
  std::exception_ptr first;
  const auto guarded = [&](std::size_t thread) {
    try {
      work(thread);
    } catch (...) {
      const std::scoped_lock lock(mutex);
      if (!first && !abandoned_) first = std::current_exception();
      abandoned_ = true;
      throw;
    }
  };
  try {
    run_concurrently(
        threads, guarded, [&] { group_.check(); }, abandoned_);
  } catch (...) {
    if (first) std::rethrow_exception(first);
    throw;
  }
}

Seconds IngestGroup::write(std::uint64_t set) {
  const auto begin = PhaseClock::now();
  const std::size_t threads = settings_.accelerators * settings_.readers;
  side_by_side(threads, [&](std::size_t thread) {
    for (std::uint64_t sample = thread; sample < settings_.samples(); sample += threads) write_sample(set, sample);
  });
  sync_directory(settings_.folder);
  return {passed_since(begin)};
}

void IngestGroup::read_sample(std::uint64_t set, std::uint64_t sample, Reader& reader) const {
  const std::string name = path(set, writer(), sample);
  const std::uint64_t size = size_of(set, writer(), sample);
  const Descriptor file = open_on_storage(name, O_RDONLY | (settings_.direct ? O_DIRECT : 0));
  const PayloadKey key{.rank = writer() * kSamplesOfRank + sample, .step = set, .nonce = settings_.nonce};
  std::uint64_t done = 0, wrong = 0;
  while (done < size) {
    const ssize_t got = ::pread(file.number(), reader.memory.bytes().data(), kIngestPiece, static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw std::system_error(errno, std::generic_category(), "read " + name);
    const auto whole = std::min<std::uint64_t>(static_cast<std::uint64_t>(got), size - done) / 8 * 8;
    wrong += payload_mismatches(key, done, reader.memory.bytes().first(whole));
    done += whole;
    if (whole == 0 || (settings_.direct && static_cast<std::size_t>(got) % kDirectBlock != 0)) break;  // its end
  }
  wrong += size - done;
  reader.bytes += static_cast<double>(done);
  ++reader.samples;
  if (wrong > 0 && reader.first_wrong.empty()) reader.first_wrong = fmt::format("{} of {} B of {}", wrong, size, name);
  reader.mismatches += wrong;
}

std::vector<IngestClient> IngestGroup::feed(std::uint64_t set) {
  const std::uint64_t of_one = settings_.steps * settings_.batch;
  const auto order = shuffled(settings_.samples(), settings_.nonce + set + (writer() << 40));
  std::vector<std::unique_ptr<IngestFeed>> feeds;
  for (std::size_t i = 0; i < settings_.accelerators; ++i)
    feeds.push_back(std::make_unique<IngestFeed>(settings_.steps, settings_.batch, settings_.ahead, abandoned_));
  std::vector<Reader> readers(settings_.accelerators * settings_.readers);
  std::vector<IngestTimes> times(settings_.accelerators);
  std::vector<std::string> paths;
  for (const auto sample : order) paths.push_back(path(set, writer(), sample));
  IngestClient mine{.cold = {.active = true, .bytes = 0, .resident = drop_cached(paths), .wire = {}}};
  const Arrivals arrivals(settings_.folder);
  (void)start_together(group_);
  const auto begin = PhaseClock::now();
  side_by_side(readers.size() + feeds.size(), [&](std::size_t thread) {
    if (thread >= readers.size()) {
      const std::size_t accelerator = thread - readers.size();
      times[accelerator] = feeds[accelerator]->run(settings_.compute_s, kStarvedAfter_s);
      return;
    }
    const std::size_t accelerator = thread / settings_.readers;
    while (const auto place = feeds[accelerator]->next()) {
      read_sample(set, order[accelerator * of_one + *place], readers[thread]);
      feeds[accelerator]->ready(*place);
    }
  });
  mine.time_s = passed_since(begin);
  mine.cold.wire = arrivals.since();
  for (const auto& one : times) {
    mine.utilisation = std::min(mine.utilisation, one.utilisation());
    mine.starved += static_cast<double>(one.starved_steps);
  }
  for (const auto& reader : readers) {
    mine.cold.bytes += reader.bytes;
    mine.samples += reader.samples;
    mine.mismatches += reader.mismatches;
    if (mine.first_wrong.empty()) mine.first_wrong = reader.first_wrong;
  }
  std::vector<IngestClient> clients;
  for (const auto& words : gather_words(group_, ingest_words(mine))) clients.push_back(ingest_in(words));
  return clients;
}

}  // namespace assay::cluster_storage
