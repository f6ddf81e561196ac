# Three nights through a real Slurm on the cluster of namespaces, and sweeps and drains that are killed.
find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)
add_test(NAME cluster.nightly COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/cluster/nightly_test.py CONFIGURATIONS cluster)
add_test(NAME cluster.sweep_pairs COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/cluster/sweep_pairs_test.py CONFIGURATIONS long)
add_test(NAME cluster.nightly_kill COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/e2e/nightly_kill_test.py CONFIGURATIONS long)
set_tests_properties(cluster.nightly cluster.sweep_pairs cluster.nightly_kill PROPERTIES LABELS cluster SKIP_RETURN_CODE 77 TIMEOUT 1800 COST 100
  ENVIRONMENT "ASSAY_E2E=${cluster_installation};PYTHONDONTWRITEBYTECODE=1;PYTHONPATH=${CMAKE_CURRENT_SOURCE_DIR}/e2e")
set_tests_properties(cluster.sweep_pairs cluster.nightly_kill PROPERTIES LABELS "cluster;long")  # minutes: -C long
set_tests_properties(cluster.nightly cluster.nightly_kill PROPERTIES RESOURCE_LOCK other_cluster)
set_tests_properties(cluster.sweep_pairs PROPERTIES RESOURCE_LOCK one_cluster)
