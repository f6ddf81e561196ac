// verify_text: VERIFY.txt, how to check a dossier with openssl, jq and coreutils.
#pragma once

#include <string>
#include <string_view>

namespace assay::dossier {

/// The text of VERIFY.txt in every dossier. Lines that begin with four spaces are commands for a POSIX shell; a test
/// runs them.
std::string verify_text();

/// Whether this is the SHA-256 of that text, or of one that an earlier version wrote.
bool is_verify_text(std::string_view sha256);

}  // namespace assay::dossier
