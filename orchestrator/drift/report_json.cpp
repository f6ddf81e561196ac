// report_json: assay.drift/3. Each structure names its fields once, for writing and for strict reading.
#include <cmath>
#include <concepts>
#include <stdexcept>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "orchestrator/drift/report.h"
#include "probes/core/json_io.h"
#include "probes/core/portable_math.h"
#include "probes/core/strict_object.h"

namespace assay::drift {
namespace {

using nlohmann::json;

constexpr const char* kSchema = "assay.drift/3";
constexpr const char* kHint = "it is written by `assay drift judge`; judge again instead of editing it";

template <class Io>
void fields(Io& io, Arithmetic& a) {
  io("x", a.x), io("shift", a.shift), io("m", a.m), io("s", a.s), io("n", a.n), io("T", a.T), io("z", a.z);
  io("C", a.C), io("h", a.h), io("rho", a.rho), io("peers", a.peers);
}

template <class Io>
void fields(Io& io, RetestSeen& r) {
  io("night", r.night), io("ratio", r.ratio), io("residual", r.residual), io("regular", r.regular);
  io("partner", r.partner), io("run_sha256", r.run_sha256);
}

template <class Io>
void fields(Io& io, Flag& f) {
  io("id", f.id), io("unit", f.unit), io("kind", f.kind), io("node", f.node), io("slot", f.slot), io("leaf", f.leaf);
  io("rack", f.rack), io("serial", f.serial), io("metric", f.metric), io("class", f.type), io("state", f.state);
  io("rule", f.rule), io("raised", f.raised), io("onset", f.onset), io("ratio", f.ratio);
  io("ratio_low", f.ratio_low), io("ratio_high", f.ratio_high), io("last_visit", f.last_visit);
  io("relapses", f.relapses), io("evidence", f.evidence), io("retests", f.retests), io("suspects", f.suspects);
  io("words", f.words), io("arithmetic", f.arithmetic);
}

template <class Io>
void fields(Io& io, FleetFinding& f) {
  io("kind", f.kind), io("metric", f.metric), io("cohort", f.cohort), io("since", f.since), io("ratio", f.ratio);
  io("limit", f.limit), io("units", f.units), io("words", f.words);
}

template <class Io>
void fields(Io& io, RetestWanted& r) {
  io("unit", r.unit), io("node", r.node), io("metric", r.metric), io("probe", r.probe), io("times", r.times);
  io("tonight", r.tonight), io("other_partner", r.other_partner), io("flag", r.flag);
}

template <class Io>
void fields(Io& io, Group& g) {
  io("element", g.element), io("flags", g.flags);
}

template <class Io>
void fields(Io& io, Overdue& o) {
  io("unit", o.unit), io("node", o.node), io("nights", o.nights), io("last_state", o.last_state);
}

template <class Io>
void fields(Io& io, Coverage& c) {
  io("units", c.units), io("measured", c.measured), io("not_due", c.not_due), io("busy", c.busy);
  io("preempted", c.preempted), io("not_measured", c.not_measured), io("unseen", c.unseen);
  io("max_age_nights", c.max_age_nights), io("allowed_nights", c.allowed_nights);
  io("silent_nights", c.silent_nights), io("overdue", c.overdue);
}

template <class Io>
void fields(Io& io, NotJudged& n) {
  io("unit", n.unit), io("metric", n.metric), io("reason", n.reason);
}

template <class Io>
void fields(Io& io, Thresholds& t) {
  io("visits", t.visits), io("arl0", t.arl0), io("h_small", t.h_small), io("h_large", t.h_large);
  io("cliff_history", t.cliff_history), io("count_p", t.count_p);
}

template <class Io>
void fields(Io& io, DriftReport& r) {
  io("as_of", r.as_of), io("simulated", r.simulated), io("policy_sha256", r.policy_sha256);
  io("history_sha256", r.history_sha256), io("nights", r.nights), io("series", r.series);
  io("thresholds", r.thresholds), io("coverage", r.coverage), io("units", r.units), io("fleet", r.fleet);
  io("flags", r.flags), io("groups", r.groups), io("retests_wanted", r.retests_wanted);
  io("not_judged", r.not_judged), io("states", r.states);
}

struct Writer {
  json& out;
  template <class T>
  void operator()(const char* name, T& value) {
    out[name] = coded(value);
  }

