// catalogue: descriptions of the probes of this version, known without running them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "orchestrator/plan/plan.h"

namespace assay::plan {

/// The name of the document among profiles::embedded_documents(): profiles/probes.json.
inline constexpr const char* kCatalogueDocument = "probes";

/// Description of a probe: the document that `--describe` prints.
struct KnownProbe {
  std::string name;
  int revision = 0;
  nlohmann::json document;
  std::vector<nlohmann::json> former = {};  ///< the same description in the words of earlier builds, the latest first
};

/// Whether two descriptions differ in texts for people alone: `measures`, `method`, `source`, `needs` and meanings.
bool differ_in_words_alone(const nlohmann::json& one, const nlohmann::json& other);

/// Every description of profiles/probes.json, by name and revision. Throws when the document that was compiled in is
/// damaged, which a test rules out.
const std::vector<KnownProbe>& known_probes();

/// The probe `name` of `revision`, or nullptr when this version knows no such probe.
const KnownProbe* known_probe(std::string_view name, int revision);

/// The error of the probes of `plan`, for read_plan; nothing if they may be used. Refused: a digest of the program that
/// is none or all zeros, and a description other than the known one of the same name and revision, in the words of this
/// version or of an earlier one. The way in which a metric gets better and the uncertainty of its instrument decide
/// outcomes, so a plan may not bring its own.
std::optional<InputError> check_probes(const Plan& plan, const std::string& where);

/// Whether this version knows the probe of `description` in this form. The form of an earlier number lacks fields that
/// decide outcomes, such as the least deviation between runs.
bool is_known(const Description& description);

/// "fake_probe revision 1" for each probe of `plan` that this version does not know: its method, the direction of its
/// metrics and its uncertainty are the word of the plan's author.
std::vector<std::string> unknown_probes(const Plan& plan);

/// The names of all probes that this version has or that a built-in profile asks for, sorted: a probe of this list that
/// is not at hand is missing from the build, any other name is a mistake.
std::vector<std::string> known_probe_names();

/// The first requirement of `profile` whose probe is neither in `programs` nor known, with the nearest name; nothing
/// when there is none.
std::optional<InputError> find_unknown_probe(const Profile& profile, const std::vector<Program>& programs);

}  // namespace assay::plan
