// detector_state: writes and reads the detector's state as bytes; they are valid for this version, policy and fleet
// only.
#include <cstring>
#include <type_traits>

#include "orchestrator/drift/detector.h"
#include "orchestrator/drift/detector_internal.h"
#include "orchestrator/files/digest.h"

namespace assay::drift {
namespace {

constexpr const char* kVersion = "assay.drift-state/8";

/// Writes, or reads back, one value after the other; bytes of this machine.
struct Archive {
  std::string* out = nullptr;
  std::string_view in = {};
  bool failed = false;

  void raw(void* data, std::size_t size) {
    if (size == 0) return;  // of an empty list: there may be no address
    if (out != nullptr) {
      out->append(static_cast<const char*>(data), size);
    } else if (in.size() < size) {
      failed = true;
    } else {
      std::memcpy(data, in.data(), size);
      in.remove_prefix(size);
    }
  }
  template <class T>
  requires(std::is_trivially_copyable_v<T>) void operator()(T& value) { raw(&value, sizeof value); }
  /// A number of elements, which cannot be more than there are bytes.
  std::size_t size(std::size_t now) {
    std::uint64_t count = now;
    (*this)(count);
    if (out == nullptr && count > in.size()) failed = true;
    return failed ? 0 : static_cast<std::size_t>(count);
  }
  void operator()(std::string& text) {
    text.resize(size(text.size()));
    raw(text.data(), text.size());
  }
  template <class T>
  void operator()(std::vector<T>& list) {
    list.resize(size(list.size()));
    if constexpr (std::is_trivially_copyable_v<T>)
      raw(list.data(), list.size() * sizeof(T));
    else
      for (T& one : list) (*this)(one);
  }
  template <class K, class V>
  void operator()(std::map<K, V>& map) {
    const std::size_t count = size(map.size());
    if (out != nullptr) {
      for (auto& [key, value] : map) {
        K copy = key;
        (*this)(copy);
        (*this)(value);
      }
      return;
    }
    map.clear();
    for (std::size_t i = 0; i < count && !failed; ++i) {
      K key{};
      (*this)(key);
      (*this)(map[key]);
    }
  }
  void operator()(FlagKey& key) { (*this)(key.first), (*this)(key.second); }
  void operator()(UnitTrack& track) {
    (*this)(track.first_known), (*this)(track.last_measured), (*this)(track.last_seen), (*this)(track.last_state);
    (*this)(track.node), (*this)(track.slot), (*this)(track.epoch), (*this)(track.cohort), (*this)(track.moved);
    (*this)(track.out), (*this)(track.gone), (*this)(track.missing);
  }
  void operator()(RetestSeen& test) {
    (*this)(test.night), (*this)(test.ratio), (*this)(test.residual), (*this)(test.regular);
    (*this)(test.partner), (*this)(test.run_sha256);
  }
  void operator()(OpenFlag& one) {
    Flag& flag = one.flag;
    for (std::string* text : {&flag.id, &flag.unit, &flag.kind, &flag.metric}) (*this)(*text);
    (*this)(flag.serial), (*this)(flag.type), (*this)(flag.state), (*this)(flag.rule), (*this)(flag.raised);
    (*this)(flag.onset), (*this)(flag.ratio), (*this)(flag.ratio_low), (*this)(flag.ratio_high);
    (*this)(flag.last_visit), (*this)(flag.relapses), (*this)(flag.evidence), (*this)(flag.retests);
    (*this)(flag.arithmetic), (*this)(one.unit), (*this)(one.metric), (*this)(one.series), (*this)(one.s);
    (*this)(one.effect), (*this)(one.visits), (*this)(one.min_effect), (*this)(one.clean);
    (*this)(one.size), (*this)(one.pooled), (*this)(one.pooled_mean), (*this)(one.noise);
    (*this)(one.pair), (*this)(flag.partners);
  }
  void operator()(WantedCliff& one) { (*this)(one.unit), (*this)(one.metric), (*this)(one.T), (*this)(one.pair); }
  void operator()(NotJudged& one) { (*this)(one.unit), (*this)(one.metric), (*this)(one.reason); }
};

}  // namespace

/// Everything that is kept between nights. Metrics and series are made anew from fleet and policy before.
template <class In>
static void archive(Archive& at, In& in) {
  at(in.last), at(in.first), at(in.swept), at(in.nights), at(in.digest), at(in.thresholds), at(in.cliffs),
      at(in.refused);
  at(in.units.tracks), at(in.units.cohorts), at(in.units.cohort_numbers), at(in.units.in_place);
  at(in.flags.open), at(in.flags.raised);
  std::vector<std::pair<Day, double>> visits(in.visits.begin(), in.visits.end());
  std::vector<Day> days;
  std::vector<double> counts;
  for (const auto& [day, count] : visits) {
    days.push_back(day);
    counts.push_back(count);
  }
  at(days), at(counts);
  in.visits.clear();
  for (std::size_t i = 0; i < days.size() && i < counts.size(); ++i) in.visits.emplace_back(days[i], counts[i]);
}

std::string Detector::state() const {
  std::string bytes;
  Archive at{.out = &bytes};
  Internal& in = *inside_;  // the archive reads and writes through the same description
  std::string head = std::string(kVersion) + files::sha256(policy_text(in.policy));
  at(head);
  archive(at, in);
  std::vector<std::uint32_t> series(in.metrics.size());
  std::size_t known = in.slot_of.size();
  at(known), at(series);
  for (MetricTrack& track : in.metrics) {
    at(track.series), at(track.keys), at(track.level.states), at(track.level.cohorts), at(track.level.serial);
    at(track.plain.states), at(track.plain.events), at(track.plain.exposure), at(track.fleet);
  }
  std::string digest = files::sha256(bytes);
  at(digest);
  return bytes;
}

std::expected<Detector, InputError> Detector::resume(const Fleet& fleet, Policy policy, std::string_view state,
                                                     unsigned threads) {
  const auto refused = [](const char* what) {
    return std::unexpected(InputError{"saved state", what, "`assay history rebuild` makes it anew"});
  };
  constexpr std::size_t kDigest = 64 + sizeof(std::uint64_t);
  if (state.size() < kDigest) return refused("is too short");
  const std::string_view body = state.substr(0, state.size() - kDigest);
  if (state.substr(state.size() - kDigest + sizeof(std::uint64_t)) != files::sha256(std::string(body)))
    return refused("is damaged");
  Detector detector(fleet, std::move(policy), threads);
  Internal& in = *detector.inside_;
  Archive at{.in = body};
  std::string head;
  at(head);
  if (head != std::string(kVersion) + files::sha256(policy_text(in.policy)))
    return refused("is of another version or policy");
  archive(at, in);
  std::size_t known = 0;
  std::vector<std::uint32_t> metrics;
  at(known), at(metrics);
  if (at.failed || known > fleet.series.size() || metrics.size() > fleet.metrics.size() ||
      in.units.tracks.size() > fleet.units.size())
    return refused("is of another fleet");
  in.slot_of.assign(known, kNone);
  in.make_metrics(metrics.size());
  for (MetricTrack& track : in.metrics) {
    at(track.series), at(track.keys), at(track.level.states), at(track.level.cohorts), at(track.level.serial);
    at(track.plain.states), at(track.plain.events), at(track.plain.exposure), at(track.fleet);
    for (std::uint32_t slot = 0; slot < track.series.size(); ++slot) {
      if (track.series[slot] >= known) return refused("is of another fleet");
      in.slot_of[track.series[slot]] = slot;
    }
  }
  if (at.failed || !at.in.empty()) return refused("is damaged");
  return detector;
}

}  // namespace assay::drift
