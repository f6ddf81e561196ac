// verify_text: VERIFY.txt, how to check a dossier without any program of ours.
#pragma once

#include <string>

namespace assay::dossier {

/// The page that lies in every dossier. Lines that begin with four spaces are commands for a POSIX shell; a test takes
/// them from here and runs them.
std::string verify_text();

}  // namespace assay::dossier
