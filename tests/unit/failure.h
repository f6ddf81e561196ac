// failure: what a call that must fail says.
#pragma once

#include <exception>
#include <functional>
#include <string>

namespace assay {

/// The words of what `call` throws; empty when it throws nothing.
inline std::string failure(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

}  // namespace assay
