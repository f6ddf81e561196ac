// trust: a policy is refused whole when a part of it could mean two things. Names of parties are compared in a short
// form of the skeletons of Unicode UTS 39, without its tables; other look-alikes are refused.
//
//   "Example AG", "EXAMPLE AG.", "Exаmple AG" (Cyrillic а), "Example  AG"  ->  "example ag"
#include "reports/dossier/trust.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <set>

#include <fmt/format.h>

#include "probes/core/json_io.h"
#include "probes/core/secret_file.h"
#include "probes/core/text.h"
#include "probes/core/utc_time.h"
#include "profiles/schema.h"
#include "reports/dossier/certificate.h"

namespace assay::dossier {
namespace {

using nlohmann::json;

constexpr std::size_t kLargestPolicy = 4 << 20;  // 100 parties of 100 signers with some keys each

std::expected<Moment, InputError> moment_at(const json& object, const char* name, const std::string& where) {
  const std::string text = object.at(name);
  if (const auto moment = given_time(text)) return *moment;
  return std::unexpected(
      InputError{fmt::format("{}.{}", where, name), fmt::format("'{}' is not a time", text), kGivenTimeHint});
}

/// valid_from and valid_until of `object`.
std::expected<std::pair<Moment, Moment>, InputError> validity_of(const json& object, const std::string& where) {
  const auto from = moment_at(object, "valid_from", where);
  if (!from) return std::unexpected(from.error());
  const auto until = moment_at(object, "valid_until", where);
  if (!until) return std::unexpected(until.error());
  if (*from < *until) return std::pair(*from, *until);
  return std::unexpected(InputError{fmt::format("{}.valid_until", where), "is not after valid_from",
                                    "what is valid at no time can be left out"});
}

std::expected<TrustedKey, InputError> key_from(const json& entry, const std::string& where, const PolicyFiles& read) {
  const auto validity = validity_of(entry, where);
  if (!validity) return std::unexpected(validity.error());
  TrustedKey key{.fingerprint = entry.at("fingerprint"), .from = validity->first, .until = validity->second};
  if (entry.contains("file")) {
    const std::string file = entry.at("file");
    const auto text = read(file);
    if (!text) return std::unexpected(text.error());
    auto given = public_key_from_pem(*text, file);
    if (!given) return std::unexpected(given.error());
    if (given->fingerprint() != key.fingerprint) {
      return std::unexpected(InputError{fmt::format("{}.file", where),
                                        fmt::format("the key in {} has the fingerprint {}, the policy says {}", file,
                                                    given->fingerprint(), key.fingerprint),
                                        "ask its owner which one is right, by another way than the one it came by"});
    }
    key.key = std::move(*given);
  }
  if (entry.contains("revoked")) {
    const auto at = moment_at(entry.at("revoked"), "at", where + ".revoked");
    if (!at) return std::unexpected(at.error());
    key.revoked = Revocation{.at = *at, .reason = entry.at("revoked").at("reason")};
  }
  return key;
}

std::expected<CertificateRule, InputError> rule_from(const json& entry, const std::string& where,
                                                     const PolicyFiles& read) {
  const auto validity = validity_of(entry, where);
  if (!validity) return std::unexpected(validity.error());
  const std::string file = entry.at("issuers");
  auto issuers = read(file);
  if (!issuers) return std::unexpected(issuers.error());
  if (auto problem = check_issuers(*issuers, file)) return std::unexpected(*problem);
  return CertificateRule{.issuers = std::move(*issuers),
                         .subject = entry.at("subject"),
                         .from = validity->first,
                         .until = validity->second};
}

/// Takes `name` into `names`, by its looks. Refused: a name that is there, and one without a plain look.
std::optional<InputError> take_name(const std::string& name, const std::string& where, const char* hint,
                                    std::map<std::string, std::string>& names) {
  const auto key = comparable_name(name);
  if (!key) return InputError{where, fmt::format("'{}' {}", name, key.error()), "write a name with plain letters"};
  const auto [known, fresh] = names.emplace(*key, name);
  if (fresh) return std::nullopt;
  if (known->second == name) return InputError{where, fmt::format("'{}' is there twice", name), hint};
  return InputError{where, fmt::format("'{}' looks like '{}', which is there", name, known->second), hint};
}

std::expected<Party, InputError> party_from(const json& entry, const std::string& where, const PolicyFiles& read) {
  Party party{.name = entry.at("name"), .role = entry.at("role"), .threshold = entry.at("threshold")};
  const json& signers = entry.at("signers");
  std::map<std::string, std::string> names;
  for (std::size_t i = 0; i < signers.size(); ++i) {
    TrustedSigner signer{.name = signers[i].at("name")};
    const std::string here = fmt::format("{}.signers[{}]", where, i);
    if (auto problem =
            take_name(signer.name, here + ".name", "further keys of a signer go into the list 'keys'", names))
      return std::unexpected(*problem);
    const json keys = signers[i].value("keys", json::array());
    for (std::size_t j = 0; j < keys.size(); ++j) {
      auto key = key_from(keys[j], fmt::format("{}.keys[{}]", here, j), read);
      if (!key) return std::unexpected(key.error());
      signer.keys.push_back(std::move(*key));
    }
    if (signers[i].contains("certificates")) {
      auto rule = rule_from(signers[i].at("certificates"), here + ".certificates", read);
      if (!rule) return std::unexpected(rule.error());
      signer.certificates = std::move(*rule);
    }
    party.signers.push_back(std::move(signer));
  }
  if (party.threshold <= party.signers.size()) return party;
  return std::unexpected(InputError{where + ".threshold",
                                    fmt::format("{} of {} signers", party.threshold, party.signers.size()),
                                    "each signer counts once, with as many keys as it has"});
}

/// Rules over all parts of a policy.
std::optional<InputError> contradiction(const TrustPolicy& policy) {
  std::map<std::string, std::string> names;
  std::set<std::string> fingerprints;
  std::set<std::pair<std::string, std::string>> certificates;
  for (const auto& party : policy.parties) {
    if (auto problem = take_name(party.name, policy.path + ": parties",
                                 "a party has one role, so that it cannot stand on both sides", names))
      return problem;
    for (const auto& signer : party.signers) {
      if (const auto& rule = signer.certificates; rule && !certificates.emplace(rule->issuers, rule->subject).second) {
        return InputError{policy.path + ": parties", fmt::format("has certificates of '{}' twice", rule->subject),
                          "a key belongs to one signer of one party"};
      }
      for (const auto& key : signer.keys) {
        if (fingerprints.insert(key.fingerprint).second) continue;
        return InputError{policy.path + ": parties", fmt::format("has the key {} twice", key.fingerprint),
                          "a key belongs to one signer of one party"};
      }
    }
  }
  if (fingerprints.size() > kMostTrustedKeys) {
    return InputError{policy.path + ": parties", fmt::format("has {} keys", fingerprints.size()),
                      fmt::format("{} are allowed; leave out those that ended", kMostTrustedKeys)};
  }
  std::set<std::string> required;
  for (const auto& role : policy.require) {
    if (!required.insert(role).second) return InputError{policy.path + ": require", role + " is there twice", ""};
    if (std::ranges::none_of(policy.parties, [&](const Party& party) { return party.role == role; }))
      return InputError{policy.path + ": require", fmt::format("no party has the role {}", role),
                        "nothing could ever fulfil this policy"};
  }
  return std::nullopt;
}

struct Range {
  char32_t first, last;
};

template <std::size_t n>
bool in(const Range (&ranges)[n], char32_t code) {
  return std::ranges::any_of(ranges, [&](const Range& one) { return code >= one.first && code <= one.last; });
}

constexpr Range kBlanks[] = {{0x09, 0x0D},     {0x20, 0x20},     {0xA0, 0xA0},     {0x1680, 0x1680},
                             {0x2000, 0x200A}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}};
/// Accents that follow their letter, and selectors of its form.
constexpr Range kMarks[] = {{0x300, 0x36F},   {0x1AB0, 0x1AFF}, {0x1DC0, 0x1DFF},
                            {0x20D0, 0x20FF}, {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F}};
/// Forms of other characters: of phonetics, in circles, ligatures, of mathematics, with dots of Latin Extended-B.
constexpr Range kForms[] = {{0x180, 0x2FF},   {0x1D00, 0x1DBF}, {0x2070, 0x209F},   {0x2100, 0x214F},  {0x2160, 0x218F},
                            {0x2460, 0x24FF}, {0xFB00, 0xFB4F}, {0x1D400, 0x1D7FF}, {0x1F100, 0x1F1FF}};
/// Alphabets with letters like those of Latin: Greek, Cyrillic, Armenian, Georgian, Cherokee, Coptic, Lisu.
constexpr Range kAlphabets[] = {{0x370, 0x3FF},   {0x400, 0x52F},   {0x530, 0x58F},   {0x10A0, 0x10FF},
                                {0x13A0, 0x13FF}, {0x1C80, 0x1CBF}, {0x1F00, 0x1FFF}, {0x2C80, 0x2CFF},
                                {0x2DE0, 0x2DFF}, {0xA4D0, 0xA4FF}, {0xA640, 0xA69F}, {0xAB70, 0xABBF}};

/// Letters of Latin without their accents, from U+00C0 to U+017F.
constexpr char32_t kLatin = 0xC0;
constexpr std::string_view kLatinBase =
    "aaaaaaaceeeeiiiidnoooooxouuuuypsaaaaaaaceeeeiiiidnooooo-ouuuuypy"
    "aaaaaaccccccccddddeeeeeeeeeegggggggghhhhiiiiiiiiiiiijjkkkllllllllllnnnnnnnnnoooooooorrrrrrssssssssttttttuuuuuuuuuu"
    "uuwwyyyzzzzzzs";
/// The same from U+1E00.
constexpr char32_t kLatinMore = 0x1E00;
constexpr std::string_view kLatinMoreBase =
    "aabbbbbbccddddddddddeeeeeeeeeeffgghhhhhhhhhhiiiikkkkkkllllllllmmmmmmnnnnnnnnoooooooopp"
    "pprrrrrrrrssssssssssttttttttuuuuuuuuuuvvvvwwwwwwwwwwxxxxyyzzzzzzhtwyassssdaaaaaaaaaaaa"
    "aaaaaaaaaaaaeeeeeeeeeeeeeeeeiiiioooooooooooooooooooooooouuuuuuuuuuuuuuyyyyyyyyllvvyy";
/// Latin letters like those of Greek from U+0391 and of Cyrillic from U+0400, of which one case looks so; a blank:
/// none.
constexpr char32_t kGreek = 0x391, kCyrillic = 0x400;
constexpr std::string_view kLikeGreek = "ab  ezh ik mn o p  ty x         ab  ezh ik mn o p  ty x  ";
constexpr std::string_view kLikeCyrillic =
    "ee   siij   k y a b  e    k mho pcty x          a b  e    k mho pcty x          ee   siij   k y ";

char letter(std::string_view table, char32_t first, char32_t code) {
  return code >= first && code - first < table.size() ? table[code - first] : ' ';
}

/// The lower case of a letter of Greek or Cyrillic; other characters as they are.
char32_t lower(char32_t code) {
  constexpr char32_t kCase = 0x20, kOldCase = 0x50;
  if ((code >= 0x391 && code <= 0x3A9) || (code >= 0x410 && code <= 0x42F)) return code + kCase;
  return code >= 0x400 && code <= 0x40F ? code + kOldCase : code;
}

/// What `code`, which is no blank and no mark, looks like: an ASCII character, or the character itself.
char32_t look(char32_t code) {
  constexpr char32_t kWide = 0xFF01, kLastWide = 0xFF5E;
  if (code >= kWide && code <= kLastWide) code = code - kWide + '!';
  if (code >= 'A' && code <= 'Z') return code - 'A' + 'a';
  for (const char like : {letter(kLatinBase, kLatin, code), letter(kLatinMoreBase, kLatinMore, code),
                          letter(kLikeGreek, kGreek, code), letter(kLikeCyrillic, kCyrillic, code)}) {
    if (like != ' ') return static_cast<unsigned char>(like);
  }
  return lower(code);
}

/// One character in UTF-8, or as its number: the result is compared and never shown.
std::string text_of(char32_t code) {
  return code < 0x80 ? std::string(1, static_cast<char>(code))
                     : fmt::format("<{:X}>", static_cast<std::uint32_t>(code));
}

}  // namespace

