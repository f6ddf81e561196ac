// attempts: the attempts of a run in the order in which they began, kept so that a long run takes little memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "orchestrator/files/spilled_bytes.h"
#include "probes/core/attempt_outcome.h"

namespace assay::judge {

/// A file that an attempt left, as journalled once its bytes were on disk.
struct EvidenceFile {
  std::string path;  ///< relative to the run directory
  std::string sha256;
  std::uint64_t bytes = 0;
};

/// One attempt of a step or of an extra test, and how it ended.
struct Attempt {
  std::string step;
  int number = 1;    ///< from 1
  std::string node;  ///< rank 0's
  AttemptOutcome outcome = AttemptOutcome::interrupted;
  std::string reason;      ///< for people; empty if exited
  std::string begin, end;  ///< UTC; end is empty if interrupted
  double jumped_s = 0;     ///< by which the head's clock jumped in between, in all
  std::vector<EvidenceFile> evidence;
  std::vector<std::string> nodes =
      {};                     ///< of an extra test of a search: on which nodes, rank 0 first; empty for a step
  std::string purpose = {};   ///< of an extra test: its purpose in the search
  bool second_stage = false;  ///< of a step: begun after the planned attempts of all steps were over
  std::string asked = {};     ///< of TPM or GPUs: SHA-256 of the journal through the line that begins the attempt; of
                              ///< a TPM with a secret to recover a colon and its SHA-256; empty if none was asked

  /// Whether a search asked for it, so that no step of the plan has it.
  [[nodiscard]] bool is_extra() const { return !purpose.empty(); }
};

/// Packed attempts in files::SpilledBytes, of which 16 bytes each stay in memory. One that is asked for is made again,
/// so that a change of it changes nothing here: change() does. Any number of threads may read. Copies have the same
/// bytes. Throws std::system_error when bytes on disk cannot be read, or are not those that were written.
class Attempts {
 public:
  class Iterator;

  Attempts() = default;
  Attempts(std::initializer_list<Attempt> all) {
    for (const auto& one : all) push_back(one);
  }

  void push_back(const Attempt& one) { places_.push_back(keep(one)); }
  void pop_back() { places_.pop_back(); }
  /// Replaces attempt `i`, or the last, by what `act` makes of it.
  template <class Act>
  void change(std::size_t i, const Act& act) {
    Attempt one = (*this)[i];
    act(one);
    places_.at(i) = keep(one);
  }
  template <class Act>
  void change_last(const Act& act) {
    change(size() - 1, act);
  }

  [[nodiscard]] std::size_t size() const { return places_.size(); }
  [[nodiscard]] bool empty() const { return places_.empty(); }
  // NOLINTBEGIN(readability-const-return-type): changes of a copy do not compile
  const Attempt operator[](std::size_t i) const;
  [[nodiscard]] const Attempt front() const { return (*this)[0]; }
  [[nodiscard]] const Attempt back() const { return (*this)[size() - 1]; }
  // NOLINTEND(readability-const-return-type)
  /// Those of `step`, in order.
  [[nodiscard]] std::vector<Attempt> of(std::string_view step) const;

  [[nodiscard]] Iterator begin() const;
  [[nodiscard]] Iterator end() const;

 private:
  friend class AttemptsByStep;
  struct Place {
    std::uint64_t begin = 0;  ///< in bytes_; from kBeside on, of beside_
    std::uint32_t size = 0;
    std::uint32_t step = 0;  ///< hash of its name
  };
  static constexpr std::uint64_t kBeside = std::uint64_t{1} << 63;

  static std::uint32_t hash_of(std::string_view step);
  Place keep(const Attempt& one);
  /// Adds attempt `number` to `found` if it is of `step`.
  void add_if_of(std::string_view step, std::size_t number, std::vector<Attempt>& found) const;

  std::shared_ptr<files::SpilledBytes> bytes_;
  std::vector<std::string> beside_;  ///< of attempts for which no room was left
  std::vector<Place> places_;
};

/// Goes through them; reads many at once.
class Attempts::Iterator {
 public:
  using iterator_concept = std::input_iterator_tag;
  using value_type = Attempt;
  using difference_type = std::ptrdiff_t;

  Iterator() = default;
  Iterator(const Attempts& all, std::size_t at) : all_(&all), at_(at) { read(); }

  /// Valid until the next one is read.
  const Attempt& operator*() const { return one_; }
  const Attempt* operator->() const { return &one_; }
  Iterator& operator++() {
    ++at_;
    read();
    return *this;
  }
  void operator++(int) { ++*this; }
  bool operator==(const Iterator& other) const { return at_ == other.at_; }

 private:
  void read();

  const Attempts* all_ = nullptr;
  std::size_t at_ = 0;
  std::uint64_t begin_ = 0;  ///< of block_
  std::string block_;
  Attempt one_;
};

inline Attempts::Iterator Attempts::begin() const { return {*this, 0}; }
inline Attempts::Iterator Attempts::end() const { return {*this, size()}; }

/// Finds the attempts of each step without a walk through all of them, which must not change meanwhile.
class AttemptsByStep {
 public:
  explicit AttemptsByStep(const Attempts& all);

  /// Those of `step`, in order.
  [[nodiscard]] std::vector<Attempt> of(std::string_view step) const;

 private:
  const Attempts* all_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> order_;  ///< hash of the step and number of the attempt
};

}  // namespace assay::judge
