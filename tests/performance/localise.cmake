# How often a search for faulty nodes finds them, over seeds; run by hand, docs/PERFORMANCE.md has the table.
add_executable(localise_monte_carlo performance/localise_monte_carlo.cpp)
target_link_libraries(localise_monte_carlo PRIVATE assay_judge assay_simulate)
target_compile_options(localise_monte_carlo PRIVATE -O2)
special(performance localise_monte_carlo)
