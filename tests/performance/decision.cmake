# How often the decision rule errs: made-up samples, decided by the judge's own functions. Run by hand;
# docs/PERFORMANCE.md says what came out.
add_executable(decision_risk performance/decision_risk.cpp)
target_link_libraries(decision_risk PRIVATE assay_judge)
target_compile_options(decision_risk PRIVATE -O2)
special(performance decision_risk)
# What share of the classes of faults each check of the GPU probes finds: host arithmetic, run by hand likewise.
add_executable(detection performance/detection.cpp)
target_link_libraries(detection PRIVATE assay_links)
target_compile_options(detection PRIVATE -O2)
special(performance detection)
# The operating characteristic of a plan beside made-up fleets.
add_executable(plan_risk performance/plan_risk.cpp)
target_link_libraries(plan_risk PRIVATE assay_judge)
target_compile_options(plan_risk PRIVATE -O2)
special(performance plan_risk)
