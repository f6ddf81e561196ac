// commons: contributions of several sites, without a name, a serial number or a time of day, their sum, and the signed
// files of both.
#pragma once

#include <cstddef>
#include <expected>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "reports/commons/figures.h"
#include "reports/dossier/keys.h"
#include "reports/dossier/moment.h"
#include "reports/dossier/opened_run.h"

namespace assay::commons {

/// Bytes of the largest envelope of figures.
inline constexpr std::size_t kLargestFile = 64 << 20;
/// Groups of fewer are withheld from commons: their owner could be guessed.
inline constexpr std::uint64_t kLeastBoards = 10, kLeastContributors = 3;

/// A file is of one site, or of several.
enum class FileKind { contribution, commons };

/// Figures with the day on which they were put together.
struct Document {
  FileKind kind = FileKind::commons;
  std::string made_on;  ///< UTC, "2026-11-27"
  AllFigures figures;
  std::uint64_t withheld = 0;         ///< of commons: groups that are too small
  std::set<std::string> boards = {};  ///< of a contribution: digests of the UUIDs of its boards that have one
};

/// A file whose signature holds.
struct SignedDocument {
  Document document;
  std::string key;     ///< fingerprint of its signer
  std::string sha256;  ///< of the file
};

/// The text of the file, signed by `signer`.
std::expected<std::string, InputError> signed_text(const Document& document, const dossier::Signer& signer);

/// Reads a file. Refused: no signature of one of `keys`, another form, a group twice, counts that are none.
std::expected<SignedDocument, InputError> read_signed(std::string_view text, const std::string& where,
                                                      const std::vector<dossier::PublicKey>& keys);

/// Adds up contributions; withholds small groups. Refused: commons among them, which would count twice, two of one
/// signer, and two with one board. `names` are of their files.
std::expected<Document, InputError> merged(const std::vector<SignedDocument>& all,
                                           const std::vector<std::string>& names, dossier::Moment now);

/// For people: a line for each group of which `model` is a part of the name, with the 5th, 50th and 95th percentile.
std::string table(const SignedDocument& of, const std::string& model);
/// assay.commons-shown/1: the same with a limit for a profile, which 95 of 100 such boards keep, and its source.
std::string json_of(const SignedDocument& of, const std::string& model);

/// UTC day.
std::string day_of(dossier::Moment now);

/// Figures of verified runs.
struct Contribution {
  AllFigures figures;
  std::set<std::string> boards;                 ///< as in Document
  std::map<std::string, std::size_t> left_out;  ///< passed figures that are not in it, by the reason
};

/// The figures of nodes and accelerators that passed, one for each board and group: of a board that several runs have,
/// that of the last. Left out: figures of pairs, groups and other parts, of counts of faults, of contrasts, without a
/// model, and of parameters whose text could name something. Refused: a run that is not verified, accepted and
/// measured whole.
std::expected<Contribution, InputError> contribution_of(const std::vector<dossier::OpenedRun>& runs);

}  // namespace assay::commons
