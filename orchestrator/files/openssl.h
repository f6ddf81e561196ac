// openssl: handles of OpenSSL that free themselves.
#pragma once

#include <memory>

namespace assay::files {

/// Calls `release`.
template <class T, void (*release)(T*)>
struct Release {
  void operator()(T* held) const { release(held); }
};
/// An object of OpenSSL that `release` frees.
template <class T, void (*release)(T*)>
using Owned = std::unique_ptr<T, Release<T, release>>;

}  // namespace assay::files
