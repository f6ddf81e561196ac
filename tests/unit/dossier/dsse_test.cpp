// Envelopes and keys: published vectors, and what must be refused.
#include <sys/stat.h>

#include <gtest/gtest.h>

#include "orchestrator/files/digest.h"
#include "reports/dossier/base64.h"
#include "reports/dossier/dsse.h"
#include "tests/unit/run_fixture.h"

#include <nlohmann/json.hpp>

namespace assay::dossier {
namespace {

std::string unhex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

struct Vector {
  const char* seed;
  const char* public_key;
  const char* message;
  const char* signature;
};

// RFC 8032, 7.1, tests 1 to 3.
constexpr Vector kRfc8032[] = {{"9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
                                "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "",
                                "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39"
                                "701cf9b46bd25bf5f0595bbe24655141438e7a100b"},
                               {"4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
                                "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "72",
                                "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f36"
                                "13d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"},
                               {"c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
                                "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025", "af82",
                                "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f7"
                                "60984dc6594a7c15e9716ed28dc027beceea1ec40a"}};

TEST(Keys, signatures_are_those_of_rfc_8032) {
  for (const auto& vector : kRfc8032) {
    const auto key = PrivateKey::from_seed(unhex(vector.seed)).value();
    EXPECT_EQ(key.public_key().raw, unhex(vector.public_key));
    EXPECT_EQ(key.sign(unhex(vector.message)), unhex(vector.signature));
    EXPECT_TRUE(key.public_key().verifies(unhex(vector.message), unhex(vector.signature)));
  }
}

TEST(Keys, every_changed_bit_of_a_signature_is_refused) {
  const auto key = PrivateKey::from_seed(unhex(kRfc8032[1].seed)).value().public_key();
  const std::string signature = unhex(kRfc8032[1].signature);
  for (std::size_t bit = 0; bit < signature.size() * 8; ++bit) {
    std::string changed = signature;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_FALSE(key.verifies("\x72", changed)) << bit;
  }
  EXPECT_FALSE(key.verifies("\x72", signature + '\0')) << "trailing byte";
  EXPECT_FALSE(key.verifies("\x72", signature.substr(0, 63)));
}

TEST(Keys, a_signature_whose_scalar_is_not_reduced_is_refused) {
  // S + L verifies where the scalar's range is not checked (RFC 8032, 5.1.7); L is the order of the base point.
  const std::string order = unhex("edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010");
  const auto key = PrivateKey::from_seed(unhex(kRfc8032[1].seed)).value().public_key();
  std::string signature = unhex(kRfc8032[1].signature);
  unsigned carry = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    carry +=
        static_cast<unsigned char>(signature[32 + i]) + static_cast<unsigned>(static_cast<unsigned char>(order[i]));
    signature[32 + i] = static_cast<char>(carry & 0xffU);
    carry >>= 8U;
  }
  EXPECT_FALSE(key.verifies("\x72", signature));
}

TEST(Keys, points_of_small_order_and_unreduced_points_are_no_keys) {
  const std::string identity = unhex("0100000000000000000000000000000000000000000000000000000000000000");
  // With the identity as key, R = identity and S = 0 verify for every message: the reason for the check.
  EXPECT_TRUE(PublicKey{.raw = identity}.verifies("anything", identity + std::string(32, '\0')));
  for (const char* bad : {"0100000000000000000000000000000000000000000000000000000000000000",
                          "0100000000000000000000000000000000000000000000000000000000000080",
                          "0000000000000000000000000000000000000000000000000000000000000000",
                          "0000000000000000000000000000000000000000000000000000000000000080",
                          "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
                          "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
                          "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
                          "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
                          "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
                          "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa"}) {
    const auto key = public_key_from_raw(unhex(bad), "key");
    ASSERT_FALSE(key) << bad;
    EXPECT_EQ(key.error().what, "is a point of small order");
  }
  for (const char* bad : {"edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
                          "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
                          "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"}) {
    const auto key = public_key_from_raw(unhex(bad), "key");
    ASSERT_FALSE(key) << bad;
    EXPECT_EQ(key.error().what, "is not a canonical Ed25519 public key");
  }
  EXPECT_FALSE(public_key_from_raw("short", "key"));
}

TEST(Keys, a_small_order_key_in_a_file_is_refused_by_the_loader) {
  const std::string spki =
      unhex("302a300506032b6570032100") + unhex("0100000000000000000000000000000000000000000000000000000000000000");
  const auto key =
      public_key_from_pem("-----BEGIN PUBLIC KEY-----\n" + base64(spki) + "\n-----END PUBLIC KEY-----\n", "vendor.pub");
  ASSERT_FALSE(key);
  EXPECT_EQ(key.error().text(), "vendor.pub: is a point of small order\nhint: ask the signer for the public key again");
}

TEST(Keys, a_generated_key_is_private_and_is_never_overwritten) {
  const fixture::TemporaryFolder folder;
  const std::string path = folder.path() + "/test.key";
  const auto key = generate_key(path, "");
  ASSERT_TRUE(key);
  struct stat info = {};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
  EXPECT_EQ(load_private_key(path, "").value().public_key(), *key);
  EXPECT_EQ(load_public_key(path + ".pub").value(), *key);
  EXPECT_EQ(key->fingerprint(), files::sha256(unhex("302a300506032b6570032100") + key->raw));
  const std::string before = fixture::read(path);
  const auto again = generate_key(path, "");
  ASSERT_FALSE(again);
  EXPECT_NE(again.error().what.find("File exists"), std::string::npos);
  EXPECT_EQ(fixture::read(path), before);
}

TEST(Keys, a_key_with_a_passphrase_opens_with_its_passphrase_only) {
  const fixture::TemporaryFolder folder;
  fixture::write(folder.path() + "/right", "correct horse\nsecond line\n");
  fixture::write(folder.path() + "/wrong", "battery staple\n");
  const auto key = generate_key(folder.path() + "/test.key", read_passphrase(folder.path() + "/right").value());
  ASSERT_TRUE(key);
  EXPECT_NE(fixture::read(folder.path() + "/test.key").find("BEGIN ENCRYPTED PRIVATE KEY"), std::string::npos);
  EXPECT_EQ(load_private_key(folder.path() + "/test.key", folder.path() + "/right").value().public_key(), *key);
  EXPECT_FALSE(load_private_key(folder.path() + "/test.key", folder.path() + "/wrong"));
  EXPECT_FALSE(load_private_key(folder.path() + "/test.key", "")) << "there is no prompt";
}

TEST(Dsse, the_pre_authentication_encoding_is_that_of_the_protocol_document) {
  EXPECT_EQ(pre_authentication_encoding("http://example.com/HelloWorld", "hello world"),
            "DSSEv1 29 http://example.com/HelloWorld 11 hello world");
}

class EnvelopeTest : public testing::Test {
 protected:
  PrivateKey key_ = PrivateKey::from_seed(unhex(kRfc8032[0].seed)).value();
  Envelope envelope_ = [this] {
    Envelope envelope{.payload_type = std::string(kPayloadType), .payload = R"({"a":1})", .signatures = {}};
    sign(envelope, key_);
    return envelope;
  }();
};

TEST_F(EnvelopeTest, what_is_written_is_read_and_verifies) {
  const auto read = read_envelope(envelope_text(envelope_), "e");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->payload, envelope_.payload);
  EXPECT_TRUE(is_signed_by(*read, key_.public_key()));
}

