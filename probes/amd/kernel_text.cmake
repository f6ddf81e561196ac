# kernel_text: one text of the kernels and of what they include, for a compiler without a standard library: includes are
# left out, and std:: is device_std::. It is written as kernels.hip, for tests, and as kernel_text.cpp.
set(parts device_std.h ../cuda/kernel_words.h ../cuda/mixed.h ../cuda/payload_words.h ../cuda/walk_words.h
  ../cuda/stream_values.h ../cuda/fold.h ../cuda/memory_kernels.cuh gate_kernel.cuh
  ../collective/kinds.h ../collective/pattern.h ../nccl/check_kernels.cuh
  ../cuda/quantise.h ../cuda/gemm_format.h ../cuda/whole.h ../cuda/gemm_kernels.cuh)
set(kernels "")
foreach(part IN LISTS parts)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${part})
  file(READ ${part} text)
  string(REGEX REPLACE "#(include|pragma once)[^\n]*\n" "" text "${text}")
  if(NOT part STREQUAL device_std.h)
    string(REPLACE "std::" "device_std::" text "${text}")
  endif()
  string(APPEND kernels "${text}")
endforeach()
file(CONFIGURE OUTPUT kernels.hip @ONLY CONTENT "@kernels@")
set(literal "")
string(LENGTH "${kernels}" length)
set(at 0)
while(at LESS length)  # a string literal may hold 64 KiB
  string(SUBSTRING "${kernels}" ${at} 8000 piece)
  string(APPEND literal "\n    R\"assay_kernels(${piece})assay_kernels\"")
  math(EXPR at "${at} + 8000")
endwhile()
file(CONFIGURE OUTPUT kernel_text.cpp @ONLY CONTENT [[
// Written by CMake from the kernels.
#include "probes/amd/hip.h"

std::string_view assay::amd::kernel_text() {
  static constexpr std::string_view kText =@literal@;
  return kText;
}
]])
