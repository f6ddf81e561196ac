// host_configuration_spec: the metrics and conditions of host_configuration, each with its file.
#pragma once

#include "probes/core/probe.h"

namespace assay::health {

/// A figure that no load changes.
constexpr Metric configured(Metric metric) {
  metric.course = Course::fixed;
  metric.recorded = Recorded::if_reported;
  return metric;
}

inline constexpr Metric kConfigurationMetrics[] = {
    configured(lower("acs_ports", "1",
                     "root ports and switch ports above GPUs and RDMA ports with a bit of ACS Control set; of "
                     "sys/bus/pci/devices/*/config (root), where all of them were readable")),
    configured(lower("relaxed_ordering_off", "1",
                     "GPUs and RDMA functions that may not use relaxed ordering; of Device Control in their config "
                     "(root), where all of them were readable")),
    configured(higher("max_read_request_least", "B",
                      "smallest Max_Read_Request_Size of the GPUs and RDMA functions; of the same register")),
    configured(higher("max_payload_least", "B",
                      "smallest Max_Payload_Size of the GPUs and RDMA functions; of the same register")),
    configured(lower("max_payload_unlike", "1",
                     "GPUs and RDMA functions with another Max_Payload_Size than a port above them; of the same "
                     "register of both")),
    configured(neither("config_spaces_unread", "1",
                       "GPUs, RDMA functions and ports above them whose config did not show all of this")),
    configured(lower("hcas_farther", "1",
                     "GPUs whose HCA by hca_filter is farther away than the nearest one with a link, where ways are "
                     "known")),
    configured(neither("huge_pages_reserved", "B",
                       "memory in reserved huge pages of all sizes; of sys/kernel/mm/hugepages/*/nr_hugepages")),
};

inline constexpr ConditionSpec kConfigurationConditions[] = {
    if_reported("kernel", "release of the running kernel; of proc/sys/kernel/osrelease"),
    if_reported(
        "iommu_mode",
        "off, passthrough, translated, or mixed: domain of the IOMMU groups of GPUs and RDMA functions, or of all "
        "if there are none; of sys/class/iommu, sys/kernel/iommu_groups/*/type, and proc/cmdline on a kernel that "
        "shows no type. A guest sees only its own IOMMU"),
    if_reported("iommu_parameters", "words on IOMMUs in proc/cmdline, or none"),
    if_reported(
        "acs",
        "on if a root port or switch port above a GPU or RDMA port has a bit of ACS Control set, off if none has; "
        "of their config (root)"),
    if_reported("acs_on", "those ports with the bits, as lspci names them; of their config"),
    if_reported("relaxed_ordering", "whether a gpu or nic may use relaxed ordering; of Device Control in its config"),
    if_reported("max_read_request", "Max_Read_Request_Size of a gpu or nic in bytes; of the same register"),
    if_reported("max_payload", "Max_Payload_Size of a gpu or nic in bytes; of the same register"),
    if_reported("max_payload_path", "unlike sizes from a gpu or nic up to its root port"),
    if_reported("numa_balancing", "0 off, 1 on, 2 between tiers, 3 both; of proc/sys/kernel/numa_balancing"),
    if_reported("transparent_huge_pages", "mode in force; of sys/kernel/mm/transparent_hugepage/enabled"),
    if_reported("transparent_huge_pages_defrag", "mode in force; of sys/kernel/mm/transparent_hugepage/defrag"),
    if_reported("page_size", "base page in bytes; of KernelPageSize in proc/self/smaps"),
    if_reported("c_state_deepest",
                "idle state of the longest exit latency that a CPU may enter: not switched off, and within "
                "dev/cpu_dma_latency (root); of sys/devices/system/cpu/cpu*/cpuidle"),
    if_reported("c_state_exit_latency_s", "its exit latency; of the same"),
    if_reported("governor",
                "policy of the clocks, with counts where policies differ; of "
                "sys/devices/system/cpu/cpufreq/*/scaling_governor"),
    if_reported("smt", "whether cores run several threads; of sys/devices/system/cpu/smt/active"),
    if_reported("clock_source", "of sys/devices/system/clocksource/clocksource0/current_clocksource"),
    if_reported("mitigations", "state of every known weakness; of sys/devices/system/cpu/vulnerabilities"),
    if_reported("memlock_unlimited",
                "whether the probe's process, as the launcher started it, may lock all memory; of proc/self/limits"),
    if_reported("memlock_limit", "bytes that it may lock, if limited; of the same"),
    if_reported("open_files_limit", "files that it may have open; of the same"),
    if_reported("nvidia_version", "of sys/module/nvidia/version"),
    if_reported("nvidia_parameters", "of proc/driver/nvidia/params"),
    if_reported("nvidia_open_module", "whether it is the open kernel module; of proc/driver/nvidia/version"),
    if_reported("nvidia_peermem_loaded", "whether sys/module has nvidia_peermem"),
    if_reported("nvidia_peermem_version", "of sys/module/nvidia_peermem/version"),
    if_reported("nvidia_peermem_parameters", "of sys/module/nvidia_peermem/parameters"),
    if_reported("mlx5_core_version", "of sys/module/mlx5_core/version; the kernel's own module has none"),
    if_reported("mlx5_core_parameters", "of sys/module/mlx5_core/parameters"),
    if_reported("ib_core_version", "of sys/module/ib_core/version; the kernel's own module has none"),
    if_reported("ib_core_parameters", "of sys/module/ib_core/parameters"),
    if_reported("rdma_cm_version", "of sys/module/rdma_cm/version; the kernel's own module has none"),
    if_reported("rdma_cm_parameters", "of sys/module/rdma_cm/parameters"),
    if_present("persistence_mode", "whether a gpu's driver stays loaded; of NVML"),
    if_reported("package_database", "dpkg (var/lib/dpkg/status) or rpm (/usr/bin/rpm -q): where the next are read"),
    if_present("containerd_version", "of package containerd.io or containerd"),
    if_present("docker_version", "of package docker-ce, docker.io or moby-engine"),
    if_present("podman_version", "of package podman"),
    if_present("cri_o_version", "of package cri-o"),
    if_present("enroot_version", "of package enroot"),
    if_present("apptainer_version", "of package apptainer"),
    if_present("singularity_version", "of package singularity-ce"),
    if_present(
        "nvidia_container_toolkit_version",
        "of package nvidia-container-toolkit; one that an operator put on the node without a package is not seen"),
    if_present("libnvidia_container_version", "of package libnvidia-container1"),
    if_reported(
        "firmware",
        "version of the firmware of a nic with RDMA; of sys/class/infiniband/*/fw_ver, else of ETHTOOL_GDRVINFO"),
    if_reported(
        "pfc_priorities",
        "priorities with flow control of a nic with RDMA over Ethernet, or none; of DCB_CMD_IEEE_GET (rtnetlink)"),
    if_reported("dscp_priorities", "its priorities by DSCP, as \"26:3\"; of the same"),
    if_reported("ecn_notification_priorities",
                "priorities on which it answers marked packets, or none; of sys/class/net/*/ecn/roce_np/enable"),
    if_reported("ecn_reaction_priorities",
                "priorities on which it slows down, or none; of sys/class/net/*/ecn/roce_rp/enable"),
    if_reported("traffic_class", "class of all its RDMA; of sys/class/infiniband/*/tc/1/traffic_class"),
    if_reported("traffic_class_lossless", "whether the priority of that class has flow control; of the three above"),
    if_reported("traffic_class_ecn",
                "whether both directions of ECN are on for that priority; of the same and the two above"),
    if_present("hca_filter", "NCCL_IB_HCA, and whether parameter, environment, etc/nccl.conf or nothing set it"),
    if_reported("hcas", "HCAs with a link that the filter leaves; of sys/class/infiniband/*/ports/*/state"),
    if_reported("hca", "nearest of them to a gpu; of sys/bus/pci/devices"),
    if_reported("hca_distance",
                "same_switch (below one root port), same_root (below one host bridge), same_numa_node or "
                "other_numa_node: the way to it; of both routes in sys/devices, and of numa_node"),
};

}  // namespace assay::health
