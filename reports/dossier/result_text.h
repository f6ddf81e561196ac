// result_text: one judged cell in a statement.
#pragma once

#include <string>

#include "orchestrator/judge/verdict.h"
#include "orchestrator/plan/profile.h"

namespace assay::dossier {

/// Appends `result`, of `requirement`, in canonical JSON. Written as text: of 300,000 results the tree takes ten times
/// as much. Whether every number is finite; one that is not has no spelling.
bool add_result(const judge::Result& result, const plan::Requirement& requirement, std::string& text);

}  // namespace assay::dossier
