// perftest_run: operation, direction and coordinates of a run of perftest, by its title and command; shared by the text
// and the JSON form.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "orchestrator/import/reading.h"

namespace assay::imports {

/// Operation and direction by the title: "RDMA_Write Bidirectional BW Test".
struct PerftestRun {
  std::string verb;
  bool bandwidth = false;
  bool both_directions = false;
};

/// The run of a title, with blanks or underscores; nothing for another text.
std::optional<PerftestRun> perftest_run_of(std::string title);

/// Whether `command` has an option: its letter, also among others ("-ab"), or its name, which may be shortened as
/// getopt_long takes it.
bool has_perftest_option(std::string_view command, char letter, std::string_view name);

/// Options that change figures are looked for in the command. Refused: a command that cannot have made this output.
void check_perftest_command(std::string_view command, const PerftestRun& test, const std::string& where);

/// The coordinates of the figures of one size in B. Write and send ping-pong and say half the round trip; read and
/// atomic say all of it. The facts may have the names of either form.
Values perftest_coordinates(const judge::ImportSource& source, const PerftestRun& test, std::int64_t size);

}  // namespace assay::imports
