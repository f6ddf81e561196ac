# How often a search for faulty nodes finds them, over seeds; run by hand, docs/PERFORMANCE.md has the table.
add_executable(localise_monte_carlo performance/localise_monte_carlo.cpp)
target_link_libraries(localise_monte_carlo PRIVATE assay_judge assay_simulate)
target_compile_options(localise_monte_carlo PRIVATE -O2)
special(performance localise_monte_carlo)
# What the pairs of a rack name, and what a fit to them would; run by hand likewise.
add_executable(rack_fit performance/rack_fit.cpp)
target_link_libraries(rack_fit PRIVATE assay_judge assay_simulate)
target_compile_options(rack_fit PRIVATE -O2)
special(performance rack_fit)
