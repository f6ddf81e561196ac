# Tests on a cluster of namespaces. They need root; where that or anything else is missing they skip and say what it is.
# An installation of its own, with made-up probes and real ones that are cheap or speak over the network.
set(cluster_probes fake_probe fake_fabric health_ports host_collective host_tcp_bandwidth host_tcp_latency host_tcp_traffic host_memory_latency
  health_inventory checkpoint_cluster storage_cluster storage_consistency storage_durability storage_ingest storage_metadata train_step fault_resume
  moe_dispatch kv_transfer crossing_refused)
set(cluster_installation ${CMAKE_BINARY_DIR}/cluster)
set(copy_stripped "")  # as an installed package is: with symbols, every node would be sent 100 MB and hold them in memory
foreach(program assay assay-node assay-report assay-fleet)
  list(APPEND copy_stripped COMMAND ${CMAKE_STRIP} -o ${cluster_installation}/bin/${program} $<TARGET_FILE:${program}>)
endforeach()
foreach(probe IN LISTS cluster_probes)
  list(APPEND copy_stripped COMMAND ${CMAKE_STRIP} -o ${cluster_installation}/libexec/assay/probes/${probe} $<TARGET_FILE:${probe}>)
endforeach()
add_custom_command(OUTPUT ${cluster_installation}/stamp
  COMMAND ${CMAKE_COMMAND} -E rm -rf ${cluster_installation}
  COMMAND ${CMAKE_COMMAND} -E make_directory ${cluster_installation}/bin ${cluster_installation}/libexec/assay/probes
  ${copy_stripped}
  COMMAND ${CMAKE_COMMAND} -E touch ${cluster_installation}/stamp
  DEPENDS assay assay-node assay-report assay-fleet ${cluster_probes})
add_custom_target(cluster_installation ALL DEPENDS ${cluster_installation}/stamp)

find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)
# Three clusters at a time, which mostly wait; each has networks of its own, and a lock for what runs one after the other. Those whose outcome
# depends on speeds have the machine for themselves. cluster.cluster is in every run; the others are in -C cluster, and those of storage, of
# training steps and of serving in -C storage and -C train.
set(one_cluster cluster resume)
set(storage_areas storage storage_probes checkpoint durability gluster ganesha rados_gateway crossing_gateway power_cut nfs_kernel local_disks)
set(train_areas train inference)
set(classes_of_fleet Fleet)  # the rest is in cluster.healthy
foreach(area cluster fleet resume ${storage_areas} ${train_areas})
  set(only_in CONFIGURATIONS cluster)
  set(labels cluster)
  set(fixture "")
  if(area STREQUAL cluster)
    set(only_in "")
  endif()
  foreach(label storage train)
    if(area IN_LIST ${label}_areas)
      set(only_in CONFIGURATIONS ${label})
      list(APPEND labels ${label})
      set(fixture FIXTURES_REQUIRED special_${label})
    endif()
  endforeach()
  set(lock other_cluster)
  if(area IN_LIST one_cluster)
    set(lock one_cluster)
  endif()
  add_test(NAME cluster.${area} COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/cluster/${area}_test.py ${classes_of_${area}} ${only_in})
  set_tests_properties(cluster.${area} PROPERTIES LABELS "${labels}" SKIP_RETURN_CODE 77 TIMEOUT 1800 RESOURCE_LOCK ${lock} COST 100 ${fixture}
    ENVIRONMENT "ASSAY_E2E=${cluster_installation};ASSAY_LYING_FS=${CMAKE_BINARY_DIR}/bin/lying_fs;ASSAY_STORAGE_PROTOCOLS=$<TARGET_FILE:storage_protocols>;ASSAY_S3_ONCE=$<TARGET_FILE:s3_once>;PYTHONDONTWRITEBYTECODE=1;PYTHONPATH=${CMAKE_CURRENT_SOURCE_DIR}/e2e")
