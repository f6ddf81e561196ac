// inherit: merges profiles before they are read: several profiles as one, and requirements that are like another.
#pragma once

#include <optional>
#include <string>

#include "orchestrator/plan/profile.h"

namespace assay::plan {

/// Takes `next` over `profile`, both read: as if the document of `next` extended `profile`, except that the stricter
/// decision rule of both and the companions of both hold. A requirement that `next` asks less strictly is listed in
/// `loosened`.
void take_over(Profile& profile, Profile next);

/// Fills each requirement of `document` that has a `like` with the fields that it leaves out, from the requirement of
/// that id before it in the document, or else in `inherited`; `parameters` and `conditions` are filled by name. A
/// value of another kind than the schema demands is left for the schema to refuse. Errors: an id that there is not.
std::optional<InputError> fill_in_like(nlohmann::json& document, const Profile& inherited, const std::string& where);

}  // namespace assay::plan
