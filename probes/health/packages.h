// packages: versions of container runtimes and toolkits, from the database of the distribution's packages.
#pragma once

#include "probes/core/record.h"

namespace assay {
class MachineTree;
}  // namespace assay

namespace assay::health {

/// Conditions of host_configuration: package_database ("dpkg" or "rpm") and a version of each package that it has
/// installed, as upstream counts: without the epoch and the revision of the distribution. No runtime is started, since
/// its program could belong to any user. dpkg's database is read. rpm's has no documented form: the system's own rpm is
/// asked, if only root may write it, within 10 s, and only on this machine.
Values package_versions(const MachineTree& tree);

}  // namespace assay::health
