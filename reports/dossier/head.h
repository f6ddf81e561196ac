// head: a signed head of a journal by a witness during the run: a journal that grows cannot lose a line afterwards.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "reports/dossier/keys.h"
#include "reports/dossier/moment.h"
#include "reports/dossier/trust.h"

namespace assay::dossier {

/// Bytes of the largest envelope of a head; it has below 2 kB.
inline constexpr std::size_t kLargestHead = 64 << 10;

/// The first lines of a journal. Their digest covers all of them in their order, as the head of a hash chain does:
/// every later state of the same journal begins with these bytes.
struct Head {
  std::string run_id, plan_sha256;
  std::uint64_t bytes = 0, lines = 0;
  std::string sha256;   ///< of the first `bytes` bytes
  std::string seen_at;  ///< UTC by the witness's clock
  friend bool operator==(const Head&, const Head&) = default;
};

/// A checked head and whose it is.
struct WitnessedHead {
  Head head;
  std::string by;   ///< "role: signer of party" by a policy, else the key's fingerprint
  std::string key;  ///< its fingerprint
  friend bool operator==(const WitnessedHead&, const WitnessedHead&) = default;
};

/// Signers of heads.
struct Witnesses {
  std::vector<PublicKey> keys;  ///< one of them has signed; with a policy none, or the same
  /// Then a witness, buyer or commissioner of it: not the vendor, whose run it is.
  const TrustPolicy* policy = nullptr;
};

/// The head of a journal as it is on disk, without an incomplete line. Refused: a file that is no journal.
std::expected<Head, InputError> head_of(std::string_view journal, const std::string& where, Moment now);

/// The envelope of `head`, signed by `key`, as the text of a file.
std::expected<std::string, InputError> head_text(const Head& head, const Signer& key);

/// The file of a head.
struct HeadFile {
  std::string where, text;
};

/// Checks heads against the journal of a run, whose plan answers `challenge` or none; a copy of a head counts once.
/// Refused: no signature that counts (rules head_signed and head_role, and those of keys), another form or type,
/// another plan or run (which says what runs of this plan the witness has seen: of several the best may have been
/// handed over), a journal that does not begin with the witnessed part (a line of it is gone or was changed since),
/// another number of lines than that part has, and a time before its last line or after `now` (rule head_time), each
/// within judge::kMostClockDifference_s.
std::expected<std::vector<WitnessedHead>, InputError> check_heads(const std::vector<HeadFile>& files,
                                                                  const Witnesses& witnesses, std::string_view journal,
                                                                  const std::string& challenge, Moment now);

}  // namespace assay::dossier
