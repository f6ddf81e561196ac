// signer: the form of the word decides, and of a file its contents.
#include "reports/dossier/signer.h"

#include "reports/dossier/certificate.h"
#include "reports/dossier/ssh_agent.h"
#include "reports/dossier/ssh_key.h"
#include "reports/dossier/token.h"

namespace assay::dossier {
namespace {

std::expected<std::unique_ptr<Signer>, InputError> without_certificate(const SignerName& name) {
  if (name.key.starts_with(kTokenScheme)) {
    const auto key = read_token_name(name.key);
    if (!key) return std::unexpected(key.error());
    const auto pin = read_passphrase(name.passphrase_file);
    if (!pin) return std::unexpected(pin.error());
    return token_signer(*key, *pin);
  }
  // A public key may lie open, so its file is looked at before the mode of a private one is.
  if (const auto text = read_file(name.key, kLargestKeyFile); text && is_ssh_public(*text)) {
    if (!name.passphrase_file.empty()) {
      return std::unexpected(InputError{"--passphrase-file", "is for a private key, and this is a public one of SSH",
                                        "its agent asks for the passphrase: ssh-add"});
    }
    return agent_signer(name.key);
  }
  auto key = load_private_key(name.key, name.passphrase_file);
  if (!key) return std::unexpected(key.error());
  return std::make_unique<PrivateKey>(std::move(*key));
}

}  // namespace

std::expected<std::unique_ptr<Signer>, InputError> load_signer(const SignerName& name) {
  auto signer = without_certificate(name);
  if (!signer || name.certificate.empty()) return signer;
  const auto pem = read_file(name.certificate, kLargestCertificates);
  if (!pem) return std::unexpected(pem.error());
  const auto key = key_of_certificate(*pem, name.certificate);
  if (!key) return std::unexpected(key.error());
  if (*key != (*signer)->public_key()) {
    return std::unexpected(InputError{name.certificate, "is the certificate of another key than " + name.key,
                                      "the certificate of the key comes first in the file"});
  }
  (*signer)->certificate = *pem;
  return signer;
}

}  // namespace assay::dossier