endforeach()
# Tenants in namespaces: an opened path, a closed one and a missing control in every run; all cases, in more rounds, in -C cluster. The
# judged run is of assay itself.
foreach(rounds 2 20)
  set(only_in CONFIGURATIONS cluster)
  if(rounds EQUAL 2)
    set(only_in Crossing.test_each_leak_is_found_and_named Crossing.test_no_closed_path_is_accused_and_a_drop_is_no_refusal
      Crossing.test_a_control_that_is_not_answered_says_so)
  endif()
  add_test(NAME cluster.crossing_${rounds} COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/cluster/crossing_test.py ${only_in})
  set_tests_properties(cluster.crossing_${rounds} PROPERTIES LABELS cluster SKIP_RETURN_CODE 77 TIMEOUT 600 RESOURCE_LOCK third_cluster COST 100
    ENVIRONMENT "ASSAY_CROSSING=$<TARGET_FILE:crossing_refused>;MEMORY_RESIDUE=$<TARGET_FILE:memory_residue>;ASSAY_CROSSING_ROUNDS=${rounds};FAKE_CUDA=${CMAKE_BINARY_DIR}/tests/fakes/cuda;PYTHONDONTWRITEBYTECODE=1")
endforeach()
if(TARGET verbs_bandwidth)  # classes without sockets, over made-up libraries and a made-up device of the kernel
  add_library(fake_rdma_cm MODULE fakes/fake_rdma_cm.cpp)
  target_link_libraries(fake_rdma_cm PRIVATE assay_flags)
  foreach(what stop keys keys_20)
    set(only_in "")
    if(what STREQUAL keys_20)
      set(only_in CONFIGURATIONS cluster)
    endif()
    string(REPLACE "_20" "" file ${what})
    add_test(NAME cluster.crossing_${what} COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/cluster/crossing_${file}_test.py ${only_in})
    set_tests_properties(cluster.crossing_${what} PROPERTIES LABELS cluster SKIP_RETURN_CODE 77 TIMEOUT 300
      ENVIRONMENT "ASSAY_CROSSING_ROUNDS=$<IF:$<STREQUAL:${what},keys_20>,20,2>;ASSAY_E2E=${CMAKE_BINARY_DIR};ASSAY_CROSSING=$<TARGET_FILE:crossing_refused>;FAKE_RDMA_CM=$<TARGET_FILE:fake_rdma_cm>;FAKE_VERBS=${CMAKE_BINARY_DIR}/tests/fakes/verbs;FAKE_CUDA=${CMAKE_BINARY_DIR}/tests/fakes/cuda;PYTHONDONTWRITEBYTECODE=1;PYTHONPATH=${CMAKE_CURRENT_SOURCE_DIR}/e2e")
  endforeach()
endif()
add_test(NAME cluster.tenants COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/cluster/side_by_side.py
  tenants:Judged tenants:Swept tenants:ByHandle CONFIGURATIONS cluster)
set_tests_properties(cluster.tenants PROPERTIES LABELS cluster SKIP_RETURN_CODE 77 TIMEOUT 600 RESOURCE_LOCK other_cluster COST 100
  ENVIRONMENT "ASSAY_E2E=${cluster_installation};PYTHONDONTWRITEBYTECODE=1;PYTHONPATH=${CMAKE_CURRENT_SOURCE_DIR}/e2e")
# Each lane waits a minute: for a node that lies, and half of it for a dead one; for one that is silent, or for ssh to see that a network is cut.
add_test(NAME cluster.faults COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/cluster/side_by_side.py
  faults:Faults,faults:FullDisk faults:LyingNode CONFIGURATIONS cluster)
add_test(NAME cluster.silence COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/cluster/side_by_side.py silence:Frozen silence:CutOff
  CONFIGURATIONS cluster)
add_test(NAME cluster.speeds COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/cluster/side_by_side.py fabric:OneRailPairs
  fabric:OneRailLoss fabric:OneRailDetour collective CONFIGURATIONS cluster)
