// tpm_quote: a quote of the node's TPM 2.0 over the question of the attempt, and whose TPM it is.
//   1. tpm2_createek: the endorsement key by the standard template for RSA 2048; its certificate from the TPM.
//   2. tpm2_createprimary: a key for signing under the endorsement hierarchy, the same each time in one TPM.
//   3. tpm2_activatecredential, with a credential: recovers its secret, which only a TPM with both keys can.
//   4. tpm2_quote: the registers and the question, signed.
// Nothing is stored in the TPM. Without --challenge the question is zeros, which answers nothing.
#include <algorithm>
#include <cctype>
#include <chrono>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <unistd.h>

#include <fmt/format.h>

#include "probes/core/child.h"
#include "probes/core/filesystem_facts.h"
#include "probes/core/json_io.h"
#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "probes/core/text.h"

namespace assay::health {
namespace {

constexpr Parameter kParameters[] = {
    parameter("tcti", "", "device:/dev/tpmrm0", "how the tools reach the TPM, as their option -T"),
    parameter("pcrs", "", "0,1,2,3,4,5,6,7", "registers of the bank of SHA-256 that are quoted"),
    parameter("tool_deadline", "s", "60s", "longest time of one command of the TPM"),
};

constexpr Metric kMetrics[] = {
    lower("quote_time", "s", "wall time of tpm2_quote"),
};

constexpr ConditionSpec kConditions[] = {
    {.name = "quote", .meaning = "TPMS_ATTEST of the quote, hexadecimal"},
    {.name = "signature", .meaning = "TPMT_SIGNATURE of the quote, hexadecimal"},
    {.name = "attestation_key", .meaning = "TPM2B_PUBLIC of the key that signed, hexadecimal"},
    {.name = "endorsement_key", .meaning = "TPM2B_PUBLIC of the endorsement key, hexadecimal"},
    {.name = "credential",
     .meaning = "whether the TPM recovered the secret of the head, so that it holds both keys: activated, refused, or "
                "not_given"},
    if_asked("credential_secret", "the secret that the TPM recovered, hexadecimal"),
    if_present("endorsement_certificate", "certificate of the endorsement key as the TPM stores it, DER, hexadecimal"),
};

constexpr ProbeSpec kSpec{
    .name = "tpm_quote",
    .measures = "Which TPM 2.0 a node has, and that it answers the question of this attempt.",
    .method =
        "The head asks for the keys of the TPM, makes a secret for them (TPM2_MakeCredential) and journals its digest; "
        "the TPM then recovers the secret (TPM2_ActivateCredential), which binds the key that signs to the endorsement "
        "key, and quotes its registers over the SHA-256 of the receiver's challenge, the plan, the node and the "
        "journal so far. Judging checks key, signature, question, registers and secret; `assay-report verify "
        "--tpm-roots` and `--tpm-keys` check whose TPM it is. tpm2-tools does it; nothing is stored in the TPM. Run "
        "with an emulated TPM only so far, on no real one.",
    .source =
        "TCG, Trusted Platform Module Library Family 2.0, Parts 1 to 3, and EK Credential Profile for the template "
        "and the index of the certificate (0x01C00002), as tpm2-tools 5.4 has them.",
    .needs = "tpm2-tools and a TPM 2.0 that the user may open (root, or the group tss)",
    .typical = {10},
    .deadline = {600},
    .parameters = kParameters,
    .metrics = kMetrics,
    .conditions = kConditions,
    .between_runs = {.least = 0.3,
                     .source = "Assumed on 2026-11-28: the time of a command depends on the bus of the TPM and on its "
                               "other users; no real one was measured yet."}};

/// The tools, in a folder of their own.
class Tools {
 public:
  Tools(std::string tcti, Seconds deadline)
      : tcti_(std::move(tcti)), deadline_(deadline), emulated_(!tcti_.starts_with("device:")), folder_("/tmp") {}

  /// Runs `tool`; false if it ends with another code than 0. Throws if the TPM does not answer in time.
  [[nodiscard]] bool run(const std::string& tool, std::vector<std::string> arguments) const {
    const auto program = find_program(tool);
    if (!program)
      throw Skip(tool + " is not in PATH: install tpm2-tools (apt-get install tpm2-tools, dnf install tpm2-tools)");
    arguments.insert(arguments.end(), {"-T", tcti_});
    const auto outcome =
        run_child(*program, arguments, deadline_, {.directory = folder_.path(), .log = "", .stop = stop_requested});
    if (outcome.end == ChildEnd::overdue)
      throw std::runtime_error(
          fmt::format("{} did not end within {} s: the TPM does not answer", tool, deadline_.count));
    if (outcome.end != ChildEnd::exited) throw std::runtime_error(tool + " was ended before it was through");
    return outcome.code == 0;
  }
  void need(const std::string& tool, std::vector<std::string> arguments) const {
    if (!run(tool, std::move(arguments)))
      throw std::runtime_error(tool + " failed: the log of this attempt has its words");
    flush();
  }
  /// An emulated TPM has no resource manager of the kernel, which would do it.
  void flush() const {
    if (emulated_) (void)run("tpm2_flushcontext", {"-t"});  // an object left there shows up as the next tool's failure
  }
  [[nodiscard]] std::string path(const std::string& name) const { return folder_.path() + "/" + name; }
  /// The file in hexadecimal; nothing if it is not there, empty, or more than a record takes.
  [[nodiscard]] std::optional<std::string> hexadecimal(const std::string& name) const {
    const auto bytes = read_file(path(name), kLongestValue / 2);
    return bytes && !bytes->empty() ? std::optional(to_hexadecimal(*bytes)) : std::nullopt;
  }
  [[nodiscard]] std::string needed(const std::string& name) const {
    if (auto text = hexadecimal(name)) return *text;
    throw std::runtime_error(fmt::format("the tools wrote no {} that a record takes", name));
  }

