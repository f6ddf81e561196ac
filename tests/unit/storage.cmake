add_executable(fake_fio fakes/fake_fio.cpp)
target_link_libraries(fake_fio PRIVATE assay_flags)
set_target_properties(fake_fio PROPERTIES OUTPUT_NAME fio RUNTIME_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/fakes/fio)

add_executable(unit_storage unit/storage/fio_output_test.cpp unit/storage/fio_test.cpp unit/workloads/checkpoint_test.cpp)
target_link_libraries(unit_storage PRIVATE assay_fio assay_checkpoint GTest::gtest_main)
target_compile_definitions(unit_storage PRIVATE ASSAY_GOLDEN="${CMAKE_CURRENT_SOURCE_DIR}/golden"
  ASSAY_FAKES="${CMAKE_CURRENT_BINARY_DIR}/fakes/fio"
  ASSAY_STORAGE_BANDWIDTH="$<TARGET_FILE:storage_bandwidth>")
add_dependencies(unit_storage fake_fio storage_bandwidth)
# A directory of their own, because a test checks that nothing is left behind; a lock, because they share it.
file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/unit_storage)
gtest_discover_tests(unit_storage WORKING_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/unit_storage
  PROPERTIES LABELS unit RESOURCE_LOCK unit_storage_directory)

# Probes of a storage that several nodes share, as processes on this machine.
foreach(probe cluster metadata consistency ingest)
  add_executable(unit_storage_${probe})
  target_link_libraries(unit_storage_${probe} PRIVATE assay_storage_cluster GTest::gtest_main)
  string(TOUPPER ${probe} upper)
  target_compile_definitions(unit_storage_${probe} PRIVATE ASSAY_STORAGE_${upper}="$<TARGET_FILE:storage_${probe}>")
  add_dependencies(unit_storage_${probe} storage_${probe})
  file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/unit_storage_${probe})
  gtest_discover_tests(unit_storage_${probe} WORKING_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/unit_storage_${probe} PROPERTIES LABELS unit)
endforeach()
target_sources(unit_storage_cluster PRIVATE unit/workloads/storage_cluster_test.cpp unit/workloads/storage_cluster_process_test.cpp)
target_sources(unit_storage_metadata PRIVATE unit/workloads/storage_metadata_test.cpp)
target_sources(unit_storage_ingest PRIVATE unit/workloads/ingest_plan_test.cpp unit/workloads/storage_ingest_test.cpp)

# A file system in user space that lies; where it cannot be mounted its tests say so and skip.
find_path(ASSAY_FUSE_INCLUDE fuse3/fuse.h REQUIRED)
find_library(ASSAY_FUSE NAMES fuse3 REQUIRED)
add_executable(lying_fs fakes/lying_fs.cpp)
target_include_directories(lying_fs SYSTEM PRIVATE ${ASSAY_FUSE_INCLUDE} ${ASSAY_FUSE_INCLUDE}/fuse3)
target_compile_definitions(lying_fs PRIVATE _FILE_OFFSET_BITS=64)
target_link_libraries(lying_fs PRIVATE assay_flags ${ASSAY_FUSE})
# A client of NFS for `ctest -C storage`, where libnfs-dev is installed.
find_library(ASSAY_NFS NAMES nfs)
if(ASSAY_NFS)
  add_executable(nfs_fs fakes/nfs_fs.cpp)
  target_include_directories(nfs_fs SYSTEM PRIVATE ${ASSAY_FUSE_INCLUDE} ${ASSAY_FUSE_INCLUDE}/fuse3)
  target_compile_definitions(nfs_fs PRIVATE _FILE_OFFSET_BITS=64)
  target_link_libraries(nfs_fs PRIVATE assay_flags ${ASSAY_FUSE} ${ASSAY_NFS})
endif()
target_sources(unit_storage_consistency PRIVATE unit/workloads/consistency_look_test.cpp unit/workloads/storage_consistency_test.cpp)
target_compile_definitions(unit_storage_consistency PRIVATE ASSAY_LYING_FS="$<TARGET_FILE:lying_fs>"
  ASSAY_STORAGE_METADATA="$<TARGET_FILE:storage_metadata>")
add_dependencies(unit_storage_consistency lying_fs storage_metadata)

# A checkpoint of several nodes, as processes on this machine.
add_executable(unit_checkpoint_cluster unit/workloads/checkpoint_layout_test.cpp unit/workloads/checkpoint_cluster_test.cpp)
target_link_libraries(unit_checkpoint_cluster PRIVATE assay_cluster_checkpoint GTest::gtest_main)
target_compile_definitions(unit_checkpoint_cluster PRIVATE ASSAY_CHECKPOINT_CLUSTER="$<TARGET_FILE:checkpoint_cluster>"
  ASSAY_PROBES_JSON="${CMAKE_SOURCE_DIR}/profiles/probes.json")
add_dependencies(unit_checkpoint_cluster checkpoint_cluster)
file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/unit_checkpoint_cluster)
gtest_discover_tests(unit_checkpoint_cluster WORKING_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/unit_checkpoint_cluster PROPERTIES LABELS unit)

# What a storage acknowledged before its server was killed.
add_executable(unit_storage_durability unit/workloads/durable_block_test.cpp unit/workloads/storage_durability_test.cpp)
target_link_libraries(unit_storage_durability PRIVATE assay_durability GTest::gtest_main)
target_compile_definitions(unit_storage_durability PRIVATE ASSAY_LYING_FS="$<TARGET_FILE:lying_fs>"
  ASSAY_STORAGE_DURABILITY="$<TARGET_FILE:storage_durability>")
add_dependencies(unit_storage_durability lying_fs storage_durability)
file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/unit_storage_durability)
gtest_discover_tests(unit_storage_durability WORKING_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/unit_storage_durability PROPERTIES LABELS unit)

# Signatures of S3, against those that AWS published.
add_executable(unit_storage_protocols unit/workloads/s3_signature_test.cpp)
target_link_libraries(unit_storage_protocols PRIVATE assay_protocols GTest::gtest_main)
gtest_discover_tests(unit_storage_protocols PROPERTIES LABELS unit)
# The client of S3 by itself, for `ctest -C storage` beside s3cmd and rclone.
add_executable(s3_once fakes/s3_once.cpp)
target_link_libraries(s3_once PRIVATE assay_protocols)
