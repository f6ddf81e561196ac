// history: opening, schema, and reading.
#include "orchestrator/history/history.h"
#include "orchestrator/files/exit_codes.h"

#include <filesystem>

#include <sys/vfs.h>

#include <fmt/format.h>

#include "orchestrator/history/history_internal.h"
#include "orchestrator/history/packed_figures.h"
#include "probes/core/text.h"

namespace assay::history {
namespace {

constexpr int kVersion = 2;
constexpr std::int64_t kApplication = 0x41534159;  // "ASAY"

constexpr const char* kSchema = R"(
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
CREATE TABLE unit(id INTEGER PRIMARY KEY, name TEXT UNIQUE NOT NULL, kind TEXT, serial INTEGER, node TEXT, slot TEXT,
  leaf TEXT, rack TEXT);
CREATE TABLE metric(id INTEGER PRIMARY KEY, name TEXT UNIQUE NOT NULL, probe TEXT, revision INTEGER, unit TEXT,
  class TEXT, lower_is_better INTEGER, fatal INTEGER, cumulative INTEGER, expected REAL);
CREATE TABLE cohort(id INTEGER PRIMARY KEY, name TEXT UNIQUE NOT NULL);
CREATE TABLE series(id INTEGER PRIMARY KEY, unit INTEGER NOT NULL, metric INTEGER NOT NULL, revision INTEGER,
  accepted REAL, UNIQUE(unit, metric));
CREATE TABLE sweep(id INTEGER PRIMARY KEY, run_sha256 TEXT UNIQUE NOT NULL, night INTEGER, started TEXT,
  utc_offset_s INTEGER, origin TEXT, verdict TEXT, label TEXT, raw_sha256 TEXT);
CREATE TABLE visit(id INTEGER PRIMARY KEY, night INTEGER, unit INTEGER, cohort INTEGER, sweep INTEGER, state TEXT,
  retest INTEGER, node TEXT, slot TEXT, boot TEXT, partner TEXT, reason TEXT, figures INTEGER, packed BLOB);
CREATE INDEX visit_night ON visit(night);
CREATE INDEX visit_unit ON visit(unit, night);
CREATE TABLE event(id INTEGER PRIMARY KEY, night INTEGER, time TEXT, scope TEXT, kind TEXT, text TEXT, who TEXT);
CREATE TABLE saved(policy_sha256 TEXT PRIMARY KEY, night INTEGER, bytes BLOB) WITHOUT ROWID;
)";

[[noreturn]] void damaged(const std::string& path, std::string what) {
  throw Broken({{path, std::move(what), "it was not written by this version of assay"}, files::kExitRefused});
}

template <class Enum>
Enum word_in(const std::string& text, const std::string& path) {
  const auto found = from_word<Enum>(text);
  if (!found) damaged(path, "holds an unknown word");
  return *found;
}

/// As the column "cumulative" holds it: 0 each run anew, 1 since boot, 2 for life.
Course course_of(std::int64_t number) {
  constexpr std::int64_t kForLife = 2;
  return number == 0 ? Course::each_run : number == kForLife ? Course::for_life : Course::since_boot;
}

}  // namespace

std::optional<std::string> unfit_file_system(std::uint64_t magic) {
  static const std::map<std::uint64_t, const char*> kNetwork = {
      {0x6969, "NFS"},        {0x517b, "SMB"},        {0xff534d42, "CIFS"}, {0xfe534d42, "SMB2"},
      {0x0bd00bd0, "Lustre"}, {0x47504653, "GPFS"},   {0x01021997, "9p"},   {0x00c36400, "Ceph"},
      {0x5346414f, "AFS"},    {0x19830326, "BeeGFS"}, {0x65735546, "FUSE"}, {0x564c, "NCP"}};
  const auto found = kNetwork.find(magic & 0xffffffff);
  if (found == kNetwork.end()) return std::nullopt;
  return fmt::format("is on {}, whose locks and memory maps are not reliable", found->second);
}

drift::Date night_of(std::chrono::system_clock::time_point started, int utc_offset_s) {
  const auto local = started + std::chrono::seconds(utc_offset_s) - std::chrono::hours(12);
  return std::chrono::floor<std::chrono::days>(local);
}

/// One part of a schema, as it was written.
struct Definition {
  std::string name, of, text;  ///< "table unit"
  friend bool operator==(const Definition&, const Definition&) = default;
};

