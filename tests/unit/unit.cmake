# Unit tests: one program for the tests of several rooms. A source file costs the compiler seconds before its first line, and a program
# as much again; so rooms share programs, and a release compiles their files together.
configure_file(unit/paths.cpp.in unit/paths.cpp @ONLY)
add_library(unit_paths STATIC ${CMAKE_CURRENT_BINARY_DIR}/unit/paths.cpp)
target_link_libraries(unit_paths PUBLIC assay_flags)

# A run without running anything; make_run writes one for end-to-end tests.
add_library(run_fixture STATIC unit/run_fixture.cpp)
target_link_libraries(run_fixture PUBLIC assay_judge)
add_executable(make_run unit/make_run.cpp)
target_link_libraries(make_run PRIVATE run_fixture)
product_first(make_run)

# main of unit programs: GoogleTest's, and exit code 77 where a case was skipped and none failed, so that CTest shows the skip.
add_library(unit_main STATIC unit/main.cpp)
target_link_libraries(unit_main PUBLIC assay_flags GTest::gtest)

# What needs a program that this build leaves out.
set(absent "^$")
if(NOT TARGET verbs_bandwidth)
  string(APPEND absent "|verbs_process|verbs_gpu|peer_verbs|rack_process|roce")
endif()
if(NOT TARGET nccl_collective)
  string(APPEND absent "|nccl_process|cuda_train_step_process")
endif()
if(NOT ASSAY_WITH_CUDA)
  string(APPEND absent "|cuda_gemm_process|quantise")
endif()

# unit_program(NAME FILES pattern... [WITHOUT regex] [LIBRARIES library...] [STARTS program...]): unit_NAME of the files
# unit/<pattern>_test.cpp, without those that `regex` finds. It starts the programs named, where this build has them.
function(unit_program name)
  cmake_parse_arguments(unit "" "WITHOUT" "FILES;LIBRARIES;STARTS" ${ARGN})
  list(TRANSFORM unit_FILES PREPEND unit/)
  list(TRANSFORM unit_FILES APPEND _test.cpp)
  file(GLOB sources CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} ${unit_FILES})
  if(unit_WITHOUT)
    list(FILTER sources EXCLUDE REGEX "${unit_WITHOUT}")
  endif()
  set_property(GLOBAL APPEND PROPERTY ASSAY_UNIT_SOURCES ${sources})
  list(FILTER sources EXCLUDE REGEX "${absent}")
  add_executable(unit_${name} ${sources})
  target_link_libraries(unit_${name} PRIVATE ${unit_LIBRARIES} unit_paths unit_main)
  product_first(unit_${name})
  foreach(program IN LISTS unit_STARTS)
    if(TARGET ${program})
      add_dependencies(unit_${name} ${program})
    endif()
  endforeach()
endfunction()

