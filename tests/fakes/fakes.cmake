# fake_nvml carries the name that probes open; a test gives its path, or a link to it beside a state.json.
add_library(fake_nvml SHARED fakes/fake_nvml.cpp)
target_link_libraries(fake_nvml PRIVATE assay_flags nlohmann_json::nlohmann_json assay_fmt ${CMAKE_DL_LIBS})
set_target_properties(fake_nvml PROPERTIES PREFIX "" OUTPUT_NAME libnvidia-ml SUFFIX .so.1
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/fakes/nvml)
# Without unique symbols it is unloaded when it is closed, so that one test process can see several nodes.
if(NOT CMAKE_CXX_CLANG_TIDY)  # clang does not know it
  target_compile_options(fake_nvml PRIVATE -fno-gnu-unique)
endif()
