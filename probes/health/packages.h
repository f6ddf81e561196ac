// packages: versions of container runtimes and toolkits, from the database of the distribution's packages.
#pragma once

#include "probes/core/record.h"

namespace assay {
class MachineTree;
}  // namespace assay

namespace assay::health {

/// Conditions of host_configuration: package_database ("dpkg" or "rpm") and `…_version` of what it has installed, as
/// upstream counts: without the epoch and the revision of the distribution. No runtime is started: its program may be
/// anybody's. dpkg's database is read; rpm's, which has no documented form, is asked by the system's own rpm, if it is
/// root's and nobody else may write it, within 10 s, and only on this machine.
Values package_versions(const MachineTree& tree);

}  // namespace assay::health