# Longer, in -C long: whole fabrics and links, and a healthy cluster again and again.
add_test(NAME cluster.fabric COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/cluster/side_by_side.py
  fabric:OneRail fabric:TwoRails,links:Links CONFIGURATIONS long)
add_test(NAME cluster.busy COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/cluster/links_test.py BusyFleet CONFIGURATIONS long)
add_test(NAME cluster.contrast COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/cluster/contrast_test.py CONFIGURATIONS long)
add_test(NAME cluster.healthy COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/cluster/fleet_test.py Healthy CONFIGURATIONS long)
set_tests_properties(cluster.faults cluster.silence cluster.speeds cluster.fabric cluster.busy cluster.contrast cluster.healthy PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 1800 COST 100
  ENVIRONMENT "ASSAY_E2E=${cluster_installation};PYTHONDONTWRITEBYTECODE=1;PYTHONPATH=${CMAKE_CURRENT_SOURCE_DIR}/e2e")
set_tests_properties(cluster.faults cluster.silence cluster.speeds PROPERTIES LABELS cluster)
set_tests_properties(cluster.fabric cluster.busy cluster.contrast cluster.healthy PROPERTIES LABELS "cluster;long")
set_tests_properties(cluster.faults cluster.silence PROPERTIES RESOURCE_LOCK one_cluster)
set_tests_properties(cluster.speeds cluster.fabric cluster.busy cluster.healthy cluster.fleet cluster.storage cluster.train cluster.inference PROPERTIES RUN_SERIAL ON)
# Open vSwitch between two namespaces, a virtual machine whose kernel encrypts, and one with emulated drives, with the build's own probes.
add_test(NAME cluster.open_vswitch COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/cluster/open_vswitch_test.py CONFIGURATIONS cluster)
add_test(NAME cluster.encryption COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/cluster/encryption_test.py CONFIGURATIONS cluster)
add_test(NAME cluster.drives_guest COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/cluster/drives_guest_test.py CONFIGURATIONS cluster)
set_tests_properties(cluster.open_vswitch cluster.encryption cluster.drives_guest PROPERTIES LABELS cluster SKIP_RETURN_CODE 77 TIMEOUT 1000 RESOURCE_LOCK third_cluster COST 100
  ENVIRONMENT "ASSAY_E2E=${CMAKE_BINARY_DIR};VIRTUAL_NETWORK=$<TARGET_FILE:virtual_network>;HOST_TCP_BANDWIDTH=$<TARGET_FILE:host_tcp_bandwidth>;PYTHONDONTWRITEBYTECODE=1;PYTHONPATH=${CMAKE_CURRENT_SOURCE_DIR}/e2e")
add_test(NAME cluster.crossing_rdma COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/cluster/rdma_crossing_test.py CONFIGURATIONS softroce)
set_tests_properties(cluster.crossing_rdma PROPERTIES LABELS softroce SKIP_RETURN_CODE 77 TIMEOUT 1000
  ENVIRONMENT "ASSAY_E2E=${CMAKE_BINARY_DIR};ASSAY_CROSSING=$<TARGET_FILE:crossing_refused>;ASSAY_CROSSING_ROUNDS=20;PYTHONDONTWRITEBYTECODE=1;PYTHONPATH=${CMAKE_CURRENT_SOURCE_DIR}/e2e")
# A load of several nodes, with the build's own programs; a minute.
add_test(NAME cluster.load COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/cluster/load_test.py CONFIGURATIONS meters)
set_tests_properties(cluster.load PROPERTIES LABELS "cluster;meters" SKIP_RETURN_CODE 77 TIMEOUT 600 RESOURCE_LOCK other_cluster
  ENVIRONMENT "ASSAY_E2E=${CMAKE_BINARY_DIR};PYTHONDONTWRITEBYTECODE=1;PYTHONPATH=${CMAKE_CURRENT_SOURCE_DIR}/e2e")
