// s3_signature against what AWS published: the four examples of "Signature Calculations for the Authorization Header:
// Transferring Payload in a Single Chunk (AWS Signature Version 4)" in the Amazon S3 API Reference,
// https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html. Each prints the hash of the canonical
// request, which ends its string to sign, and the signature.
#include "workloads/protocols/s3_signature.h"

#include <stdexcept>

#include <gtest/gtest.h>

#include "probes/core/sha256.h"
#include "probes/core/text.h"

namespace assay::protocols {
namespace {

const S3Key kOwner{.access_key = "AKIAIOSFODNN7EXAMPLE",
                   .secret_key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
                   .region = "us-east-1"};

std::string digest(std::string_view text) { return to_hexadecimal(sha256_of(text)); }

S3Request example(std::string method, std::string path, S3Words query, S3Words more, std::string_view body = "") {
  more.insert(more.end(), {{"Host", "examplebucket.s3.amazonaws.com"},
                           {"x-amz-date", "20130524T000000Z"},
                           {"x-amz-content-sha256", digest(body)}});
  return {.method = std::move(method), .path = std::move(path), .query = std::move(query), .headers = std::move(more)};
}

std::string header(const std::string& names, const std::string& signature) {
  return "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,SignedHeaders=" + names +
         ",Signature=" + signature;
}

TEST(S3Signature, of_get_object_with_a_range_is_the_published_one) {
  const auto request = example("GET", "/test.txt", {}, {{"Range", "bytes=0-9"}});
  EXPECT_EQ(digest(canonical_request(request)), "7344ae5b7ee6c3e7e6b0fe0640412a37625d1fbfff95c48bbb2dc43964946972");
  EXPECT_EQ(authorization(request, kOwner), header("host;range;x-amz-content-sha256;x-amz-date",
                                                   "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"));
}

TEST(S3Signature, of_put_object_is_the_published_one) {
  const auto request =
      example("PUT", "/test$file.text", {},
              {{"Date", "Fri, 24 May 2013 00:00:00 GMT"}, {"x-amz-storage-class", "REDUCED_REDUNDANCY"}},
              "Welcome to Amazon S3.");
  EXPECT_EQ(digest(canonical_request(request)), "9e0e90d9c76de8fa5b200d8c849cd5b8dc7a3be3951ddb7f6a76b4158342019d");
  EXPECT_EQ(authorization(request, kOwner), header("date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
                                                   "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"));
}

TEST(S3Signature, of_get_bucket_lifecycle_whose_query_is_a_word_alone_is_the_published_one) {
  const auto request = example("GET", "/", {{"lifecycle", ""}}, {});
  EXPECT_EQ(digest(canonical_request(request)), "9766c798316ff2757b517bc739a67f6213b4ab36dd5da2f94eaebf79c77395ca");
  EXPECT_EQ(authorization(request, kOwner), header("host;x-amz-content-sha256;x-amz-date",
                                                   "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"));
}

TEST(S3Signature, of_list_objects_is_the_published_one_in_whatever_order_the_query_is_given) {
  for (const auto& query : {S3Words{{"max-keys", "2"}, {"prefix", "J"}}, S3Words{{"prefix", "J"}, {"max-keys", "2"}}}) {
    const auto request = example("GET", "/", query, {});
    EXPECT_EQ(digest(canonical_request(request)), "df57d21db20da04d7fa30298dd4488ba3a2b47ca3a489c74750e0f1e7df1b9b7");
    EXPECT_EQ(authorization(request, kOwner),
              header("host;x-amz-content-sha256;x-amz-date",
                     "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"));
  }
}

TEST(S3Signature, changes_with_every_part_of_the_request_and_of_the_key) {
  const auto request = example("GET", "/test.txt", {}, {});
  const auto right = authorization(request, kOwner);
  const auto other = [&](auto change) {
    S3Request changed = request;
    change(changed);
    return authorization(changed, kOwner);
  };
  EXPECT_NE(other([](S3Request& one) { one.method = "PUT"; }), right);
  EXPECT_NE(other([](S3Request& one) { one.path += "t"; }), right);
  EXPECT_NE(other([](S3Request& one) { one.query.emplace_back("a", "b"); }), right);
  EXPECT_NE(other([](S3Request& one) { one.headers.front().second += "t"; }), right);
  for (const auto part : {&S3Key::access_key, &S3Key::secret_key, &S3Key::region}) {
    S3Key changed = kOwner;
    changed.*part += "t";
    EXPECT_NE(authorization(request, changed), right);
  }
}

TEST(S3Signature, takes_blanks_of_a_value_together) {
  const auto spaced = example("GET", "/", {}, {{"x-amz-meta-a", "  a \t  b "}});
  EXPECT_NE(canonical_request(spaced).find("\nx-amz-meta-a:a b\n"), std::string::npos) << canonical_request(spaced);
}

TEST(S3Signature, encodes_every_byte_but_the_unreserved) {
  EXPECT_EQ(percent_encoded("a b+c/d%e~_-.", false), "a%20b%2Bc%2Fd%25e~_-.");
  EXPECT_EQ(percent_encoded("a b/c", true), "a%20b/c");
  EXPECT_EQ(percent_encoded("\xc3\xbc", true), "%C3%BC");
}

TEST(S3Signature, of_a_request_without_a_header_that_it_needs_or_with_one_twice_is_an_error) {
  auto without = example("GET", "/", {}, {});
  without.headers.pop_back();
  EXPECT_THROW((void)authorization(without, kOwner), std::invalid_argument);
  auto twice = example("GET", "/", {}, {{"hOst", "other"}});
  EXPECT_THROW((void)canonical_request(twice), std::invalid_argument);
}

TEST(S3Signature, has_the_moment_in_utc) {
  EXPECT_EQ(amz_date(std::chrono::system_clock::time_point(std::chrono::seconds(1'369'353'600))), "20130524T000000Z");
}

}  // namespace
}  // namespace assay::protocols