static std::vector<Definition> definitions(const Database& database) {
  std::vector<Definition> all;
  for (Statement row(database, "SELECT type,name,tbl_name,sql FROM sqlite_schema ORDER BY type DESC,name"); row.step();)
    all.push_back({.name = row.text(0) + " " + row.text(1), .of = row.text(2), .text = row.text(3)});
  return all;
}

/// Refuses a database that defines anything else than this version of assay does: a trigger, a view in place of a
/// table, another column.
static void check_definitions(const Database& database, const std::string& path) {
  const Database own(":memory:", true, true);
  own.run(kSchema);
  const auto known = definitions(own), found = definitions(database);
  const auto all_among = [&path](const auto& these, const auto& others, const char* what) {
    for (const Definition& one : these) {
      if (std::ranges::find(others, one) == others.end())
        damaged(path, fmt::format("{}: {}", what, printable(one.name)));
    }
  };
  all_among(found, known, "defines what is not part of a history");
  all_among(known, found, "lacks a part of a history");
}

/// The one number that `sql` gives.
static std::int64_t number_in(const Database& database, const char* sql) {
  Statement row(database, sql);
  row.step();
  return row.whole(0);
}

void History::Internal::check_schema(bool create, bool simulation) {
  const std::int64_t application = number_in(database, "PRAGMA application_id");
  const std::int64_t version = number_in(database, "PRAGMA user_version");
  if (create && number_in(database, "SELECT count(*) FROM sqlite_schema") == 0) {
    Transaction all(database);
    database.run(kSchema);
    database.run(fmt::format("PRAGMA application_id={}; PRAGMA user_version={}", kApplication, kVersion).c_str());
    Statement(database, "INSERT INTO meta VALUES('origin', ?)")
        .with(std::string(word_of(simulation ? Origin::simulated : Origin::measured)))
        .run();
    all.commit();
  } else if (application != kApplication) {
    damaged(path, "is a database of another program");
  } else if (version != kVersion) {
    throw Broken({{path, fmt::format("has schema version {}, and this version of assay knows {}", version, kVersion),
                   version < kVersion ? "`assay history rebuild --from-records` makes it anew from the files "
                                        "next to it; a simulation is made again from its seed"
                                      : "it was written by a newer version of assay"},
                  files::kExitRefused});
  } else {
    check_definitions(database, path);
  }
  Statement origin(database, "SELECT value FROM meta WHERE key='origin'");
  if (!origin.step()) damaged(path, "does not say whether it is a simulation");
  simulated = word_in<Origin>(origin.text(0), path) == Origin::simulated;
}

std::string History::Internal::raw_path(const std::string& run_sha256) const {
  return beside + ".raw/" + run_sha256 + ".jsonl.zst";
}

History::History(std::unique_ptr<Internal> inside) : inside_(std::move(inside)) {}
History::History(History&&) noexcept = default;
History& History::operator=(History&&) noexcept = default;
History::~History() = default;

void History::replay_into(const std::string& database) {
  inside_->replaying = true;
  inside_->beside = database;
}

bool History::simulated() const { return inside_->simulated; }

Result<History> History::open(const std::string& path, Access access) {
  const bool create = access == Access::create || access == Access::create_simulation;
  const std::filesystem::path folder = std::filesystem::absolute(path).parent_path();
  struct statfs facts {};
  if (::statfs(folder.c_str(), &facts) != 0)
    return std::unexpected(Failure{{path, "its folder does not exist or cannot be read", "make the folder first"}});
  if (const auto unfit = unfit_file_system(static_cast<std::uint64_t>(facts.f_type)))
    return std::unexpected(Failure{{path, *unfit, "keep the database on a local disk of the head node"}});
  return guarded([&] {
    auto inside = std::make_unique<Internal>(path, access != Access::read, create);
    inside->check_schema(create, access == Access::create_simulation);
    if (access != Access::read) {  // after the check: a file of another program is not changed
      inside->database.run("PRAGMA journal_mode=WAL");
      inside->database.run("PRAGMA synchronous=FULL");
    }
    if (access == Access::create_simulation && !inside->simulated)
      throw Broken(Failure{{path, "is a history of measurements", "write the simulation to a new file"}});
    return History(std::move(inside));
  });
}

