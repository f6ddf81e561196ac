// tls: TLS 1.3 between assay and agents that dial in: a key that lives as long as one run, and its pin.
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
  std::string pin;  ///< SHA-256 of the certificate's DER, 64 hexadecimal digits: who knows it needs no authority
};

/// Makes a new identity. The error is OpenSSL's reason.
std::expected<std::unique_ptr<TlsIdentity>, std::string> make_tls_identity();

/// The side that dials. Lives until its handshakes are done.
struct PinnedTls {
  boost::asio::ssl::context context;
  std::unique_ptr<const std::string> pin;  ///< the context points at it
};

/// A context whose handshake succeeds with the holder of the one certificate of this pin, and with nobody else. Reads
/// no configuration of OpenSSL, which a static program could not follow. The error is a reason.
std::expected<PinnedTls, std::string> pinned_tls(const std::string& pin);

/// `count` random bytes from OpenSSL's generator as hexadecimal digits; empty when it has none.
std::string random_hexadecimal(std::size_t count);

/// Whether two secrets are the same, in a time that does not tell where they differ.
bool same_secret(const std::string& a, const std::string& b);

}  // namespace assay::wire
