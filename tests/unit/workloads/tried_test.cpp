// tried, services: what comes back from the network is read as what it is; attempts on this machine's own sockets.
#include "workloads/crossing/tried.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "probes/core/path_class.h"
#include "workloads/crossing/services.h"

namespace assay::crossing {
namespace {

/// The bytes of 32-bit numbers in network order.
std::string xdr(std::initializer_list<std::uint32_t> numbers) {
  std::string bytes;
  for (const std::uint32_t number : numbers) {
    const std::uint32_t wire = htonl(number);
    bytes.append(reinterpret_cast<const char*>(&wire), sizeof wire);
  }
  return bytes;
}

constexpr std::uint32_t kXid = 0x61737361;

TEST(tried, a_message_of_a_filter_or_a_closed_port_refuses_and_one_of_a_lost_way_does_not) {
  struct Case {
    bool v6;
    int type, code;
    Outcome outcome;
  };
  for (const Case& one : {Case{false, 3, 13, Outcome::refused},
                          {false, 3, 9, Outcome::refused},
                          {false, 3, 10, Outcome::refused},
                          {false, 3, 3, Outcome::refused},
                          {false, 3, 0, Outcome::no_answer},
                          {false, 3, 1, Outcome::no_answer},
                          {false, 11, 0, Outcome::no_answer},
                          {true, 1, 1, Outcome::refused},
                          {true, 1, 4, Outcome::refused},
                          {true, 1, 3, Outcome::no_answer},
                          {true, 3, 13, Outcome::no_answer}}) {
    const Tried tried = of_icmp(one.v6, one.type, one.code, "10.0.0.1");
    EXPECT_EQ(tried.outcome, one.outcome) << one.v6 << " " << one.type << " " << one.code;
    EXPECT_EQ(tried.evidence,
              fmt::format("ICMP{} type {} code {} from 10.0.0.1", one.v6 ? "v6" : "", one.type, one.code));
  }
}

TEST(tried, a_status_of_http_grants_or_refuses_or_is_unclear) {
  for (const long status : {200L, 204L}) EXPECT_EQ(of_status(status).outcome, Outcome::answered) << status;
  for (const long status : {401L, 403L}) EXPECT_EQ(of_status(status).outcome, Outcome::refused) << status;
  for (const long status : {0L, 301L, 404L, 500L, 503L})
    EXPECT_EQ(of_status(status).outcome, Outcome::unclear) << status;
}

TEST(tried, a_reply_of_nfs_is_a_handle_or_a_refusal_and_any_other_is_unclear) {
  struct Case {
    std::string reply;
    Outcome outcome;
    const char* evidence;
  };
  const Case cases[] = {
      {xdr({kXid, 1, 0, 0, 0, 0, 0, 0, 3}), Outcome::answered, "NFS gave a file handle"},
      {xdr({kXid, 1, 0, 0, 0, 0, 1}), Outcome::refused, "NFS4ERR_PERM"},
      {xdr({kXid, 1, 0, 0, 0, 0, 2}), Outcome::refused, "NFS4ERR_NOENT"},
      {xdr({kXid, 1, 0, 0, 0, 0, 13}), Outcome::refused, "NFS4ERR_ACCESS"},
      {xdr({kXid, 1, 0, 0, 4, 0x61626364, 0, 10016}), Outcome::refused, "NFS4ERR_WRONGSEC"},
      {xdr({kXid, 1, 1, 1, 5}), Outcome::refused, "RPC authentication error 5"},
      {xdr({kXid, 1, 1, 0, 2, 2}), Outcome::unclear, "RPC does not take the version of the call"},
      {xdr({kXid, 1, 0, 0, 0, 2, 0, 3}), Outcome::unclear, "RPC status 2"},
      {xdr({kXid, 1, 0, 0, 0, 0, 10021}), Outcome::unclear, "NFS status 10021"},
      {xdr({1, 1, 0, 0, 0, 0, 0}), Outcome::unclear, "the reply is none of RPC"},
      {xdr({kXid, 1, 0, 0, 400}), Outcome::unclear, "the reply is none of RPC"},
      {xdr({kXid, 1, 0, 0, 0, 0}), Outcome::unclear, "the reply is none of RPC"},
      {"HTTP", Outcome::unclear, "the reply is none of RPC"},
  };
  for (const auto& one : cases) {
    const Tried tried = nfs_answer(one.reply);
    EXPECT_EQ(tried.outcome, one.outcome) << one.evidence;
    EXPECT_EQ(tried.evidence, one.evidence);
  }
}

TEST(tried, a_look_up_of_nfs_asks_for_the_parts_of_the_export_and_writes_nothing) {
  const std::string call = nfs_lookup("/tenant/home");
  // Record mark, header of the call with AUTH_SYS, no tag, minor version 0, four operations.
  EXPECT_EQ(call.substr(4, 24), xdr({kXid, 0, 2, 100003, 4, 1}));
  EXPECT_TRUE(
      call.ends_with(xdr({0, 0, 4, 24, 15, 6}) + std::string("tenant\0\0", 8) + xdr({15, 4}) + "home" + xdr({10})));
}

/// A listening socket on this machine, or one whose port is closed.
struct Listener {
  explicit Listener(int type) : socket(::socket(AF_INET, type, 0)) {
    sockaddr_in own{};
    own.sin_family = AF_INET;
    own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof own;
    EXPECT_EQ(::bind(socket.number(), reinterpret_cast<sockaddr*>(&own), length), 0);
    if (type == SOCK_STREAM) (void)::listen(socket.number(), 4);  // a failure shows in the attempt
    EXPECT_EQ(::getsockname(socket.number(), reinterpret_cast<sockaddr*>(&own), &length), 0);
    target = {.address = "127.0.0.1", .port = ntohs(own.sin_port), .timeout = {0.3}};
  }
  Descriptor socket;
  Target target;
};

TEST(tried, an_accepted_connection_is_an_answer_and_a_closed_port_a_refusal) {
  Listener open(SOCK_STREAM);
  EXPECT_EQ(try_tcp(open.target).outcome, Outcome::answered);
  const Tried silent = try_http(open.target, "/");
  EXPECT_EQ(silent.outcome, Outcome::no_answer);
  EXPECT_EQ(silent.evidence, "connected; the service said nothing");
  EXPECT_EQ(try_nfs(open.target, "/home").outcome, Outcome::no_answer);
  open.socket.close();
  const Tried closed = try_tcp(open.target);
  EXPECT_EQ(closed.outcome, Outcome::refused);
  EXPECT_EQ(closed.evidence, "TCP reset");
}

TEST(tried, a_datagram_without_an_answer_is_no_refusal_and_a_closed_port_is_one) {
  Listener open(SOCK_DGRAM);
  EXPECT_EQ(try_udp(open.target, "assay").outcome, Outcome::no_answer);
  open.socket.close();
  EXPECT_EQ(try_udp(open.target, "assay").outcome, Outcome::refused);
}

TEST(tried, an_address_that_is_a_name_is_an_error_and_not_resolved) {
  EXPECT_THROW((void)try_tcp({.address = "localhost", .port = 1, .timeout = {1}}), std::runtime_error);
}

TEST(path_class, every_class_says_what_is_sent_on_it) {
  for (const auto& [type, word] : words_of(PathClass{})) EXPECT_FALSE(sent_on(type).empty()) << word;
  EXPECT_EQ(default_port(PathClass::nfs), 2049);
  EXPECT_EQ(default_port(PathClass::tcp), 0);
}

}  // namespace
}  // namespace assay::crossing
