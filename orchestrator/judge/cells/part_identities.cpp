// part_identities: finds UUIDs and serial numbers that two nodes reported: one node was measured twice, or a record was
// copied.
#include "orchestrator/judge/cells/part_identities.h"

#include <algorithm>
#include <cctype>
#include <set>

#include <fmt/format.h>

#include "orchestrator/files/digest.h"
#include "orchestrator/judge/evidence/gpu_answer.h"
#include "probes/core/text.h"

namespace assay::judge {
namespace {

/// The kind of part and its identity by a condition; an empty kind if it has none.
std::pair<std::string, std::string> identity_in(const Condition& condition, const Record& record) {
  const auto* text = std::get_if<std::string>(&condition.value);
  if (text == nullptr || !is_unique(*text)) return {};
  // A copied TPM of a guest answers for two of them as a real one does that is asked over the network.
  if (condition.name == "attestation_key" && condition.subject.kind == "node")
    return {"attestation key of a TPM", files::sha256(*text)};
  if (condition.name == "certificate_chain" && condition.subject.kind == "gpu") {
    const std::string key = identity_key(from_hexadecimal(*text).value_or(""));
    return key.empty() ? std::pair<std::string, std::string>{} : std::pair{std::string("identity key of a GPU"), key};
  }
  if (is_guest(record)) return {};
  if (condition.name == "product_serial" && condition.subject.kind == "node") return {"machine", *text};
  if (condition.name == "serial" && condition.subject.kind == "gpu") return {"board of a GPU", *text};
  const bool local_drive = condition.subject.kind == "drive" && condition.subject.id.starts_with("nvme");
  if (condition.name == "serial" && local_drive) return {"drive", *text};
  return {};
}

/// The name of a drive without its partition or namespace: "nvme0" of "nvme0n1p2", "sda" of "sda1".
std::string drive_of(const std::string& name) {
  const auto digits_from = [&](std::size_t end) {
    while (end > 0 && std::isdigit(static_cast<unsigned char>(name[end - 1])) != 0) --end;
    return end;
  };
  if (name.starts_with("nvme")) {
    const auto space = name.find('n', 4);
    return space == std::string::npos ? name : name.substr(0, space);
  }
  if (name.starts_with("sd") || name.starts_with("vd") || name.starts_with("xvd") || name.starts_with("hd"))
    return name.substr(0, digits_from(name.size()));
  return name;
}

std::string serial_of(const Subject& subject, const Pool& pool) {
  for (const Record* record : pool.records) {
    for (const auto& condition : record->conditions) {
      const auto* text = std::get_if<std::string>(&condition.value);
      if (condition.name == "serial" && condition.subject == subject && text != nullptr && !text->empty()) return *text;
    }
  }
  return "";
}

}  // namespace

bool is_guest(const Record& record) {
  const auto said = record.start.host.find("hypervisor");
  return said != record.start.host.end() && said->second != Value{std::string("none")};
}

bool is_unique(const std::string& serial) {
  constexpr std::size_t kShortestSerial = 6;
  if (serial.size() < kShortestSerial) return false;
  if (serial.find(' ') != std::string::npos || std::string_view("0123456789").find(serial) != std::string_view::npos)
    return false;
  const bool has_digit =
      std::ranges::any_of(serial, [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; });
  return has_digit && std::set<char>(serial.begin(), serial.end()).size() > 2;
}

bool is_gpu_uuid(const std::string& id) {
  constexpr std::size_t kUuid = 36, kLastGroup = 24;
  if (id.starts_with("GPU-") || id.starts_with("MIG-"))
    return id != "GPU-XX" && id.find_first_not_of("0-", 4) != std::string::npos;
  return id.size() == kUuid && std::ranges::count(id, '-') == 4 && is_unique(id.substr(kLastGroup));
}

std::size_t different_parts(const std::map<Subject, Pool>& pools) {
  std::set<std::string> names;
  std::set<std::string> serials;
  for (const auto& [subject, pool] : pools) {
    if (subject.kind != "drive") {
      names.insert(subject.id);
      continue;
    }
    const std::string serial = serial_of(subject, pool);
    if (!serial.empty() && !serials.insert(serial).second) continue;
    names.insert(drive_of(subject.id));
  }
  return names.size();
}

void PartIdentities::look(const plan::Step& step, const StepEvidence& found) {
  if (step.nodes.size() != 1) return;
  const std::string& node = step.nodes.front();
  for (const Record& record : found.records) {
    const auto note_gpu = [&](const Subject& subject) {
      if (subject.kind == "gpu" && is_gpu_uuid(subject.id)) note({"gpu", subject.id}, node);
    };
    for (const auto& measured : record.measurements) note_gpu(measured.subject);
    for (const auto& condition : record.conditions) {
      note_gpu(condition.subject);
      if (const auto part = identity_in(condition, record); !part.first.empty()) note(part, node);
    }
  }
}

void PartIdentities::look(const PartIdentities& later) {
  for (const auto& [part, nodes] : later.nodes_of_) {
    for (const auto& node : nodes) note(part, node);
  }
}

void PartIdentities::note(const std::pair<std::string, std::string>& part, const std::string& node) {
  auto& nodes = nodes_of_[part];
  if (std::ranges::find(nodes, node) == nodes.end()) nodes.push_back(node);
}

std::optional<PartIdentities::Twins> PartIdentities::twins() const {
  const auto found = std::ranges::find_if(nodes_of_, [](const auto& part) { return part.second.size() > 1; });
  if (found == nodes_of_.end()) return std::nullopt;
  return Twins{
      .kind = found->first.first, .identity = found->first.second, .a = found->second[0], .b = found->second[1]};
}

void PartIdentities::refuse_twins(Results& results) const {
  std::map<std::string, std::string> words;  // by node
  for (const auto& [part, nodes] : nodes_of_) {
    if (nodes.size() < 2) continue;
    for (const auto& node : nodes) {
      words.emplace(node, fmt::format("The nodes {} and {} show the same {} {}: one of them was not measured.",
                                      nodes[0], nodes[1], part.first, part.second));
    }
  }
  if (words.empty()) return;
  for (auto& result : results) {
    const auto twin = words.find(result.node);
    if (twin == words.end() || result.outcome == Outcome::not_measured) continue;
    result.outcome = Outcome::error;
    result.reason = twin->second;
  }
}

}  // namespace assay::judge
