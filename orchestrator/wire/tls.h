// tls: TLS 1.3 between assay and agents that connect back: a key for one run, and its pin.
#pragma once

#include <expected>
#include <memory>
#include <string>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/ssl/stream.hpp>

namespace assay::wire {

/// A TLS stream over TCP; a struct of its own so that headers can name it without Asio's.
struct TlsStream {
  boost::asio::ssl::stream<boost::asio::ip::tcp::socket> stream;
};

/// The side that listens: a fresh Ed25519 key with a self-signed certificate, in memory only.
struct TlsIdentity {
  boost::asio::ssl::context context;
  std::string pin;  ///< SHA-256 of the certificate's DER, 64 hexadecimal digits; it replaces a certificate authority
};

/// Makes a new identity. The error is OpenSSL's reason.
std::expected<std::unique_ptr<TlsIdentity>, std::string> make_tls_identity();

/// The side that connects. It must outlive its handshakes.
struct PinnedTls {
  boost::asio::ssl::context context;
  std::unique_ptr<const std::string> pin;  ///< the context points at it
};

/// A context whose handshake succeeds only with the holder of the certificate of this pin. It reads no OpenSSL
/// configuration, which a static program could not apply. The error is a reason.
std::expected<PinnedTls, std::string> pinned_tls(const std::string& pin);

/// `count` random bytes from OpenSSL's generator as hexadecimal digits; empty if it fails.
std::string random_hexadecimal(std::size_t count);

/// Whether two secrets are equal, compared in constant time.
bool same_secret(const std::string& a, const std::string& b);

}  // namespace assay::wire