Result<drift::Fleet> History::fleet() const {
  return guarded([&] {
    const Internal& in = *inside_;
    drift::Fleet fleet;
    fleet.simulated = in.simulated;
    // Numbers in the database begin at 1 and have no gaps, for nothing is ever removed.
    const auto in_order = [&in](const Statement& row, int column, std::size_t before) {
      if (row.whole(column) != static_cast<std::int64_t>(before) + 1) damaged(in.path, "has numbers with a gap");
    };
    for (Statement row(in.database, "SELECT name,kind,serial,node,slot,leaf,rack,id FROM unit ORDER BY id");
         row.step();) {
      in_order(row, 7, fleet.units.size());
      fleet.units.push_back({.id = row.text(0),
                             .kind = row.text(1),
                             .serial = row.whole(2) != 0,
                             .node = row.text(3),
                             .slot = row.text(4),
                             .leaf = row.text(5),
                             .rack = row.text(6)});
    }
    for (Statement row(in.database,
                       "SELECT name,probe,revision,unit,class,lower_is_better,fatal,cumulative,expected,id FROM metric "
                       "ORDER BY id");
         row.step();) {
      in_order(row, 9, fleet.metrics.size());
      drift::Metric metric{.name = row.text(0),
                           .probe = row.text(1),
                           .revision = static_cast<int>(row.whole(2)),
                           .unit = row.text(3),
                           .type = word_in<drift::MetricClass>(row.text(4), in.path),
                           .lower_is_better = row.whole(5) != 0,
                           .fatal = row.whole(6) != 0,
                           .course = course_of(row.whole(7))};
      if (!row.empty(8)) metric.expected = row.number(8);
      fleet.metrics.push_back(std::move(metric));
    }
    for (Statement row(in.database, "SELECT name,id FROM cohort ORDER BY id"); row.step();) {
      in_order(row, 1, fleet.cohorts.size());
      fleet.cohorts.push_back(row.text(0));
    }
    for (Statement row(in.database, "SELECT unit,metric,accepted,id FROM series ORDER BY id"); row.step();) {
      in_order(row, 3, fleet.series.size());
      drift::Series series{.unit = static_cast<std::uint32_t>(row.whole(0) - 1),
                           .metric = static_cast<std::uint32_t>(row.whole(1) - 1)};
      if (!row.empty(2)) series.accepted = row.number(2);
      if (series.unit >= fleet.units.size() || series.metric >= fleet.metrics.size())
        damaged(in.path, "has a series of a unit or metric that there is not");
      fleet.series.push_back(series);
    }
    return fleet;
  });
}

Result<void> History::nights(drift::Date from, drift::Date to, const std::function<void(drift::Night)>& each) const {
  return guarded([&] {
    const Internal& in = *inside_;
    std::vector<std::int64_t> days;
    std::vector<PackedFigure> figures;
    const std::int64_t series = number_in(in.database, "SELECT count(*) FROM series");
    const std::int64_t units = number_in(in.database, "SELECT count(*) FROM unit");
    const std::int64_t cohorts = number_in(in.database, "SELECT count(*) FROM cohort");
    Statement listed(in.database,
                     "SELECT night FROM sweep WHERE night BETWEEN ?1 AND ?2 UNION SELECT night FROM event WHERE night "
                     "BETWEEN ?1 AND ?2 ORDER BY 1");
    for (listed.with(number_of(from), number_of(to)); listed.step();) days.push_back(listed.whole(0));
    Statement visits(
        in.database,
        "SELECT v.id,v.unit,v.cohort,v.state,v.retest,s.run_sha256,s.started,v.node,v.slot,v.boot,"
        "v.partner,v.reason,v.packed FROM visit v JOIN sweep s ON s.id=v.sweep WHERE v.night=? ORDER BY v.id");
    Statement events(in.database, "SELECT time,scope,kind,text,who FROM event WHERE night=? ORDER BY id");
    for (const std::int64_t day : days) {
      drift::Night night{.date = date_of(day)};
      for (visits.with(day); visits.step();) {
        if (visits.whole(1) < 1 || visits.whole(1) > units || visits.whole(2) < 1 || visits.whole(2) > cohorts)
          damaged(in.path, "has a visit of a unit or cohort that there is not");
        night.visits.push_back({.unit = static_cast<std::uint32_t>(visits.whole(1) - 1),
                                .cohort = static_cast<std::uint32_t>(visits.whole(2) - 1),
                                .state = word_in<drift::VisitState>(visits.text(3), in.path),
                                .retest = visits.whole(4) != 0,
                                .run_sha256 = visits.text(5),
                                .started = visits.text(6),
                                .node = visits.text(7),
                                .slot = visits.text(8),
                                .boot = visits.text(9),
                                .partner = visits.text(10),
                                .reason = visits.text(11)});
        if (!unpack(visits.bytes(12), figures)) damaged(in.path, "has figures of a visit that cannot be read");
        for (const PackedFigure& figure : figures) {
          if (figure.series < 1 || figure.series > series)
            damaged(in.path, "has a figure of a series that there is not");
          night.readings.push_back({.series = static_cast<std::uint32_t>(figure.series - 1),
                                    .visit = static_cast<std::uint32_t>(night.visits.size() - 1),
                                    .value = figure.value,
                                    .samples = figure.samples});
        }
      }
      // By series and not by visit: sums over a night are the same for any order of adding sweeps.
      std::ranges::sort(night.readings, {}, [](const drift::Reading& one) { return std::pair(one.series, one.visit); });
      for (events.with(day); events.step();)
        night.events.push_back({.night = night.date,
                                .time = events.text(0),
                                .scope = events.text(1),
                                .kind = word_in<drift::EventKind>(events.text(2), in.path),
                                .text = events.text(3),
                                .who = events.text(4)});
      each(std::move(night));
    }
  });
}

