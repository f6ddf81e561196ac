// tried, services, watch, rdma, nvlink: what comes back is read as what it is; attempts on this machine's own sockets,
// a made-up tree of ports, and the fake CUDA driver.
#include "workloads/crossing/tried.h"

#include <future>

#include <sys/wait.h>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "probes/core/path_class.h"
#include "probes/core/probe.h"
#include "tests/unit/fake_tree.h"
#include "tests/unit/paths.h"
#include "tests/unit/workloads/listener.h"
#include "workloads/crossing/nvlink.h"
#include "workloads/crossing/rdma.h"
#include "workloads/crossing/services.h"
#include "workloads/crossing/watch.h"

namespace assay::crossing {
namespace {

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

/// An ICMP message about a datagram to 192.0.2.9 or 2001:db8::9 at port 4791, as a raw socket gives it.
std::string icmp_about_a_datagram(bool v6, int type, int code) {
  const auto bytes = [](std::initializer_list<int> all) { return std::string(all.begin(), all.end()); };
  const std::string message = bytes({type, code}) + std::string(6, '\0');
  const std::string udp = bytes({0xc0, 0, 4791 / 256, 4791 % 256, 0, 8, 0, 0});
  if (v6)
    return message + bytes({0x60, 0, 0, 0, 0, 8, 17, 64}) + std::string(16, '\0') + bytes({0x20, 1, 0x0d, 0xb8}) +
           std::string(11, '\0') + '\x09' + udp;
  const std::string header = bytes({0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1});
  return header + bytes({10, 0, 0, 2}) + message + header + bytes({192, 0, 2, 9}) + udp;
}

TEST(tried, a_message_about_a_datagram_counts_only_for_its_own_address_and_port) {
  struct Case {
    bool v6;
    int type, code;
    const char *to, *from;
    int port;
    std::optional<Outcome> outcome;
  };
  const char *const v4 = "192.0.2.9", *const v6 = "2001:db8::9";
  for (const Case& one : {Case{false, 3, 13, v4, "192.0.2.1", 4791, Outcome::refused},
                          {false, 3, 1, v4, "192.0.2.1", 4791, Outcome::no_answer},
                          {false, 3, 13, v4, "127.0.0.1", 4791, Outcome::unclear},
                          {false, 3, 13, v4, "192.0.2.1", 4790, std::nullopt},
                          {false, 3, 13, "192.0.2.8", "192.0.2.1", 4791, std::nullopt},
                          {false, 8, 0, v4, "192.0.2.1", 4791, std::nullopt},
                          {true, 1, 1, v6, "2001:db8::1", 4791, Outcome::refused},
                          {true, 1, 1, "2001:db8::8", "2001:db8::1", 4791, std::nullopt}}) {
    const std::string message = icmp_about_a_datagram(one.v6, one.type, one.code);
    const Target target{.address = one.to, .port = one.port};
    const auto tried = of_icmp_message(message, one.from, target);
    ASSERT_EQ(tried.has_value(), one.outcome.has_value()) << one.to << " " << one.port;
    EXPECT_EQ(tried ? tried->outcome : Outcome::answered, one.outcome.value_or(Outcome::answered));
    for (std::size_t size = 0; size + 4 < message.size(); ++size)  // the last four bytes of UDP's header do not count
      EXPECT_FALSE(of_icmp_message(message.substr(0, size), one.from, target)) << size;
  }
}

TEST(tried, a_status_of_http_grants_or_refuses_or_is_unclear) {
  for (const long status : {200L, 204L}) EXPECT_EQ(of_status(status).outcome, Outcome::answered) << status;
  for (const long status : {401L, 403L}) EXPECT_EQ(of_status(status).outcome, Outcome::refused) << status;
  for (const long status : {0L, 301L, 404L, 500L, 503L})
    EXPECT_EQ(of_status(status).outcome, Outcome::unclear) << status;
  EXPECT_EQ(of_status(403, "AccessDenied").outcome, Outcome::refused);
  EXPECT_EQ(of_status(403, "AccessDenied").evidence, "HTTP status 403 AccessDenied");
  for (const char* of_the_key : {"InvalidAccessKeyId", "SignatureDoesNotMatch", "RequestTimeTooSkewed"})
    EXPECT_EQ(of_status(403, of_the_key).outcome, Outcome::unclear) << of_the_key;
}

TEST(tried, an_accepted_connection_is_an_answer_and_a_closed_port_a_refusal) {
  Listener open(SOCK_STREAM);
  EXPECT_EQ(try_tcp(open.target).outcome, Outcome::answered);
  const Tried silent = try_http(open.target, "/");
  EXPECT_EQ(silent.outcome, Outcome::no_answer);
  EXPECT_EQ(silent.evidence, "connected; the service said nothing");
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

/// Arrivals at `at` while `attempt` goes on again and again.
template <class Attempt>
Arrivals seen_at(const Target& at, const std::string* payload, Attempt attempt) {
  auto watching = std::async(std::launch::async, watch_packets, at, payload, kToken, after({1}));
  while (watching.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready) attempt();
  return watching.get();
}

TEST(watch, a_target_sees_a_datagram_that_nobody_answers_and_knows_both_ranks_apart) {
  if (geteuid() != 0) GTEST_SKIP() << "to see packets needs root";
  Listener silent(SOCK_DGRAM);
  const std::string payload = "assay";
  const auto from = [&](int rank, std::string_view words) {
    Target target = silent.target;
    target.timeout = {0.02};
    target.from_port = port_of_rank(kToken, rank);
    (void)try_udp(target, words);
  };
  const Arrivals both = seen_at(silent.target, &payload, [&] { from(0, payload), from(1, payload); });
  EXPECT_TRUE(both.control && both.crossing);
  EXPECT_EQ(both.evidence, fmt::format("a datagram of 127.0.0.1 port {} arrived", port_of_rank(kToken, 0)));
  const Arrivals control = seen_at(silent.target, &payload, [&] { from(0, "another"), from(1, payload); });
  EXPECT_TRUE(control.control);
  EXPECT_FALSE(control.crossing);
  EXPECT_EQ(control.evidence, "nothing of the other tenant arrived");
}

TEST(watch, a_target_sees_a_connection_that_is_asked_for) {
  if (geteuid() != 0) GTEST_SKIP() << "to see packets needs root";
  Listener open(SOCK_STREAM);
  open.socket.close();  // whether it is answered does not matter
  const Arrivals seen = seen_at(open.target, nullptr, [&] {
    Target target = open.target;
    target.from_port = port_of_rank(kToken, 0);
    (void)try_tcp(target);
  });
  EXPECT_TRUE(seen.crossing);
  EXPECT_FALSE(seen.control);
}

TEST(rdma, an_event_of_the_connection_manager_is_an_answer_a_refusal_or_neither) {
  struct Case {
    std::uint32_t event;  // of rdma_cma.h
    int status;
    Outcome outcome;
    const char* evidence;
  };
  for (const Case& one : {Case{5, 0, Outcome::answered, "RDMA CM: the connection was accepted"},
                          {9, 0, Outcome::answered, "RDMA CM: the connection was accepted"},
                          {8, 8, Outcome::refused, "RDMA CM: rejected, reason 8"},
                          {8, 28, Outcome::refused, "RDMA CM: rejected, reason 28"},
                          {8, 10, Outcome::unclear, "RDMA CM: rejected, reason 10"},
                          {7, -ETIMEDOUT, Outcome::no_answer, "nothing came back"},
                          {2, 0, Outcome::answered, "the subnet manager gives a path"},
                          {3, -EINVAL, Outcome::refused, "the subnet manager gives no path"},
                          {3, -ETIMEDOUT, Outcome::no_answer, "no answer of the subnet manager: Connection timed out"},
                          {3, -EIO, Outcome::unclear, "no answer of the subnet manager: Input/output error"},
                          {1, -ENODEV, Outcome::unclear, "nothing left this node: no RDMA device leads there"},
                          {6, -EINVAL, Outcome::unclear, "RDMA CM: event 6, status -22"},
                          {11, 0, Outcome::unclear, "RDMA CM: event 11, status 0"}}) {
    const Tried tried = of_cm_event(one.event, one.status, {.address = "127.0.0.1", .port = 4420});
    EXPECT_EQ(tried.outcome, one.outcome) << one.event << " " << one.status;
    EXPECT_EQ(tried.evidence, one.evidence);
  }
}

TEST(rdma, the_end_of_a_write_is_an_answer_where_the_other_adapter_spoke) {
  for (const int status : {9, 10, 11, 13}) EXPECT_EQ(of_completion(status, "NAK").outcome, Outcome::answered) << status;
  EXPECT_EQ(of_completion(12, "retries").outcome, Outcome::no_answer);
  for (const int status : {1, 4, 5, 22}) EXPECT_EQ(of_completion(status, "here").outcome, Outcome::unclear) << status;
}

TEST(rdma, a_key_that_the_subnet_manager_gave_no_port_is_refused_and_a_node_without_a_port_unclear) {
  FakeTree tree;
  const auto tried = [&](const char* key) {
    return try_ib_path({.address = "fe80::1", .port = 0, .timeout = {0.1}}, key, tree.path());
  };
  EXPECT_EQ(tried("0x8005").outcome, Outcome::unclear);
  const std::string port = "sys/class/infiniband/mlx5_0/ports/1/";
  tree.file(port + "link_layer", "InfiniBand\n");
  tree.file(port + "state", "1: DOWN\n");
  tree.file(port + "pkeys/0", "0x7fff\n");
  EXPECT_EQ(tried("0x8005").outcome, Outcome::unclear);
  tree.file(port + "state", "4: ACTIVE\n");
  const Tried refused = tried("0x8005");
  EXPECT_EQ(refused.outcome, Outcome::refused);
  EXPECT_EQ(refused.evidence, "the subnet manager put 0x8005 into the table of no port of this node");
  tree.file(port + "link_layer", "Ethernet\n");
  EXPECT_EQ(tried("0x8005").outcome, Outcome::unclear);
  EXPECT_EQ(pkey_from("0x8005"), 0x8005);
  EXPECT_EQ(pkey_from("8005"), 0);
}

/// The outcome of an import while another process offers memory, or none does. `fault`: of this process' driver.
Tried imported(const char* fault, bool offered) {
  const FakeTree shared;
  const std::string folder = shared.path();
  setenv("ASSAY_LIBRARY_PATH", build_file("tests/fakes/cuda").c_str(), 1);
  const pid_t owner = offered ? fork() : 0;
  if (offered && owner == 0) {
    offer_memory(folder, kToken, after({10}));
    _exit(0);
  }
  setenv("ASSAY_FAKE_CUDA", fault, 1);
  const Tried tried = try_nvlink(folder, kToken, after({offered ? 10.0 : 0.2}));
  unsetenv("ASSAY_FAKE_CUDA");
  if (offered) (void)kill(owner, SIGKILL), (void)waitpid(owner, nullptr, 0);
  return tried;
}

TEST(nvlink, a_foreign_handle_counts_as_refused_only_where_the_nodes_own_is_imported) {
  struct Case {
    const char* fault;
    bool offered;
    Outcome outcome;
    const char* words;
  };
  for (const Case& one : {Case{"", true, Outcome::answered, "the memory was imported"},
                          {"foreign_refused", true, Outcome::refused, "of the path's tenant into"},
                          {"import_refused", true, Outcome::unclear, "a handle of this node's own"},
                          {"no_fabric", true, Outcome::unclear, "no GPU of this node offers handles"},
                          {"", false, Outcome::unclear, "no handle came into"}}) {
    const Tried tried = imported(one.fault, one.offered);
    EXPECT_EQ(tried.outcome, one.outcome) << one.fault << ": " << tried.evidence;
    EXPECT_NE(tried.evidence.find(one.words), std::string::npos) << tried.evidence;
  }
}

TEST(path_class, every_class_says_what_is_sent_on_it) {
  for (const auto& [type, word] : words_of(PathClass{})) EXPECT_FALSE(sent_on(type).empty()) << word;
  EXPECT_EQ(default_port(PathClass::nfs), 2049);
  EXPECT_EQ(default_port(PathClass::tcp), 0);
}

}  // namespace
}  // namespace assay::crossing
