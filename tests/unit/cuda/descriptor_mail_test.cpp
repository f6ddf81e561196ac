// Descriptors from one mailbox to another, and what is no mail.
#include "probes/cuda/descriptor_mail.h"

#include <array>
#include <cstring>

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <gtest/gtest.h>

#include "tests/unit/failure.h"

namespace assay::cuda {

TEST(descriptor_mail, hands_over_what_leads_to_the_same_memory_with_the_sender_s_rank) {
  const DescriptorMail one, other;
  EXPECT_NE(one.address(), other.address());
  const Descriptor memory(memfd_create("mail", MFD_CLOEXEC));
  ASSERT_EQ(pwrite(memory.number(), "word", 4, 0), 4);
  one.send(other.address(), 7, memory, {5});
  const auto [from, came] = other.take({5});
  EXPECT_EQ(from, 7);
  std::array<char, 4> found = {};
  ASSERT_EQ(pread(came.number(), found.data(), found.size(), 0), 4);
  EXPECT_EQ(std::string(found.data(), found.size()), "word");
}

TEST(descriptor_mail, drops_a_message_without_a_descriptor_and_says_when_none_came) {
  const DescriptorMail mail;
  const Descriptor stranger(socket(AF_UNIX, SOCK_DGRAM, 0));
  sockaddr_un place = {};
  place.sun_family = AF_UNIX;
  std::memcpy(place.sun_path + 1, mail.address().data(), mail.address().size());
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + mail.address().size());
  const int word = 3;
  ASSERT_EQ(sendto(stranger.number(), &word, sizeof word, 0, reinterpret_cast<sockaddr*>(&place), length),
            static_cast<ssize_t>(sizeof word));
  EXPECT_EQ(failure([&] { (void)mail.take({0.05}); }), "no descriptor came from another rank for 0.05 s");
}

TEST(descriptor_mail, an_address_that_is_none_is_refused) {
  const DescriptorMail mail;
  const Descriptor memory(memfd_create("mail", MFD_CLOEXEC));
  for (const std::string& address : {std::string(), std::string("/tmp/x"), "assay-rank-" + std::string(200, 'a')})
    EXPECT_EQ(failure([&] { mail.send(address, 0, memory, {1}); }), "the address of a rank's mailbox is damaged");
  EXPECT_NE(failure([&] { mail.send("assay-rank-none", 0, memory, {1}); }), "");
}

}  // namespace assay::cuda