 private:
  std::string tcti_;
  Seconds deadline_;
  bool emulated_;
  ScratchDirectory folder_;
};

/// Refuses what cannot be asked: Skip without a TPM, an error for a bad list.
void check(const Parameters& given) {
  const std::string& pcrs = given.text("pcrs");
  if (pcrs.empty() || !std::ranges::all_of(pcrs, [](unsigned char c) { return std::isdigit(c) != 0 || c == ','; }))
    throw std::runtime_error(fmt::format("pcrs: '{}' is no list of numbers, such as 0,1,2,7", pcrs));
  constexpr std::string_view kDevice = "device:";
  const std::string& tcti = given.text("tcti");
  if (!tcti.starts_with(kDevice)) return;
  const std::string device = tcti.substr(kDevice.size());
  if (access(device.c_str(), F_OK) != 0)
    throw Skip(device + " is not there: the machine has no TPM 2.0, or it is off in the firmware");
  if (access(device.c_str(), R_OK | W_OK) != 0)
    throw Skip(device + " is closed to this user: run as root, or as a member of the group tss");
}

/// The secret of the credential; nothing if the TPM refuses it.
std::optional<std::string> recovered(const Tools& tools, const std::string& credential) {
  std::ofstream(tools.path("credential"), std::ios::binary) << credential;  // one cut short is refused below
  const bool done = tools.run("tpm2_startauthsession", {"--policy-session", "-S", "session"}) &&
                    tools.run("tpm2_policysecret", {"-Q", "-S", "session", "-c", "e"}) &&
                    tools.run("tpm2_activatecredential", {"-Q", "-c", "ak.ctx", "-C", "ek.ctx", "-i", "credential",
                                                          "-o", "secret", "-P", "session:session"});
  (void)tools.run("tpm2_flushcontext", {"session"});  // none is left if it did not start
  tools.flush();
  return done ? tools.hexadecimal("secret") : std::nullopt;
}

void measure(const Parameters& given, const Placement& placement, Recorder& record) {
  constexpr std::size_t kNonce = 64;
  check(given);
  const auto& challenge = placement.challenge;
  const std::string nonce = challenge.empty() ? std::string(kNonce, '0') : challenge.substr(0, challenge.find(':'));
  const auto credential = from_hexadecimal(challenge.substr(std::min(challenge.size(), nonce.size() + 1)));
  if (nonce.size() != kNonce || !from_hexadecimal(nonce) || !credential)
    throw std::runtime_error("challenge: is not 64 hexadecimal digits, a colon and a credential in such digits");
  const Tools tools(given.text("tcti"), given.seconds("tool_deadline"));
  tools.need("tpm2_createek", {"-c", "ek.ctx", "-G", "rsa", "-u", "ek.pub"});
  tools.need("tpm2_createprimary",
             {"-Q", "-C", "e", "-g", "sha256", "-G", "ecc256:ecdsa-sha256:null", "-a",
              "restricted|sign|fixedtpm|fixedparent|sensitivedataorigin|userwithauth", "-c", "ak.ctx"});
  tools.need("tpm2_readpublic", {"-Q", "-c", "ak.ctx", "-o", "ak.pub"});
  if (tools.run("tpm2_nvread", {"0x01C00002", "-o", "certificate"})) {
    if (const auto certificate = tools.hexadecimal("certificate"))
      record.condition("endorsement_certificate", *certificate);
  }
  std::string word = "not_given";
  if (!credential->empty()) {
    const auto secret = recovered(tools, *credential);
    word = secret ? "activated" : "refused";
    if (secret) record.condition("credential_secret", *secret);
  }
  record.condition("credential", word);
  const auto begin = std::chrono::steady_clock::now();
  tools.need("tpm2_quote", {"-Q", "-c", "ak.ctx", "-l", "sha256:" + given.text("pcrs"), "-q", nonce, "-m", "quote",
                            "-s", "signature", "-g", "sha256"});
  const double time_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  record.condition("attestation_key", tools.needed("ak.pub"));
  record.condition("endorsement_key", tools.needed("ek.pub"));
  record.condition("quote", tools.needed("quote"));
  record.condition("signature", tools.needed("signature"));
  record.measurement("quote_time", time_s);
}

}  // namespace
}  // namespace assay::health

int main(int argc, char** argv) { return assay::probe_main(argc, argv, assay::health::kSpec, assay::health::measure); }
