// token: libp11 between a token's library and OpenSSL. It is opened when it is needed, because few machines have it.
#include "reports/dossier/token.h"

#include <charconv>
#include <optional>
#include <span>

#if __has_include(<libp11.h>)
#define ASSAY_HAS_LIBP11
#include <libp11.h>
#endif

#include <fmt/format.h>

#include "probes/core/library.h"
#include "probes/core/probe.h"
#include "probes/core/text.h"

namespace assay::dossier {
namespace {

/// Undoes percent-encoding; nothing if a percent sign has no two digits behind it.
std::optional<std::string> decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    unsigned value = 0;
    const char* const first = text.data() + i + 1;
    if (i + 2 >= text.size() || std::from_chars(first, first + 2, value, 16).ptr != first + 2) return std::nullopt;
    out += static_cast<char>(value);
    i += 2;
  }
  return out;
}

#ifdef ASSAY_HAS_LIBP11
/// The functions of libp11 that are used here.
struct Api {
  Library library;
  decltype(&::PKCS11_CTX_new) make = library.function("PKCS11_CTX_new");
  decltype(&::PKCS11_CTX_load) load = library.function("PKCS11_CTX_load");
  decltype(&::PKCS11_CTX_unload) unload = library.function("PKCS11_CTX_unload");
  decltype(&::PKCS11_CTX_free) free = library.function("PKCS11_CTX_free");
  decltype(&::PKCS11_enumerate_slots) slots = library.function("PKCS11_enumerate_slots");
  decltype(&::PKCS11_release_all_slots) release = library.function("PKCS11_release_all_slots");
  decltype(&::PKCS11_login) login = library.function("PKCS11_login");
  decltype(&::PKCS11_enumerate_keys) keys = library.function("PKCS11_enumerate_keys");
  decltype(&::PKCS11_get_private_key) private_key = library.function("PKCS11_get_private_key");
};

/// A key on a token, and all that must stay open while it signs.
class TokenSigner : public Signer {
 public:
  explicit TokenSigner(const Api& api) : api_(api), context_(api.make()) {}
  ~TokenSigner() override {
    EVP_PKEY_free(key_);
    if (slots_ != nullptr) api_.release(context_, slots_, count_);
    if (loaded_) api_.unload(context_);
    if (context_ != nullptr) api_.free(context_);
  }
  TokenSigner(TokenSigner&&) = delete;
  TokenSigner& operator=(TokenSigner&&) = delete;
  TokenSigner(const TokenSigner&) = delete;
  TokenSigner& operator=(const TokenSigner&) = delete;

  std::optional<InputError> open(const TokenName& name, const std::string& pin) {
    where_ = fmt::format("{}token={};object={}", kTokenScheme, printable(name.token), printable(name.object));
    if (context_ == nullptr || api_.load(context_, name.module.c_str()) != 0) {
      return InputError{name.module, "cannot be loaded as a PKCS#11 library",
                        "add ?module-path=FILE to the name of the key; the token's vendor says which file"};
    }
    loaded_ = true;
    if (api_.slots(context_, &slots_, &count_) != 0)
      return InputError{name.module, "gives no list of its tokens", "is the reader's service running?"};
    auto token = token_named(name.token);
    if (!token) return token.error();
    if (auto problem = log_in(**token, pin)) return problem;
    return find_key(**token, name.object);
  }

  [[nodiscard]] PublicKey public_key() const override { return public_; }
  [[nodiscard]] std::expected<std::string, InputError> sign(std::string_view message) const override {
    return sign_with(key_, public_, message, where_);
  }

 private:
  [[nodiscard]] std::expected<PKCS11_SLOT*, InputError> token_named(const std::string& label) const {
    PKCS11_SLOT* found = nullptr;
    std::string others;
    for (auto& slot : std::span(slots_, count_)) {
      if (slot.token == nullptr || slot.token->initialized == 0) continue;
      const std::string own = slot.token->label == nullptr ? "" : slot.token->label;
      others += (others.empty() ? "" : ", ") + printable(own);
      if (own != label) continue;
      if (found != nullptr)
        return std::unexpected(InputError{where_, "is not clear: two tokens have this label", "unplug one of them"});
      found = &slot;
    }
    if (found != nullptr) return found;
    return std::unexpected(InputError{where_, "there is no token with this label",
                                      others.empty() ? "no token is there at all" : "there are: " + others});
  }

