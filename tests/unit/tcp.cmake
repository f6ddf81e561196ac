add_executable(unit_tcp unit/host/tcp_test.cpp)
target_link_libraries(unit_tcp PRIVATE assay_tcp GTest::gtest_main)
target_compile_definitions(unit_tcp PRIVATE HOST_TCP_BANDWIDTH="$<TARGET_FILE:host_tcp_bandwidth>" HOST_TCP_LATENCY="$<TARGET_FILE:host_tcp_latency>"
  HOST_TCP_TRAFFIC="$<TARGET_FILE:host_tcp_traffic>")
add_dependencies(unit_tcp host_tcp_bandwidth host_tcp_latency host_tcp_traffic)
gtest_discover_tests(unit_tcp PROPERTIES LABELS unit)
