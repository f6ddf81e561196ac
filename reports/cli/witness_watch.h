// witness_watch: heads of a journal at intervals, as long as its run goes on.
#pragma once

#include <string>

#include "probes/core/units.h"
#include "reports/dossier/signer.h"

namespace assay::report_cli {

/// What a witness watches.
struct WatchRequest {
  std::string journal;  ///< file
  std::string folder;   ///< for 0001.head and the following; made where it is missing
  Seconds every;        ///< between two looks at the journal
  Seconds patience;     ///< the watch ends when the journal has not grown for so long
};

/// Signs a head whenever the journal has grown, until its run has ended, a signal comes (SIGINT, SIGTERM) or the
/// patience is over, and prints one line for each. The exit code: 0 the run has ended; 3 the watch ended before;
/// refused, and said at once: the journal lost or changed a line that was witnessed, or is gone.
int watch_journal(const WatchRequest& request, const dossier::Signer& key);

}  // namespace assay::report_cli
