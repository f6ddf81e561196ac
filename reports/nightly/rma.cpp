// rma: the document, the files, the signature.
#include "reports/nightly/rma.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "orchestrator/files/atomic_file.h"
#include "orchestrator/files/digest.h"
#include "probes/core/json_io.h"
#include "probes/core/suggest.h"
#include "probes/core/words.h"
#include "reports/dossier/dsse.h"
#include "reports/nightly/shell.h"
#include "reports/nightly/unit_page.h"

namespace assay::nightly {
namespace {

using nlohmann::json;

constexpr const char* kDocument = "rma.json";
constexpr const char* kEnvelope = "rma.dsse.json";
constexpr const char* kManifest = "MANIFEST.sha256";
constexpr const char* kPayload = "application/vnd.assay.rma+json";
constexpr std::size_t kLargestAttachment = 64 << 20;

/// Name in the folder and bytes.
using Files = std::map<std::string, std::string>;

json flag_json(const drift::Flag& flag, drift::Date today) {
  const auto& terms = flag.arithmetic;
  json retests = json::array();
  for (const auto& one : flag.retests) {
    retests.push_back({{"night", drift::date_text(one.night)},
                       {"ratio", one.ratio},
                       {"residual", one.residual},
                       {"regular", one.regular},
                       {"partner", one.partner},
                       {"run_sha256", one.run_sha256}});
  }
  return {{"id", flag.id},
          {"metric", flag.metric},
          {"class", flag.type},
          {"state", flag.state},
          {"rule", flag.rule},
          {"raised", drift::date_text(flag.raised)},
          {"onset", drift::date_text(flag.onset)},
          {"ratio", flag.ratio},
          {"ratio_low", flag.ratio_low},
          {"ratio_high", flag.ratio_high},
          {"words", flag.words},
          {"action", action_words(flag, today)},
          {"suspects", flag.suspects},
          {"evidence", flag.evidence},
          {"relapses", flag.relapses},
          {"retests", std::move(retests)},
          {"arithmetic",
           {{"x", terms.x},
            {"shift", terms.shift},
            {"m", terms.m},
            {"s", terms.s},
            {"n", terms.n},
            {"T", terms.T},
            {"z", terms.z},
            {"C", terms.C},
            {"h", terms.h},
            {"rho", terms.rho},
            {"peers", terms.peers}}}};
}

json series_json(const SeriesTrend& series) {
  json nights = json::array();
  for (const auto& one : series.nights) {
    json night = {{"night", drift::date_text(one.night)},
                  {"value", one.value},
                  {"retest", one.retest},
                  {"run_sha256", one.run_sha256}};
    if (one.cohort) night["cohort_median"] = *one.cohort;
    nights.push_back(std::move(night));
  }
  json out = {{"metric", series.metric.name},
              {"probe", series.metric.probe},
              {"revision", series.metric.revision},
              {"unit", series.metric.unit},
              {"lower_is_better", series.metric.lower_is_better},
              {"nights", std::move(nights)}};
  if (series.accepted) out["accepted"] = *series.accepted;
  return out;
}

/// The attachments by name, or which of them cannot be taken.
std::expected<Files, InputError> attached(const std::vector<Attachment>& attachments) {
  std::vector<std::string> kinds;
  for (const auto& item : rma_checklist()) kinds.push_back(item.kind);
  Files files;
  for (const auto& one : attachments) {
    if (std::ranges::find(kinds, one.kind) == kinds.end())
      return std::unexpected(
          InputError{"--attach " + one.kind, "is no kind of attachment", suggestion(one.kind, kinds)});
    auto bytes = read_file(one.path, kLargestAttachment);
    if (!bytes) return std::unexpected(bytes.error());
    std::size_t number = 1;
    std::string name;
    do name = fmt::format("attached/{}-{}", one.kind, number++);
    while (files.contains(name));
    files.emplace(std::move(name), std::move(*bytes));
  }
  return files;
}

json document_of(const RmaInput& input, const std::vector<const drift::Flag*>& flags, const Files& files,
                 const drift::DriftReport& report) {
  const auto& unit = input.trend.unit;
  json list = json::array();
  for (const auto& item : rma_checklist()) {
    json names = json::array();
    for (const auto& [name, bytes] : files) {
      if (name.starts_with("attached/" + item.kind + "-")) names.push_back(name);
    }
    list.push_back(
        {{"kind", item.kind}, {"what", item.what}, {"state", names.empty() ? "absent" : "attached"}, {"files", names}});
  }
  json flagged = json::array();
  for (const auto* flag : flags) flagged.push_back(flag_json(*flag, report.as_of));
  json series = json::array();
  for (const auto& one : input.trend.series) series.push_back(series_json(one));
  json events = json::array();
  for (const auto& event : input.trend.events)
    events.push_back({{"night", drift::date_text(event.night)},
                      {"time", event.time},
                      {"kind", event.kind},
                      {"scope", event.scope},
                      {"text", event.text},
                      {"who", event.who}});
  json digests = json::object();
  for (const auto& [name, bytes] : files) digests[name] = files::sha256(bytes);
  return {{"schema", "assay.rma/1"},
          {"made", input.made},
          {"as_of", drift::date_text(report.as_of)},
          {"unit",
           {{"id", unit.id},
            {"kind", unit.kind},
            {"serial", unit.serial},
            {"node", unit.node},
            {"slot", unit.slot},
            {"leaf", unit.leaf},
            {"rack", unit.rack},
            {"state", input.trend.state}}},
          {"flags", std::move(flagged)},
          {"series", std::move(series)},
          {"events", std::move(events)},
          {"checklist", std::move(list)},
          {"files", std::move(digests)},
          {"policy_sha256", report.policy_sha256},
          {"history_sha256", report.history_sha256}};
}

std::string manifest_of(const Files& files) {
  std::string out;
  for (const auto& [name, bytes] : files) out += fmt::format("{}  {}\n", files::sha256(bytes), name);
  return out;
}

}  // namespace

std::vector<RmaItem> rma_checklist() {
  return {{"bug-report", "the vendor's bug report, taken right after the fault and before a reboot"},
          {"field-diagnostic", "the log of the vendor's field diagnostic"},
          {"kernel-log", "kernel messages around the fault"},
          {"counters", "error counters before and after the load"},
          {"firmware", "versions of firmware, VBIOS and driver"},
          {"swap-test", "the part in another slot: does the fault move with it"},
          {"power", "that power was excluded as the cause"},
          {"thermal", "that cooling was excluded as the cause"},
          {"seating", "that the seating of the part and its cables was excluded as the cause"}};
}

std::optional<InputError> write_rma(const RmaInput& input, const drift::DriftReport& report, const dossier::Signer* key,
                                    const std::string& out, std::size_t most_nights) {
  const std::string& id = input.trend.unit.id;
  if (report.simulated)
    return InputError{id, "is a unit of a simulation: nothing of it can be sent back",
                      "use the history of a real fleet"};
  std::vector<const drift::Flag*> flags;
  for (const auto& flag : report.flags) {
    if (flag.unit == id) flags.push_back(&flag);
  }
  if (flags.empty())
    return InputError{id, "has no flag in this report",
                      "`assay drift judge` says which units have one; a vendor asks for evidence"};
  auto files = attached(input.attachments);
  if (!files) return files.error();
  files->emplace("trend.html", unit_page(id, {input.trend}, report, most_nights));
  const std::string document = document_of(input, flags, *files, report).dump(1) + "\n";
  files->emplace(kDocument, document);
  if (key != nullptr) {
    dossier::Envelope envelope{.payload_type = kPayload, .payload = document};
    if (auto problem = dossier::sign(envelope, *key)) return problem;
    files->emplace(kEnvelope, dossier::envelope_text(envelope));
  }
  files->emplace(kManifest, manifest_of(*files));
  const auto staging = files::StagingDirectory::beside(out);
  if (!staging) return staging.error();
  for (const auto& [name, bytes] : *files) {
    if (auto error = staging->write("rma/" + name, bytes)) return error;
  }
  return staging->publish("rma");
}

namespace {

/// Every file below `folder`, but for the manifest; a link or anything else that is no file is an error.
std::expected<Files, InputError> files_in(const std::string& folder) {
  Files files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    const auto name = std::filesystem::relative(entry.path(), folder).string();
    if (entry.is_symlink() || (!entry.is_directory() && !entry.is_regular_file()))
      return std::unexpected(InputError{entry.path().string(), "is neither a file nor a folder", "refuse the folder"});
    if (entry.is_directory() || name == kManifest) continue;
    auto bytes = read_file(entry.path().string());
    if (!bytes) return std::unexpected(bytes.error());
    files.emplace(name, std::move(*bytes));
  }
  return files;
}

/// The files that rma.json names, compared with those in the folder.
std::optional<InputError> check_files(const std::string& folder, const json& signed_files) {
  const auto files = files_in(folder);
  if (!files) return files.error();
  for (const auto& [name, digest] : signed_files.items()) {
    const auto found = files->find(name);
    if (found == files->end()) return InputError{folder + "/" + name, "is missing", "the signed document names it"};
    if (digest != files::sha256(found->second))
      return InputError{folder + "/" + name, "is not the file that was signed",
                        "its SHA-256 differs from that in rma.json"};
  }
  for (const auto& [name, bytes] : *files) {
    if (name != kDocument && name != kEnvelope && !signed_files.contains(name))
      return InputError{folder + "/" + name, "is not among the files that were signed",
                        "remove it, or refuse the folder"};
  }
  const auto manifest = read_file(folder + "/" + kManifest);
  if (!manifest) return manifest.error();
  if (*manifest != manifest_of(*files))
    return InputError{folder + "/" + kManifest, "does not list these files", "refuse the folder"};
  return std::nullopt;
}

}  // namespace

