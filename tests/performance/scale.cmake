# Time and memory of large simulated fleets, for docs/PERFORMANCE.md: ctest --preset release -C scale -L scale. It fails when a run
# fails, misses a fault or takes more memory than is given, never for its time; what each record costs is counted in the default tests (ReadOnce.*).
find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)
foreach(case "thirty;--nodes;100;1000;10000;--most-mb;850" "train_gpu;--profile;train-gpu;--nodes;512;2048")
  list(POP_FRONT case name)
  add_test(NAME performance.scale.${name} COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/performance/simulate_scale.py
    $<TARGET_FILE:assay> ${case} CONFIGURATIONS scale)
  set_tests_properties(performance.scale.${name} PROPERTIES LABELS scale TIMEOUT 2400 RUN_SERIAL TRUE)
endforeach()
