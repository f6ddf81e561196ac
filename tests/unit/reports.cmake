add_library(run_fixture STATIC unit/run_fixture.cpp)
target_link_libraries(run_fixture PUBLIC assay_orchestrator)
add_executable(make_run unit/make_run.cpp)
target_link_libraries(make_run PRIVATE run_fixture)