Result<std::vector<SweepRow>> History::sweeps() const {
  return guarded([&] {
    std::vector<SweepRow> all;
    Statement row(inside_->database,
                  "SELECT run_sha256,started,verdict,label,raw_sha256,s.night,origin,count(v.id),"
                  "coalesce(sum(v.figures),0) FROM sweep s LEFT JOIN visit v ON v.sweep=s.id GROUP BY s.id "
                  "ORDER BY s.night, started, run_sha256");
    while (row.step())
      all.push_back({.run_sha256 = row.text(0),
                     .started = row.text(1),
                     .verdict = row.text(2),
                     .label = row.text(3),
                     .raw_sha256 = row.text(4),
                     .night = date_of(row.whole(5)),
                     .origin = word_in<Origin>(row.text(6), inside_->path),
                     .visits = static_cast<std::size_t>(row.whole(7)),
                     .values = static_cast<std::size_t>(row.whole(8))});
    return all;
  });
}

Result<std::vector<drift::Event>> History::events() const {
  return guarded([&] {
    std::vector<drift::Event> all;
    for (Statement row(inside_->database, "SELECT night,time,scope,kind,text,who FROM event ORDER BY night,id");
         row.step();)
      all.push_back({.night = date_of(row.whole(0)),
                     .time = row.text(1),
                     .scope = row.text(2),
                     .kind = word_in<drift::EventKind>(row.text(3), inside_->path),
                     .text = row.text(4),
                     .who = row.text(5)});
    return all;
  });
}

Result<std::optional<drift::Date>> History::newest_night(drift::Date last) const {
  return guarded([&]() -> std::optional<drift::Date> {
    Statement row(inside_->database, "SELECT max(night) FROM sweep WHERE night<=?");
    if (!row.with(number_of(last)).step() || row.empty(0)) return std::nullopt;
    return date_of(row.whole(0));
  });
}

Result<bool> History::knows(const std::string& unit_or_node) const {
  return guarded([&] {
    Statement row(inside_->database,
                  "SELECT 1 FROM unit WHERE name=?1 OR node=?1 UNION ALL SELECT 1 FROM visit WHERE "
                  "node=?1 LIMIT 1");
    return row.with(unit_or_node).step();
  });
}

Result<std::vector<LastVisit>> History::last_visits() const {
  return guarded([&] {
    std::vector<LastVisit> all;
    Statement row(
        inside_->database,
        "SELECT u.name,u.node,min(v.night),max(v.night),max(CASE WHEN v.state='measured' THEN v.night END),"
        "(SELECT w.state FROM visit w WHERE w.unit=v.unit ORDER BY w.night DESC, w.id DESC LIMIT 1) FROM visit v "
        "JOIN unit u ON u.id=v.unit GROUP BY v.unit ORDER BY u.name");
    while (row.step()) {
      LastVisit one{.unit = row.text(0),
                    .node = row.text(1),
                    .first_known = date_of(row.whole(2)),
                    .visited = date_of(row.whole(3))};
      if (!row.empty(4)) one.measured = date_of(row.whole(4));
      one.state = one.measured == one.visited ? drift::VisitState::measured
                                              : word_in<drift::VisitState>(row.text(5), inside_->path);
      all.push_back(std::move(one));
    }
    return all;
  });
}

Result<std::optional<History::Saved>> History::saved(const std::string& policy_sha256) const {
  return guarded([&]() -> std::optional<Saved> {
    Statement row(inside_->database, "SELECT night,bytes FROM saved WHERE policy_sha256=?");
    if (!row.with(policy_sha256).step()) return std::nullopt;
    return Saved{.night = date_of(row.whole(0)), .bytes = row.bytes(1)};
  });
}

}  // namespace assay::history
