// signer: the form of the word decides, and of a file its contents.
#include "reports/dossier/signer.h"

#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "orchestrator/files/atomic_file.h"
#include "orchestrator/files/child.h"
#include "probes/core/child.h"
#include "probes/core/text.h"
#include "probes/core/units.h"
#include "reports/dossier/certificate.h"
#include "reports/dossier/ssh_key.h"
#include "reports/dossier/token.h"

namespace assay::dossier {
namespace {

/// How long a signature may take: time to touch a token or to answer the agent.
constexpr Seconds kLongestSignature{120.0};
namespace fs = std::filesystem;

constexpr const char* kMessage = "message";
constexpr const char* kPublic = "key.pub";
constexpr std::size_t kLargestSignature = 16 << 10;
constexpr Seconds kLongestList{10};  // of an agent on another machine, too

class AgentSigner : public Signer {
 public:
  AgentSigner(std::string path, PublicKey key) : path_(std::move(path)), key_(std::move(key)) {}

  [[nodiscard]] PublicKey public_key() const override { return key_; }

  [[nodiscard]] std::expected<std::string, InputError> sign(std::string_view message) const override {
    const auto program = find_program("ssh-keygen");
    if (!program) return std::unexpected(InputError{path_, "needs ssh-keygen", "apt-get install openssh-client"});
    std::error_code none;  // without a folder for temporary files the next line says why
    const auto folder = files::StagingDirectory::beside(fs::temp_directory_path(none) / "assay-signature");
    if (!folder) return std::unexpected(folder.error());
    // The copy of the public key has no private key next to it, so that ssh-keygen asks the agent and nothing else.
    if (auto problem = folder->write(kPublic, ssh_public_line(key_))) return std::unexpected(*problem);
    if (auto problem = folder->write(kMessage, message)) return std::unexpected(*problem);
    return signature_in(*program, folder->path(), message);
  }

 private:
  [[nodiscard]] std::expected<std::string, InputError> signature_in(const std::string& program, const fs::path& folder,
                                                                    std::string_view message) const {
    const auto refused = [&](std::string what, std::string hint) {
      return std::unexpected(InputError{path_, std::move(what), std::move(hint)});
    };
    const std::string log = (folder / "log").string();
    try {
      const auto outcome = run_child(program,
                                     {"-Y", "sign", "-n", std::string(kSshNamespace), "-f", (folder / kPublic).string(),
                                      (folder / kMessage).string()},
                                     kLongestSignature, {.directory = folder.string(), .log = log});
      if (outcome.end != ChildEnd::exited || outcome.code != 0) {
        const auto said = read_file(log);
        return refused(outcome.end == ChildEnd::exited
                           ? fmt::format("ssh-keygen did not sign: {}", printable(said.value_or("")))
                           : fmt::format("ssh-keygen did not sign within {:g} s", kLongestSignature.count),
                       "`ssh-add -l` lists what the agent has; ssh-add KEY gives it one");
      }
    } catch (const std::system_error& error) {
      return refused(fmt::format("{} cannot be started: {}", program, error.code().message()), "");
    }
    const std::string file = (folder / kMessage).string() + ".sig";
    const auto armored = read_file(file, kLargestSignature);
    if (!armored) return armored;
    auto signature = ssh_signature_in(*armored, file);
    if (!signature) return signature;
    if (!key_.verifies(message, *signature))
      return refused("the agent gave a signature that does not verify", "of a FIDO token: it must have been touched");
    return signature;
  }

  std::string path_;
  PublicKey key_;
};

/// The error of the agent; nothing if it lists `key`.
std::optional<InputError> check_agent_has(const PublicKey& key, const std::string& path) {
  const auto program = find_program("ssh-add");
  if (!program) return InputError{path, "needs ssh-add", "apt-get install openssh-client"};
  const auto listed = files::run_child(*program, {"-L"}, kLongestList);
  if (!listed) return listed.error();
  std::string line = ssh_public_line(key);
  line.pop_back();  // the agent's line has a comment behind it
  if (listed->exit_code == 0 && ("\n" + listed->output).contains("\n" + line)) return std::nullopt;
  return InputError{path,
                    listed->exit_code == 0 || listed->exit_code == 1
                        ? "is the public key of one that the SSH agent does not have"
                        : "is a public key, so that an SSH agent must sign, and none answers at SSH_AUTH_SOCK",
                    "`ssh-add KEY` gives the agent a key; or name the private key"};
}

/// The signer whose public key is in the file of OpenSSH at `path`. It signs with `ssh-keygen -Y sign`, which asks the
/// agent of SSH_AUTH_SOCK. Refused: as by ssh_public_key, an agent that does not have the key, no ssh-add in PATH; when
/// it signs: no ssh-keygen in PATH, an agent that does not sign, a signature that does not verify, one that takes
/// longer than kLongestSignature.
std::expected<std::unique_ptr<Signer>, InputError> agent_signer(const std::string& path) {
  auto key = load_public_key(path);
  if (!key) return std::unexpected(key.error());
  if (auto problem = check_agent_has(*key, path)) return std::unexpected(*problem);
  return std::make_unique<AgentSigner>(path, std::move(*key));
}

std::expected<std::unique_ptr<Signer>, InputError> without_certificate(const SignerName& name) {
  if (name.key.starts_with(kTokenScheme)) {
    const auto key = read_token_name(name.key);
    if (!key) return std::unexpected(key.error());
    const auto pin = read_passphrase(name.passphrase_file);
    if (!pin) return std::unexpected(pin.error());
    return token_signer(*key, *pin);
  }
  // A public key may be readable, so its file is looked at before the mode of a private one is.
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
