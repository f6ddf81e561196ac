add_executable(contract_test contract/contract_test.cpp)
target_link_libraries(contract_test PRIVATE assay_core)
if(NOT ASSAY_SANITIZE)
  target_link_options(contract_test PRIVATE -static-libstdc++ -static-libgcc)  # carried to machines without a compiler
endif()