  [[nodiscard]] std::optional<InputError> log_in(PKCS11_SLOT& slot, const std::string& pin) const {
    if (slot.token->loginRequired == 0) return std::nullopt;
    if (pin.empty())
      return InputError{where_, "asks for a PIN", "name a file whose first line is it: --passphrase-file"};
    if (slot.token->userPinLocked != 0) return InputError{where_, "is locked", "unlock it with its vendor's program"};
    if (slot.token->userPinFinalTry != 0) {
      return InputError{where_, "would be locked by one more wrong PIN, so none is tried",
                        "log in once with its vendor's program"};
    }
    if (api_.login(&slot, 0, pin.c_str()) == 0) return std::nullopt;
    return InputError{where_, "refuses the PIN", "check the file of --passphrase-file; tokens lock after a few tries"};
  }

  std::optional<InputError> find_key(PKCS11_SLOT& slot, const std::string& label) {
    PKCS11_KEY* keys = nullptr;
    unsigned int count = 0;
    if (api_.keys(slot.token, &keys, &count) != 0) return InputError{where_, "does not list its keys", ""};
    PKCS11_KEY* found = nullptr;
    std::string others;
    for (auto& key : std::span(keys, count)) {
      const std::string own = key.label == nullptr ? "" : key.label;
      others += (others.empty() ? "" : ", ") + printable(own);
      if (own != label) continue;
      if (found != nullptr) return InputError{where_, "is not clear: two keys have this label", "give one another"};
      found = &key;
    }
    if (found == nullptr) {
      return InputError{where_, "there is no private key with this label",
                        others.empty() ? "the token shows no private key" : "there are: " + others};
    }
    key_ = api_.private_key(found);
    if (key_ == nullptr)
      return InputError{where_, "is of a kind that libp11 does not use", "ECDSA on P-256 or P-384, or RSA"};
    auto half = public_key_of(key_, where_);
    if (!half) return half.error();
    public_ = std::move(*half);
    return std::nullopt;
  }

  Api api_;
  PKCS11_CTX* context_ = nullptr;
  PKCS11_SLOT* slots_ = nullptr;
  unsigned int count_ = 0;
  bool loaded_ = false;
  EVP_PKEY* key_ = nullptr;
  PublicKey public_;
  std::string where_;
};

#endif  // ASSAY_HAS_LIBP11

}  // namespace

std::expected<TokenName, InputError> read_token_name(std::string_view text) {
  const auto refused = [](std::string what) {
    return std::unexpected(
        InputError{"--key", "pkcs11: " + std::move(what),
                   "pkcs11:token=LABEL;object=LABEL?module-path=FILE; the PIN is in --passphrase-file"});
  };
  TokenName name{.module = ""};
  text.remove_prefix(kTokenScheme.size());
  const auto query = text.find('?');
  const auto parse = [&](std::string_view part, char separator, bool in_query) -> std::optional<std::string> {
    while (!part.empty()) {
      const auto end = std::min(part.find(separator), part.size());
      const auto pair = part.substr(0, end);
      part.remove_prefix(std::min(part.size(), end + 1));
      const auto equals = std::min(pair.find('='), pair.size());
      const auto key = pair.substr(0, equals);
      std::string* const into = !in_query && key == "token"        ? &name.token
                                : !in_query && key == "object"     ? &name.object
                                : in_query && key == "module-path" ? &name.module
                                                                   : nullptr;
      if (into == nullptr) return fmt::format("the attribute '{}' is not taken", printable(std::string(key)));
      const auto value = decoded(pair.substr(std::min(pair.size(), equals + 1)));
      if (!value || value->empty() || !into->empty())
        return fmt::format("the attribute '{}' is empty, there twice, or not percent-encoded", key);
      *into = *value;
    }
    return std::nullopt;
  };
  if (auto problem = parse(text.substr(0, query), ';', false)) return refused(*problem);
  if (query != std::string_view::npos) {
    if (auto problem = parse(text.substr(query + 1), '&', true)) return refused(*problem);
  }
  if (name.token.empty() || name.object.empty()) return refused("names no token and object");
  if (name.module.empty()) name.module = kDefaultModule;
  return name;
}

std::expected<std::unique_ptr<Signer>, InputError> token_signer(const TokenName& name, const std::string& pin) {
#ifdef ASSAY_HAS_LIBP11
  try {
    const Api api{.library = Library::open("libp11.so.3", "libp11")};
    auto signer = std::make_unique<TokenSigner>(api);
    if (auto problem = signer->open(name, pin)) return std::unexpected(*problem);
    return signer;
  } catch (const Skip& missing) {
    return std::unexpected(InputError{std::string(kTokenScheme), missing.what(), "apt-get install libp11-3"});
  }
#else
  (void)name, (void)pin;
  return std::unexpected(
      InputError{std::string(kTokenScheme), "this build signs with no token", "install libp11-dev and build again"});
#endif
}

}  // namespace assay::dossier
