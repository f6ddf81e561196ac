// tpm_answer: the quote of a node's TPM, and whether it answers the question of its attempt. Structures by the TPM 2.0
// Library, Part 2: numbers are big endian, a TPM2B is a size of two bytes and as many bytes.
//
// The key that signs (attestation key, AK) is any key; the endorsement key (EK) is the one that the maker certified.
// Before the attempt the head encrypts a secret so that only a TPM that holds both, this EK and this AK, can recover it
// (TPM2_MakeCredential, Part 1, Credential Protection), and journals the SHA-256 of the secret. A record with the
// secret shows that the AK is in the TPM of the EK: `activated`.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "orchestrator/judge/evidence/hardware_answer.h"

namespace assay::judge {

/// A public area (TPMT_PUBLIC) with SHA-256 as its name's algorithm, of an RSA key of 2048 bits or one on P-256.
struct TpmKey {
  std::uint32_t attributes = 0;  ///< TPMA_OBJECT
  std::string point;             ///< of P-256: uncompressed; else empty
  std::string modulus;           ///< of RSA: big endian; else empty
  bool stores = false;           ///< its symmetric algorithm is AES-128 in CFB mode
  std::string sha256;            ///< of the public area, hexadecimal

  /// Whether it was made in its TPM, cannot leave it, and signs only statements of that TPM.
  [[nodiscard]] bool attests() const;
  /// Whether it was made in its TPM, cannot leave it, and only decrypts for it, as an endorsement key does.
  [[nodiscard]] bool endorses() const;
  /// The name of the key in bytes: the algorithm and the digest.
  [[nodiscard]] std::string name() const;
};

/// The key in a TPM2B_PUBLIC; nothing for other bytes and other kinds of keys.
std::optional<TpmKey> tpm_key(std::string_view bytes);

/// The key that a record has in hexadecimal as `condition` of its node.
std::optional<TpmKey> tpm_key_in(const Record& record, std::string_view condition);

/// A quote (TPMS_ATTEST).
struct TpmQuote {
  std::string answers;     ///< bytes of the question
  std::uint32_t pcrs = 0;  ///< of the bank of SHA-256, bit by bit
  std::string digest;      ///< SHA-256 of their values, bytes
};

/// The quote in `bytes`; nothing for other bytes and other statements of a TPM.
std::optional<TpmQuote> tpm_quote(std::string_view bytes);

/// Whether `signature` (TPMT_SIGNATURE, ECDSA over SHA-256) of `bytes` is by `key`.
bool is_signed_by(const TpmKey& key, std::string_view bytes, std::string_view signature);

/// Content of the record of one attempt.
struct TpmAnswer {
  AnswerOutcome outcome = AnswerOutcome::not_asked;
  std::string words;                         ///< why, for people; empty if answered
  std::string key = {};                      ///< SHA-256 of the public area of the key that signed, hexadecimal
  bool activated = false;                    ///< that key is in the TPM of the endorsement key
  std::string endorsement_modulus = {};      ///< of that key, bytes
  std::string endorsement_certificate = {};  ///< of that key, DER; empty if the TPM has none
  std::string pcr_digest = {};               ///< SHA-256 of the values of the registers, hexadecimal
};

/// The answer in `record`, which is complete, to the question with this `nonce`; `asked` as in Attempt.
TpmAnswer tpm_answer_in(const Record& record, const std::string& nonce, const std::string& asked);

/// By node of the site the answer of its last attempt that asked; where an earlier one does not hold, that one.
std::map<std::string, TpmAnswer> tpm_answers(const Run& run, const EvidenceReader& evidence);

}  // namespace assay::judge
