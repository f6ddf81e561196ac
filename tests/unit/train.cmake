add_executable(unit_train unit/train/model_card_test.cpp unit/train/step_graph_test.cpp)
target_link_libraries(unit_train PRIVATE assay_train_plan GTest::gtest_main)
gtest_discover_tests(unit_train PROPERTIES LABELS unit)

find_package(Gloo CONFIG REQUIRED)  # probes/gloo says which package it is
add_executable(unit_train_engine unit/train/host_engine_test.cpp)
target_link_libraries(unit_train_engine PRIVATE assay_train_wire gloo GTest::gtest_main)
gtest_discover_tests(unit_train_engine PROPERTIES LABELS unit)
