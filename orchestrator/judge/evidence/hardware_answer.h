// hardware_answer: what the answers of a node's TPM and of its GPUs to the question of an attempt have in common.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "orchestrator/judge/evidence/evidence.h"
#include "probes/core/words.h"

struct evp_md_st;
struct evp_pkey_st;

namespace assay::judge {

/// State of the TPM or the GPUs of a node, as far as a run shows it.
enum class AnswerOutcome {
  answered,         ///< its statement answers the question of this attempt
  not_asked,        ///< the plan has no step that asks it, or none was tried
  no_tpm,           ///< the probe of the TPM skipped
  no_answer,        ///< the attempt has no complete record, or a GPU of the node has no statement in it
  wrong_challenge,  ///< the statement answers another question: older, of another node, plan, challenge or GPU
  broken,           ///< signature, key or structure do not hold
  unknown_key,      ///< the key is not the expected one, or is not bound to an endorsement key
  other_root,       ///< the certificate of the key has no chain to an expected root
};

constexpr auto words_of(AnswerOutcome) { return names_as_words<AnswerOutcome>(); }

/// Takes numbers and blocks from the front of bytes. A short one makes it bad, and everything after it empty.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : left_(bytes) {}
  /// A number of `size` bytes, big endian.
  std::uint64_t number(std::size_t size);
  /// The same little endian.
  std::uint64_t little(std::size_t size);
  std::uint16_t u16() { return static_cast<std::uint16_t>(number(2)); }  ///< big endian
  std::uint32_t u32() { return static_cast<std::uint32_t>(number(4)); }  ///< big endian
  /// The next `size` bytes.
  std::string_view take(std::size_t size);
  /// As many bytes as the two before them say, big endian.
  std::string_view block() { return take(u16()); }
  /// Whether bytes are left.
  [[nodiscard]] bool has_more() const { return !left_.empty(); }
  /// Whether none was short and none is left.
  [[nodiscard]] bool ended_well() const { return good_ && left_.empty(); }

 private:
  std::string_view left_;
  bool good_ = true;
};

/// Whether r and s, big endian, are a signature (ECDSA) of `bytes` by `key` over `digest`.
bool ecdsa_holds(evp_pkey_st* key, const evp_md_st* digest, std::string_view r, std::string_view s,
                 std::string_view bytes);

/// The question of an attempt: 64 hexadecimal digits, the SHA-256 of the receiver's challenge, the plan's digest, the
/// node and Attempt::asked, a line each.
std::string attempt_nonce(const std::string& challenge, const std::string& plan_sha256, const std::string& node,
                          const std::string& asked);

/// By id of the subjects of `kind` the first text that `record` has of each as condition `name`.
std::map<std::string, std::string> texts_of(const Record& record, std::string_view kind, std::string_view name);

/// An attempt that asked.
struct Question {
  const std::string& node;
  const Attempt& attempt;
  std::string nonce;             ///< attempt_nonce
  std::optional<Record> record;  ///< absent if there is none that can be read
};

/// Calls `look` with every attempt, in the order of the journal, of the steps of single nodes with `probe`. A
/// simulation has none.
void each_question(const Run& run, const EvidenceReader& evidence, std::string_view probe,
                   const std::function<void(const Question&)>& look);

/// Puts `found` in the place of `before`, unless an earlier attempt did not hold.
template <class Answer>
void take(Answer& before, Answer found) {
  if (before.outcome == AnswerOutcome::not_asked || before.outcome == AnswerOutcome::answered)
    before = std::move(found);
}

}  // namespace assay::judge