std::optional<InputError> check_rma(const std::string& folder, const dossier::PublicKey& key) {
  const auto text = read_file(folder + "/" + kEnvelope, dossier::kLargestEnvelope);
  if (!text) return text.error();
  const auto envelope = dossier::read_envelope(*text, folder + "/" + kEnvelope);
  if (!envelope) return envelope.error();
  if (envelope->payload_type != kPayload || !dossier::is_signed_by(*envelope, key))
    return InputError{folder + "/" + kEnvelope, "has no valid signature of this key",
                      "ask the sender for the fingerprint by another way"};
  const auto document = read_file(folder + "/" + kDocument);
  if (!document) return document.error();
  if (*document != envelope->payload)
    return InputError{folder + "/" + kDocument, "is not the document that was signed",
                      "the envelope holds the signed one"};
  const auto parsed = parse_json(*document, folder + "/" + kDocument);
  if (!parsed) return parsed.error();
  if (!parsed->is_object() || parsed->value("schema", json()) != "assay.rma/1" || !parsed->contains("files") ||
      !parsed->at("files").is_object())
    return InputError{folder + "/" + kDocument, "is no document of schema assay.rma/1",
                      "another version may have written it"};
  return check_files(folder, parsed->at("files"));
}

}  // namespace assay::nightly