TEST_F(EnvelopeTest, a_swapped_payload_type_breaks_the_signature) {
  envelope_.payload_type = "application/vnd.in-toto+JSON";
  EXPECT_FALSE(is_signed_by(envelope_, key_.public_key()));
}

TEST_F(EnvelopeTest, bytes_cannot_move_between_type_and_payload) {
  envelope_.payload_type += " 7";
  EXPECT_FALSE(is_signed_by(envelope_, key_.public_key()));
}

TEST_F(EnvelopeTest, unknown_members_are_ignored_and_keyid_decides_nothing) {
  auto document = nlohmann::json::parse(envelope_text(envelope_));
  document["note"] = "unknown";
  document["signatures"][0]["keyid"] = "another key";
  const auto read = read_envelope(document.dump(), "e");
  ASSERT_TRUE(read);
  EXPECT_TRUE(is_signed_by(*read, key_.public_key()));
}

TEST_F(EnvelopeTest, what_is_no_strict_envelope_is_refused_with_its_place) {
  const auto error_after = [&](const std::string& pointer, const nlohmann::json& value) {
    auto document = nlohmann::json::parse(envelope_text(envelope_));
    document[nlohmann::json::json_pointer(pointer)] = value;
    const auto read = read_envelope(document.dump(), "e");
    return read ? "accepted" : read.error().where + ": " + read.error().what;
  };
  EXPECT_EQ(error_after("/payloadType", 1), "e: payloadType: is missing or not a string");
  EXPECT_EQ(error_after("/payload", "e 30="), "e: payload: is not strict base64");
  EXPECT_EQ(error_after("/signatures", nlohmann::json::array()), "e: signatures: has no signature");
  EXPECT_EQ(error_after("/signatures/0/sig", "Zh=="), "e: signatures[0].sig: is missing or not strict base64");
  EXPECT_EQ(error_after("/signatures", std::vector<nlohmann::json>(17, {{"sig", ""}})),
            "e: signatures: has more than 16 signatures");
  EXPECT_NE(error_after("/deep", nlohmann::json::parse("[[[[[[[[[[]]]]]]]]]]")), "accepted");
  EXPECT_FALSE(read_envelope(R"({"payload":"","payload":"","payloadType":"","signatures":[{"sig":""}]})", "e"))
      << "duplicate key";
  EXPECT_FALSE(read_envelope("[]", "e"));
  EXPECT_FALSE(read_envelope("", "e"));
}

}  // namespace
}  // namespace assay::dossier
