// storage_run: the repetitions of storage_cluster, from its parameters to its record.
#pragma once

#include "probes/core/parameters.h"
#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "probes/core/rendezvous.h"

namespace assay::cluster_storage {

/// Throws BadParameter for a parameter of storage_cluster that is out of its range, on `world` ranks.
void check_storage(const Parameters& given, int world);

/// How long one rank may be later than another in an exchange: a client that is slow in the wear-out is waited for, one
/// that is gone is not.
Seconds storage_patience(const Parameters& given);

/// All repetitions; rank 0 records the measurements, every rank its conditions. Throws Skip where nothing can be
/// measured, with the same reason on every rank.
void run_storage(const Parameters& given, Rendezvous& group, Recorder& record);

}  // namespace assay::cluster_storage