# What starts no program, in files that do not end in _process_test.cpp.
find_package(Gloo CONFIG REQUIRED)  # probes/gloo says which package it is
unit_program(core FILES core/* files/* wire/* host/* cuda/* WITHOUT "rendezvous|json_readers|process_test"
  LIBRARIES assay_wire assay_files assay_rack assay_tcp STARTS fake_library)
if(ASSAY_WITH_CUDA)  # NVIDIA's headers on the host
  target_link_libraries(unit_core PRIVATE CUDA::cudart_static)
endif()
unit_program(plan FILES site/* plan/* run/* formats/* import/* LIBRARIES assay_run assay_import)
unit_program(judge FILES judge/* simulate/* meters/* LIBRARIES assay_simulate assay_meters)
unit_program(nightly FILES sweep/* drain/* drift/* history/* nightly/*
  LIBRARIES assay_nightly assay_sweep assay_drain assay_rehearse assay_simulate run_fixture)
unit_program(reports FILES dossier/* page/* figures/* compare/* exports/* requirements/* commons/* core/json_readers
  LIBRARIES assay_commons assay_requirements assay_exports assay_compare assay_spot_check assay_import assay_launch assay_fio run_fixture)
unit_program(train FILES train/* train_gpu/* inference/* WITHOUT "process_test|fault_cases|stopped_anywhere"
  LIBRARIES assay_train_device assay_train_wire assay_inference_wire assay_decode assay_kv assay_openblas gloo
  STARTS fake_cudnn old_cudnn fake_compiling_driver)
target_compile_options(unit_train PRIVATE -O1)  # its training steps on the host took most of the time of the program
target_sources(unit_train PRIVATE ${PROJECT_SOURCE_DIR}/workloads/inference/moe_record.cpp
  ${PROJECT_SOURCE_DIR}/workloads/inference/moe_run.cpp)
# They define the words of CUDA for themselves alone, do not know nvcc's pragmas, and jump between stacks.
set_source_files_properties(unit/inference/decode_device_test.cpp unit/train_gpu/cast_kernels_test.cpp
  PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON
  COMPILE_OPTIONS "-O2;-Wno-unknown-pragmas;-Wno-clobbered;-U_FORTIFY_SOURCE")
if(ASSAY_WITH_CUDA)  # headers of cuDNN and NCCL, where they lie beside CUDA's
  list(TRANSFORM CUDAToolkit_INCLUDE_DIRS PREPEND "-isystem" OUTPUT_VARIABLE cuda_headers)
  set_source_files_properties(unit/train_gpu/cudnn_values_test.cpp unit/nccl/nccl_api_test.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON
    COMPILE_OPTIONS "${cuda_headers}")
endif()
unit_program(launch FILES launch/* core/rendezvous* LIBRARIES assay_launch)

# What starts programs of this build.
get_property(every_probe GLOBAL PROPERTY ASSAY_PROBES)
unit_program(storage FILES storage/* workloads/* LIBRARIES assay_fio assay_crossing assay_durability
  STARTS fake_fio lying_fs fake_verbs fake_cuda memory_residue storage_bandwidth storage_cluster storage_metadata storage_consistency storage_ingest
  storage_durability checkpoint checkpoint_cluster)
unit_program(processes FILES amd/* gloo/* nccl/* nvml/* power/* health/* verbs/* host/*_process cuda/*_process train/*_process
  train_gpu/*_process inference/*_process
  LIBRARIES assay_amd_smi assay_gloo_facts assay_nccl assay_verbs_facts power_steps
  assay_run assay_train_plan assay_inference
  STARTS ${every_probe} fake_rank fake_nvml fake_amd_smi_26 fake_amd_smi_25 fake_amdhip64 fake_hiprtc fake_hipblaslt fake_rccl
  fake_cuda fake_verbs_without_dmabuf fake_cuda_without_dmabuf old_verbs old_cuda)
target_sources(unit_processes PRIVATE ${PROJECT_SOURCE_DIR}/probes/gloo/rank_check.cpp)
if(ASSAY_WITH_CUDA)
  set_source_files_properties(${CMAKE_CURRENT_SOURCE_DIR}/unit/amd/amd_absent_test.cpp TARGET_DIRECTORY unit_processes
    PROPERTIES COMPILE_DEFINITIONS HIP_OVER_CUDA)
endif()
unit_program(profiles FILES profiles/* LIBRARIES assay_simulate STARTS ${every_probe})

# unit_suites(NAME [AREA area] [FILTER filter] [FOLDER folder] [COST cost]): a test for each suite of unit_NAME, named area.suite, by
# suites.cmake; those of the highest cost begin first.
# A process for each case took as long to start as most cases take, and made anew what the cases of a suite share.
function(unit_suites name)
  cmake_parse_arguments(suites "" "AREA;FILTER;FOLDER;COST" "" ${ARGN})
  foreach(default "AREA ${name}" "FILTER *" "FOLDER ${CMAKE_CURRENT_BINARY_DIR}" "COST 1")
    string(REGEX MATCH "^([A-Z]+) (.*)" default "${default}")
    if(NOT suites_${CMAKE_MATCH_1})
      set(suites_${CMAKE_MATCH_1} ${CMAKE_MATCH_2})
    endif()
  endforeach()
  file(MAKE_DIRECTORY ${suites_FOLDER})
  set(file ${CMAKE_CURRENT_BINARY_DIR}/unit/suites_${suites_AREA}.cmake)
  add_custom_command(TARGET unit_${name} POST_BUILD BYPRODUCTS ${file} VERBATIM
    COMMAND ${CMAKE_COMMAND} -D AREA=${suites_AREA} -D PROGRAM=$<TARGET_FILE:unit_${name}> -D FILTER=${suites_FILTER} -D FILE=${file}
      -D "PROPERTIES=LABELS unit SKIP_RETURN_CODE 77 TIMEOUT 900 COST ${suites_COST} WORKING_DIRECTORY [=[${suites_FOLDER}]=]"
      -P ${CMAKE_CURRENT_SOURCE_DIR}/suites.cmake)
  file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/unit/include_${suites_AREA}.cmake "if(EXISTS [=[${file}]=])\n  include([=[${file}]=])\n"
    "else()\n  add_test(unit_${name}_NOT_BUILT unit_${name}_NOT_BUILT)\nendif()\n")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${CMAKE_CURRENT_BINARY_DIR}/unit/include_${suites_AREA}.cmake)
endfunction()
foreach(name core plan judge nightly reports train launch)
  unit_suites(${name})
endforeach()
unit_suites(processes COST 30)
unit_suites(profiles COST 60)
# In directories of their own, because a test checks that nothing is left behind.
unit_suites(storage COST 30 FILTER -fake_fio.* FOLDER ${CMAKE_CURRENT_BINARY_DIR}/unit_storage)
unit_suites(storage AREA fake_fio FILTER fake_fio.* FOLDER ${CMAKE_CURRENT_BINARY_DIR}/unit_fake_fio)

# The default suite simulates every profile on eight nodes.
add_test(NAME fleets_of_sixteen COMMAND unit_profiles --gtest_filter=shipped/Simulated* CONFIGURATIONS cluster)
set_tests_properties(fleets_of_sixteen PROPERTIES LABELS cluster TIMEOUT 1200 COST 100 ENVIRONMENT ASSAY_FLEET_NODES=16)
# And racks of six and eight trays.
add_test(NAME simulated_rack_of_72 COMMAND unit_judge --gtest_filter=simulate.a_healthy_rack* CONFIGURATIONS cluster)
set(racks simulated_rack_of_72)
if(TARGET verbs_bandwidth)
  add_test(NAME rack_of_72 COMMAND unit_processes --gtest_filter=rack_process.all_ranks* CONFIGURATIONS cluster)
  list(APPEND racks rack_of_72)
endif()
set_tests_properties(${racks} PROPERTIES LABELS cluster TIMEOUT 900 COST 90 ENVIRONMENT ASSAY_RACK_TRAYS=18)
# Twenty plants take two minutes of processor time, and more where other work shares the machine.
add_test(NAME twenty_plants COMMAND unit_judge --gtest_filter=Hall.honest_plants* CONFIGURATIONS meters)
set_tests_properties(twenty_plants PROPERTIES LABELS meters TIMEOUT 1200 ENVIRONMENT ASSAY_HONEST_PLANTS=20)
# All faults in all phases of three divisions, and a rank stopped at sixty moments.
foreach(name fault_cases stopped_anywhere)
  add_executable(${name} unit/train/${name}_test.cpp)
  target_link_libraries(${name} PRIVATE assay_core unit_paths GTest::gtest_main)
  add_dependencies(${name} train_soak train_step fault_resume)
  add_test(NAME ${name} COMMAND ${name} CONFIGURATIONS train)
  set_tests_properties(${name} PROPERTIES LABELS train TIMEOUT 1500 RUN_SERIAL ON FIXTURES_REQUIRED special_train)
  set_property(GLOBAL APPEND PROPERTY ASSAY_UNIT_SOURCES unit/train/${name}_test.cpp)
endforeach()
special(train fault_cases stopped_anywhere)

# Every file of tests is in a program.
get_property(known GLOBAL PROPERTY ASSAY_UNIT_SOURCES)
file(GLOB unknown CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} unit/*/*_test.cpp)
list(REMOVE_ITEM unknown ${known})
if(unknown)
  message(FATAL_ERROR "in no unit program of tests/unit/unit.cmake: ${unknown}")
endif()
