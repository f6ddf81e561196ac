// drawn: the cells that follow from a dossier and a seed, and the plan that measures them again.
#pragma once

#include <cstddef>
#include <expected>
#include <string>
#include <vector>

#include "orchestrator/judge/verdict.h"
#include "orchestrator/plan/plan.h"

namespace assay::spot_check {

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
