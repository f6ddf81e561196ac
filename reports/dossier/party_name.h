// party_name: names of parties and signers as a person sees them, so that one party is not written in two ways.
#pragma once

#include <expected>
#include <string>
#include <string_view>

namespace assay::dossier {

/// What `name` (UTF-8) looks like: without case, accents, marks that are not seen, dots and commas, with single blanks,
/// and with Latin letters for those of Greek and Cyrillic that look like them. Two names with the same text are one
/// name. An error in words: no letter or digit that is seen, a word with letters of two alphabets, a character that is
/// only a form of another one, such as ℡ or 𝐀.
std::expected<std::string, std::string> comparable_name(std::string_view name);

}  // namespace assay::dossier
