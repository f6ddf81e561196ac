// openssl: handles of OpenSSL that free themselves, and certificates as text.
#pragma once

#include <cstddef>
#include <limits>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

namespace assay::files {

/// Calls `release`.
template <class T, void (*release)(T*)>
struct Release {
  void operator()(T* held) const { release(held); }
};
/// An object of OpenSSL that `release` frees.
template <class T, void (*release)(T*)>
using Owned = std::unique_ptr<T, Release<T, release>>;
using Certificate = Owned<X509, X509_free>;

/// A callback that gives no passphrase: without one OpenSSL would prompt on the terminal.
inline int no_passphrase(char*, int, int, void*) { return -1; }

/// The certificates in `pem`, in their order, up to the first that cannot be read, and at most so many.
inline std::vector<Certificate> read_certificates(std::string_view pem,
                                                  std::size_t most = std::numeric_limits<std::size_t>::max()) {
  std::vector<Certificate> all;
  const Owned<BIO, BIO_free_all> bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  while (bio && all.size() < most) {
    Certificate one(PEM_read_bio_X509(bio.get(), nullptr, no_passphrase, nullptr));
    if (!one) break;
    all.push_back(std::move(one));
  }
  ERR_clear_error();  // the end of the text is one
  return all;
}

}  // namespace assay::files
