// challenge: the commitments of two or more parties with the seeds that they had committed to, the one seed that
// follows from all of them (assay.draw/2), the cells that follow from it, and the plan that measures these again.
#pragma once

#include <cstddef>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "orchestrator/judge/verdict.h"
#include "orchestrator/plan/plan.h"
#include "reports/spot_check/commitment.h"

namespace assay::spot_check {

/// Parties of a draw: two at least, each of which makes the cells unforeseeable for the others.
inline constexpr std::size_t kLeastParties = 2, kMostParties = 8;
/// Bytes of the largest challenge.
inline constexpr std::size_t kLargestChallenge = kMostParties * (kLargestCommitment + (64 << 10));

/// A checked challenge.
struct Challenge {
  std::vector<CheckedCommitment> parties;  ///< in the order of their seeds' digests
  std::size_t cells = 0;
  std::string seed;  ///< 64 hexadecimal digits: SHA-256 over the verdict's digest and every party's seed
};

/// Handed over by a party when all commitments are out: the texts of both files.
struct Revealed {
  std::string where;       ///< of the commitment, for errors
  std::string commitment;  ///< envelope
  std::string seed;        ///< 64 hexadecimal digits; white space around them is passed over
};

/// The text of the challenge: the same bytes from the same files, in any order. Refused: what read_challenge refuses.
std::expected<std::string, InputError> challenge_text(const std::vector<Revealed>& revealed,
                                                      const dossier::TrustPolicy& policy, const DrawnRun& run,
                                                      dossier::Moment now);

/// Reads a challenge and checks every commitment. Refused as well, by the name of the rule: draw_parties, fewer than
/// two, or two of one party; draw_seed, a seed is not the one committed to; draw_cells, the parties name different
/// numbers of cells; draw_others, a party gave its seed away while it held commitments to other seeds than these, or
/// does not say which: a party that commits again after it saw a seed chooses the cells. Refused also: bytes that
/// challenge_text would not write.
std::expected<Challenge, InputError> read_challenge(std::string_view text, const std::string& where,
                                                    const dossier::TrustPolicy& policy, const DrawnRun& run,
                                                    dossier::Moment now);

/// Whether the figures of a cell were judged: an inconclusive one may have been measured under other load.
bool is_judged(const judge::Result& result);

/// Draws `count` cells of those that the plan measures and of which the verdict has a figure that was judged: a SHA-256
/// over the seed and the cell's name puts them in an order, and the first are drawn. All if there are fewer. Figures of
/// meters are left out, which are of a whole site under load. In the order in which they were drawn.
std::vector<plan::DrawnCell> draw_cells(const plan::Plan& plan, const judge::Verdict& verdict, const std::string& seed,
                                        std::size_t count);

/// The plan that measures `cells` of `plan` again, with the same probes, parameters and number of attempts; `seed` is
/// its challenge. Errors: no cell; as by make_plan.
std::expected<plan::Plan, InputError> drawn_plan(const plan::Plan& plan, const std::vector<plan::DrawnCell>& cells,
                                                 const std::string& seed);

}  // namespace assay::spot_check
