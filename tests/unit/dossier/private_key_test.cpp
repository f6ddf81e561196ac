// Private keys: who else may read them, which of several is meant, and how long a passphrase holds.
#include <filesystem>

#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "reports/dossier/keys.h"
#include "tests/unit/run_fixture.h"

namespace assay::dossier {
namespace {

namespace fs = std::filesystem;

template <class T>
std::string why(const std::expected<T, InputError>& result) {
  return result ? "taken" : result.error().text();
}

TEST(PrivateKeys, one_that_others_can_read_or_write_is_refused) {
  const fixture::TemporaryFolder folder;
  const std::string path = folder.path() + "/lab.key";
  ASSERT_TRUE(generate_key(path, ""));
  for (const unsigned mode : {0640U, 0604U, 0620U, 0602U, 0666U}) {
    fs::permissions(path, fs::perms(mode));
    const auto key = load_private_key(path, "");
    ASSERT_FALSE(key) << mode;
    EXPECT_TRUE(key.error().what.ends_with(": others can use this private key")) << key.error().what;
    EXPECT_EQ(key.error().hint, "chmod 600 " + path);
  }
  fs::permissions(path, fs::perms(0400));
  EXPECT_EQ(why(load_private_key(path, "")), "taken");
}

TEST(PrivateKeys, a_file_of_two_keys_is_ambiguous) {
  const fixture::TemporaryFolder folder;
  const auto one = PrivateKey::from_seed(std::string(32, 'a')).value();
  const auto two = PrivateKey::from_seed(std::string(32, 'b')).value();
  const auto both = public_key_from_pem(one.public_key().text() + two.public_key().text(), "both.pub");
  EXPECT_EQ(
      why(both),
      "both.pub: has 2 PEM blocks, and it is not clear which key is meant\nhint: write one key into a file of its own");
  EXPECT_FALSE(PrivateKey::from_pem(one.pem("") + two.pem(""), "", "both.key"));
  EXPECT_EQ(why(public_key_from_pem("The key of the lab:\n" + one.public_key().text() + "Call us.\n", "lab.pub")),
            "taken");
}

TEST(PrivateKeys, a_passphrase_is_stretched_by_many_rounds) {
  const std::string pem = PrivateKey::from_seed(std::string(32, 'a')).value().pem("correct horse");
  const std::unique_ptr<BIO, decltype(&BIO_free)> bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())),
                                                      BIO_free);
  const std::unique_ptr<X509_SIG, decltype(&X509_SIG_free)> sealed(
      PEM_read_bio_PKCS8(bio.get(), nullptr, nullptr, nullptr), X509_SIG_free);
  ASSERT_TRUE(sealed);
  const X509_ALGOR* scheme = nullptr;
  X509_SIG_get0(sealed.get(), &scheme, nullptr);
  const std::unique_ptr<PBE2PARAM, decltype(&PBE2PARAM_free)> two(
      static_cast<PBE2PARAM*>(ASN1_TYPE_unpack_sequence(ASN1_ITEM_rptr(PBE2PARAM), scheme->parameter)), PBE2PARAM_free);
  ASSERT_TRUE(two);
  const std::unique_ptr<PBKDF2PARAM, decltype(&PBKDF2PARAM_free)> derivation(
      static_cast<PBKDF2PARAM*>(ASN1_TYPE_unpack_sequence(ASN1_ITEM_rptr(PBKDF2PARAM), two->keyfunc->parameter)),
      PBKDF2PARAM_free);
  ASSERT_TRUE(derivation);
  EXPECT_EQ(ASN1_INTEGER_get(derivation->iter), kPassphraseRounds);
  EXPECT_EQ(OBJ_obj2nid(derivation->prf->algorithm), NID_hmacWithSHA256);
  EXPECT_EQ(OBJ_obj2nid(two->encryption->algorithm), NID_aes_256_cbc);
  EXPECT_TRUE(PrivateKey::from_pem(pem, "correct horse", "k"));
}

}  // namespace
}  // namespace assay::dossier
