# False flags, nights to a flag, time and memory of the detector of nightly sweeps; by hand, see docs/PERFORMANCE.md.
add_executable(nightly performance/nightly.cpp)
target_link_libraries(nightly PRIVATE assay_simulate)
target_compile_options(nightly PRIVATE -O2)
