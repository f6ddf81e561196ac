# A real Slurm on the cluster of namespaces, with the installation of cluster.cmake; it skips, and says why, where Slurm is
# not installed or no namespaces are to be had.
find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)
add_test(NAME cluster.slurm COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/cluster/side_by_side.py
  slurm:Healthy,slurm:DeadSlurmd slurm:DeadNode CONFIGURATIONS cluster)
set_tests_properties(cluster.slurm PROPERTIES LABELS cluster SKIP_RETURN_CODE 77 TIMEOUT 1800 RESOURCE_LOCK other_cluster COST 100
  ENVIRONMENT "ASSAY_E2E=${cluster_installation};PYTHONDONTWRITEBYTECODE=1;PYTHONPATH=${CMAKE_CURRENT_SOURCE_DIR}/e2e")