std::expected<TrustPolicy, InputError> read_trust_policy(std::string_view text, const std::string& where,
                                                         const PolicyFiles& read) {
  const auto document = parse_json(text, where, {.max_bytes = kLargestPolicy});
  if (!document) return std::unexpected(document.error());
  if (auto problem = profiles::check_schema(*document, "trust.schema", where)) return std::unexpected(*problem);
  const auto validity = validity_of(*document, where);
  if (!validity) return std::unexpected(validity.error());
  TrustPolicy policy{.path = where,
                     .name = document->at("name"),
                     .from = validity->first,
                     .until = validity->second,
                     .require = document->at("require")};
  const json& parties = document->at("parties");
  for (std::size_t i = 0; i < parties.size(); ++i) {
    auto party = party_from(parties[i], fmt::format("{}: parties[{}]", where, i), read);
    if (!party) return std::unexpected(party.error());
    policy.parties.push_back(std::move(*party));
  }
  if (auto problem = contradiction(policy)) return std::unexpected(*problem);
  return policy;
}

std::expected<TrustPolicy, InputError> load_trust_policy(const std::string& path) {
  const auto text = read_deciding_file(path, kLargestPolicy);
  if (!text) return std::unexpected(text.error());
  const auto folder = std::filesystem::path(path).parent_path();
  return read_trust_policy(*text, path, [&](const std::string& file) {
    return read_deciding_file((folder / file).string(), kLargestKeyFile);
  });
}

std::expected<std::string, std::string> comparable_name(std::string_view name) {
  std::string key;
  bool latin = false, other = false;  // letters of the word so far
  while (!name.empty()) {
    const auto character = character_at(name);
    if (!character) return std::unexpected("is not UTF-8");
    name.remove_prefix(character->bytes);
    const char32_t code = character->code;
    if (in(kBlanks, code)) {
      latin = other = false;
      if (!key.empty() && key.back() != ' ') key += ' ';
      continue;
    }
    if (in(kMarks, code) || is_harmful(code) || code == '.' || code == ',') continue;
    if (in(kForms, code))
      return std::unexpected(
          fmt::format("has the character U+{:04X}, a form of another one", static_cast<std::uint32_t>(code)));
    const char32_t seen = look(code);
    other = other || in(kAlphabets, code);
    latin = latin || (!in(kAlphabets, code) && seen >= 'a' && seen <= 'z');
    if (latin && other) return std::unexpected("has a word with letters of two alphabets");
    key += text_of(seen);
  }
  while (key.ends_with(' ')) key.pop_back();
  if (key.empty()) return std::unexpected("has no character that is seen");
  return key;
}

}  // namespace assay::dossier
