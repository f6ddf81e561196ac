// verify_text: VERIFY.txt, how to check a dossier with openssl, jq and coreutils.
#pragma once

#include <string>

namespace assay::dossier {

/// The text of VERIFY.txt in every dossier. Lines that begin with four spaces are commands for a POSIX shell; a test
/// runs them.
std::string verify_text();

}  // namespace assay::dossier
