// run_fixture: a small run made by hand, through the library's own writers, for tests only.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace assay::fixture {

/// The kind of a run.
enum class Kind {
  accepted,   ///< three nodes, everything passes
  mixed,      ///< one of every outcome, an interrupted attempt, a crash, and hostile texts from a node
  lookalike,  ///< as accepted, by a profile of the name of a built-in one
  known,      ///< a probe of ours on one node, described in profiles/probes.json
  inventory,  ///< another one of ours on three nodes, which tells the serial number of each: "SN-n01"; answers a
              ///< challenge
};

/// A folder under the system's temporary one that goes when this does.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  /// Its path.
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// A run of a part of a fleet: nodes r01 on of one site, that show serial numbers.
struct FleetPart {
  std::string site = "hall-3";
  std::string run_id = "5f0c3c1e-8a51-4f0e-9b64-0b1d5a7e2c21";
  int first = 1, count = 8;           ///< r01 to r08
  std::string serials = "SN-hall3-";  ///< before the number of the node
  double level = 4.62e11;             ///< copy bandwidth in B/s
  int revision = 1;                   ///< of the profile
};

/// Writes the run of such a part: its cores, its memory's bandwidth, and the same held against the fleet.
void make_fleet(const std::string& directory, const FleetPart& part);

/// Text that a node could send to break out of HTML, attributes and reading order.
inline constexpr const char* kHostile = "<script>alert(1)</script>\"'&\u202Eevil";

/// Writes plan.json, journal.jsonl, records/, logs/ and verdict.json to `directory`, which it makes. The same bytes
/// every time: moments are counted from 2026-01-05T06:30:00Z.
void make_run(const std::string& directory, Kind kind);

/// Writes `bytes` to `path`, making its folders; whatever is there goes.
void write(const std::string& path, const std::string& bytes);

/// Numbers with a point in `text`, which may be a page, that have more significant digits than people read.
std::vector<std::string> long_numbers(std::string_view text);

/// The bytes of `path`; throws when it cannot be read.
std::string read(const std::string& path);

}  // namespace assay::fixture