  static json coded(std::string& text) { return text; }
  static json coded(Date& date) { return date_text(date); }
  static json coded(double number) {
    if (!std::isfinite(number)) throw std::logic_error("a number of a drift report is not finite");
    return to_12_digits(number);
  }
  template <std::integral T>
  static json coded(T number) {
    return number;
  }
  template <Vocabulary T>
  static json coded(T value) {
    return value;
  }
  template <class T>
  static json coded(std::vector<T>& list) {
    json all = json::array();
    for (auto& one : list) all.push_back(coded(one));
    return all;
  }
  template <class T>
  static json coded(std::map<std::string, T>& map) {
    json all = json::object();
    for (auto& [name, one] : map) all[name] = coded(one);
    return all;
  }
  template <class T>
  requires std::is_class_v<T>
  static json coded(T& value) {
    json object = json::object();
    Writer writer{object};
    fields(writer, value);
    return object;
  }
};

struct Reader {
  StrictObject& in;
  template <class T>
  void operator()(const char* name, T& value) {
    decode(in.need(name), in.path(name), value);
  }

  [[noreturn]] static void refuse(const std::string& path, std::string what) {
    throw InputError{path, std::move(what), kHint};
  }
  static void decode(const json& given, const std::string& path, std::string& text) {
    if (!given.is_string()) refuse(path, "is not a text");
    text = given.get<std::string>();
  }
  static void decode(const json& given, const std::string& path, Date& date) {
    const auto found = given.is_string() ? date_from(given.get<std::string>()) : std::nullopt;
    if (!found) refuse(path, "is not a date such as 2026-03-01");
    date = *found;
  }
  static void decode(const json& given, const std::string& path, double& number) {
    if (!given.is_number()) refuse(path, "is not a number");
    number = given.get<double>();
  }
  static void decode(const json& given, const std::string& path, bool& flag) {
    if (!given.is_boolean()) refuse(path, "is not true or false");
    flag = given.get<bool>();
  }
  template <std::integral T>
  static void decode(const json& given, const std::string& path, T& number) {
    constexpr std::int64_t kMost = 1'000'000'000;
    const bool whole = given.is_number_integer() && given.get<std::int64_t>() <= kMost &&
                       given.get<std::int64_t>() >= (std::is_signed_v<T> ? -kMost : 0);
    if (!whole) refuse(path, "is not a whole number in range");
    number = static_cast<T>(given.get<std::int64_t>());
  }
  template <Vocabulary T>
  static void decode(const json& given, const std::string& path, T& value) {
    const auto found = given.is_string() ? from_word<T>(given.get_ref<const std::string&>()) : std::nullopt;
    if (!found) refuse(path, "is not one of " + words_listed<T>());
    value = *found;
  }
  template <class T>
  static void decode(const json& given, const std::string& path, std::vector<T>& list) {
    if (!given.is_array()) refuse(path, "is not a list");
    for (std::size_t i = 0; i < given.size(); ++i)
      decode(given[i], fmt::format("{}[{}]", path, i), list.emplace_back());
  }
  template <class T>
  static void decode(const json& given, const std::string& path, std::map<std::string, T>& map) {
    if (!given.is_object()) refuse(path, "is not an object");
    for (const auto& [name, one] : given.items()) decode(one, path + "." + name, map[name]);
  }
  template <class T>
  requires std::is_class_v<T>
  static void decode(const json& given, const std::string& path, T& value) {
    StrictObject object(given, path, kHint);
    Reader reader{object};
    fields(reader, value);
    object.done();
  }
};

}  // namespace

std::string report_text(const DriftReport& report) {
  DriftReport copy = report;  // a description of fields serves reading as well
  json document = Writer::coded(copy);
  document["schema"] = kSchema;
  return document.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

std::expected<DriftReport, InputError> read_report(std::string_view text, const std::string& where) {
  const auto document = parse_json(text, where, {.max_values = kMostValuesOfRun});
  if (!document) return std::unexpected(document.error());
  return read_strictly(where, [&] {
    StrictObject object(*document, "", kHint);
    if (object.text("schema") != kSchema) object.refuse("schema", std::string("is not ") + kSchema);
    DriftReport report;
    Reader reader{object};
    fields(reader, report);
    object.done();
    return report;
  });
}

int exit_code(const DriftReport& report) {
  for (const auto& flag : report.flags) {
    if (flag.state == UnitState::confirmed) return 1;
  }
  const Coverage& seen = report.coverage;
  return report.series > 0 && seen.units > 0 && seen.overdue.empty() && seen.silent_nights == 0 ? 0 : 3;
}

}  // namespace assay::drift
