// conductor: the leader of rank 0, which asks all ranks, size by size, and records.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "probes/core/parameters.h"
#include "probes/core/record.h"
#include "probes/core/sampling.h"
#include "probes/core/units.h"

namespace assay {
class Recorder;
}  // namespace assay

namespace assay::collective {

class Fleet;

/// Differences between the libraries whose collectives are measured. Each call gets the answers of all ranks, by rank,
/// and throws std::runtime_error when the measurement cannot continue.
struct LibraryRules {
  using Answers = std::vector<nlohmann::json>;
  std::string prefix;                           ///< of the names of time, algbw and busbw
  std::function<Bytes(const Answers&)> admit;   ///< after "hello": limit of both buffers of a rank, in B
  std::function<void(const Answers&)> entered;  ///< after "enter", or null
  std::function<void(const Sampling& busbw, const Subject&, const Values& at)> measured;  ///< after each size, or null
  std::function<void(const Answers&)> finished;  ///< after "facts", the last request
};

/// Measures every one of `sizes` that fits on all ranks of `fleet`: a check, the timing by sampling()'s rules, a second
/// check; records time, algbw, busbw and mismatches with "at" the size, and the condition sizes_left_out. The ranks are
/// asked, in this order, for "hello"; "introduce", for a word that every rank must know of every other; "enter", with
/// all "words" by rank; "allocate"; then "check" and "time" for each size; "facts". `given` has operation, type and the
/// sampling parameters. The subject is the node, or of several nodes the group with their names joined by commas.
/// Throws std::runtime_error when a rank fails, `rules` refuse, or no size fits.
void conduct(Fleet& fleet, const Parameters& given, const std::vector<Bytes>& sizes, const LibraryRules& rules,
             Recorder& record);

}  // namespace assay::collective
