// import: another tool's output, as bytes, to an import. Pure; one file per tool reads that tool's forms.
#pragma once

#include <array>
#include <expected>
#include <string>
#include <string_view>

#include "orchestrator/judge/evidence/imported.h"

namespace assay::imports {

class Figures;

/// The tools whose output can be imported, in the order of the help.
inline constexpr std::array<std::string_view, 25> kImportTools = {"nccl-tests",
                                                                  "rccl-tests",
                                                                  "perftest",
                                                                  "nvbandwidth",
                                                                  "fio",
                                                                  "osu",
                                                                  "dcgm",
                                                                  "mlperf-storage",
                                                                  "mlperf-training",
                                                                  "elbencho",
                                                                  "ior",
                                                                  "energy-table",
                                                                  "iblinkinfo",
                                                                  "mlxlink",
                                                                  "ibdiagnet",
                                                                  "transferbench",
                                                                  "rocm-bandwidth-test",
                                                                  "rvs",
                                                                  "amd-smi",
                                                                  "hccl-test",
                                                                  "ascend-dmi",
                                                                  "nixlbench",
                                                                  "doca-bench",
                                                                  "tpu",
                                                                  "sadf"};

/// Input of an import: the tool's name, the bytes, the path for errors, and the command that was run, for outputs that
/// do not say it themselves; empty if it is unknown.
struct ImportRequest {
  std::string tool;
  std::string_view bytes;
  std::string path;
  std::string command;
};

/// Every figure of one output in base units. Refused, with the place and a hint: a line or field that is not
/// understood, an output that is truncated or reports a failure of the tool, a figure without a unit, an output without
/// a figure. Figures that the tool marks as absent, wrong or not checked are left out with the reason and never become
/// a number.
std::expected<judge::Import, InputError> import_output(const ImportRequest& request);

/// The readers behind it: each fills version, command, form and facts of `source`, and `figures`. They throw
/// ImportRefusal.
void read_nccl_tests_text(std::string_view text, judge::ImportSource& source, Figures& figures);
void read_nccl_tests_json(std::string_view text, judge::ImportSource& source, Figures& figures);
void read_perftest_text(std::string_view text, judge::ImportSource& source, Figures& figures);
void read_perftest_json(std::string_view text, judge::ImportSource& source, Figures& figures);
void read_nvbandwidth(std::string_view text, judge::ImportSource& source, Figures& figures);
void read_fio(std::string_view text, judge::ImportSource& source, Figures& figures);
void read_osu(std::string_view text, judge::ImportSource& source, Figures& figures);
void read_dcgm(std::string_view text, judge::ImportSource& source, Figures& figures);
void read_mlperf_storage(std::string_view text, judge::ImportSource& source, Figures& figures);
void read_mlperf_training(std::string_view text, judge::ImportSource& source, Figures& figures);
void read_elbencho(std::string_view text, judge::ImportSource& source, Figures& figures);
void read_elbencho_json(std::string_view text, judge::ImportSource& source, Figures& figures);
void read_ior(std::string_view text, judge::ImportSource& source, Figures& figures);
void read_iblinkinfo(std::string_view text, judge::ImportSource& source, Figures& figures);
void read_mlxlink_text(std::string_view text, judge::ImportSource& source, Figures& figures);
void read_mlxlink_json(std::string_view text, judge::ImportSource& source, Figures& figures);
void read_ibdiagnet(std::string_view text, judge::ImportSource& source, Figures& figures);
void read_transferbench(std::string_view text, judge::ImportSource& source, Figures& figures);
void read_rocm_bandwidth_test(std::string_view text, judge::ImportSource& source, Figures& figures);
void read_rvs(std::string_view text, judge::ImportSource& source, Figures& figures);
void read_amd_smi(std::string_view text, judge::ImportSource& source, Figures& figures);
void read_hccl_test(std::string_view text, judge::ImportSource& source, Figures& figures);
void read_ascend_dmi(std::string_view text, judge::ImportSource& source, Figures& figures);
void read_ascend_dmi_json(std::string_view text, judge::ImportSource& source, Figures& figures);
void read_doca_bench(std::string_view text, judge::ImportSource& source, Figures& figures);
void read_nixlbench(std::string_view text, judge::ImportSource& source, Figures& figures);
void read_sadf(std::string_view text, judge::ImportSource& source, Figures& figures);
void read_tpu(std::string_view text, judge::ImportSource& source, Figures& figures);
void read_energy_table(std::string_view text, judge::ImportSource& source, Figures& figures);

/// The operation of our own words that an nccl-tests program measures: "/opt/all_reduce_perf_mpi" is "all_reduce",
/// "alltoall_perf" "all_to_all". Empty if `program` is none of theirs.
std::string operation_of(std::string_view program);

/// Adds a condition where NCCL_TESTS_SPLIT divided the ranks into groups, each with a collective of its own.
void take_nccl_groups(std::size_t groups, Values& at);

/// Adds the conditions that options of nccl-tests make and that its output does not show: -a, which rank's time it is,
/// -D, another implementation than NCCL's, and of rccl-tests -Y, -u, -E and -F.
void take_nccl_options(std::string_view command, Values& at);

}  // namespace assay::imports
