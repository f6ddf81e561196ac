// nfs: calls and replies of NFS 4, handles that are mixed of two, and attempts at a server in a thread of this process.
#include "workloads/crossing/nfs.h"

#include <filesystem>
#include <functional>
#include <future>

#include <gtest/gtest.h>

#include "tests/unit/fake_tree.h"
#include "tests/unit/workloads/listener.h"

namespace assay::crossing {
namespace {

constexpr std::uint32_t kXid = 0x61737361, kMask = 0x00100100, kNoEntry = 2, kStale = 70, kBadHandle = 10001;

/// The bytes of 32-bit numbers in network order.
std::string xdr(std::initializer_list<std::uint32_t> numbers) {
  std::string bytes;
  for (const std::uint32_t number : numbers) {
    const std::uint32_t wire = htonl(number);
    bytes.append(reinterpret_cast<const char*>(&wire), sizeof wire);
  }
  return bytes;
}

std::string text(std::string_view bytes) {
  return xdr({static_cast<std::uint32_t>(bytes.size())}) + std::string(bytes) +
         std::string((4 - bytes.size() % 4) % 4, '\0');
}

/// Attributes of a file with this number in a file system.
std::string attributes(std::uint32_t file_system, std::uint32_t number) {
  return xdr({0, file_system, 0, 0, 0, number});
}

std::string ended(std::uint32_t status) { return xdr({kXid, 1, 0, 0, 0, 0, status, 0, 0}); }

std::string look_up_of(std::string_view handle, const std::string& given) {
  return xdr({kXid, 1, 0, 0, 0, 0, 0, 0, 4, 24, 0, 15, 0, 10, 0}) + text(handle) + xdr({9, 0, 1, kMask}) + text(given);
}

std::string attributes_of(const std::string& given) {
  return xdr({kXid, 1, 0, 0, 0, 0, 0, 0, 2, 22, 0, 9, 0, 1, kMask}) + text(given);
}

/// A server of NFS: one connection after the other, and replies by the call without its record mark.
class Server {
 public:
  explicit Server(std::function<std::string(const std::string&)> replies) {
    serving_ = std::async(std::launch::async, [this, replies] { serve(replies); });
  }
  ~Server() {
    ::shutdown(listener_.socket.number(), SHUT_RDWR);  // ends accept
    serving_.wait();
  }
  [[nodiscard]] const Target& target() const { return listener_.target; }
  std::vector<std::string> asked;  ///< to be read when no attempt is on

 private:
  void serve(const std::function<std::string(const std::string&)>& replies) {
    for (Descriptor one(::accept(listener_.socket.number(), nullptr, nullptr)); one;
         one = Descriptor(::accept(listener_.socket.number(), nullptr, nullptr))) {
      char bytes[4096];
      for (ssize_t size = 0; (size = ::recv(one.number(), bytes, sizeof bytes, 0)) > 4;) {
        asked.emplace_back(bytes + 4, static_cast<std::size_t>(size) - 4);
        const std::string reply = replies(asked.back());
        const std::string marked = xdr({0x80000000U | static_cast<std::uint32_t>(reply.size())}) + reply;
        // In two parts, as a network may give them.
        EXPECT_EQ(::send(one.number(), marked.data(), 10, MSG_NOSIGNAL), 10);
        EXPECT_GT(::send(one.number(), marked.data() + 10, marked.size() - 10, MSG_NOSIGNAL), 0);
      }
    }
  }
  Listener listener_{SOCK_STREAM};
  std::future<void> serving_;
};

// As nfs-ganesha's: two bytes of a version, the number of the export, the file system, the file and its generation.
const std::string kBlue(
    "\x43\x01\x00\x01"
    "ffffffff"
    "\x0b\x24\x11\xd0",
    16),
    kRed(
        "\x43\x01\x00\x02"
        "ffffffff"
        "\x00\xc1\x7f\x3a",
        16),
    kMixed(kRed.substr(0, 12) + kBlue.substr(12));

/// What a server of both exports does for red.
struct Manners {
  bool gives_blue_by_handle = false, gives_blue_by_mixed = false, gives_a_third_by_mixed = false, ends_red = false;
  std::uint32_t file_system_of_red = 7;
  std::string handle_of_red = kRed;
};

std::string reply_to_red(const Manners& as, const std::string& call) {
  const auto asks_by = [&](const std::string& handle) { return call.find(text(handle)) != std::string::npos; };
  if (call.find("blue") != std::string::npos || call.find("none") != std::string::npos) return ended(kNoEntry);
  if (call.find("red") != std::string::npos)
    return as.ends_red ? ended(kNoEntry) : look_up_of(as.handle_of_red, attributes(as.file_system_of_red, 193));
  if (asks_by(kBlue)) return as.gives_blue_by_handle ? attributes_of(attributes(7, 2852)) : ended(kStale);
  if (!asks_by(kMixed)) return ended(kBadHandle);
  if (as.gives_a_third_by_mixed) return attributes_of(attributes(7, 1));
  return as.gives_blue_by_mixed ? attributes_of(attributes(7, 2852)) : ended(kStale);
}

std::string reply_to_blue(const std::string& call) {
  return call.find("blue") != std::string::npos ? look_up_of(kBlue, attributes(7, 2852))
                                                : attributes_of(attributes(7, 2852));
}

}  // namespace

TEST(nfs, a_reply_is_a_handle_or_a_refusal_and_any_other_is_unclear) {
  struct Case {
    std::string reply;
    Outcome outcome;
    const char* evidence;
  };
  const std::string whole = look_up_of("handle", attributes(7, 2));
  const Case cases[] = {
      {whole, Outcome::answered, "NFS gave a file handle"},
      {attributes_of(attributes(7, 2)), Outcome::unclear, "the reply of NFS is not complete"},
      {ended(0), Outcome::unclear, "the reply of NFS is not complete"},
      {ended(1), Outcome::refused, "NFS4ERR_PERM"},
      {ended(2), Outcome::refused, "NFS4ERR_NOENT"},
      {ended(13), Outcome::refused, "NFS4ERR_ACCESS"},
      {ended(kStale), Outcome::unclear, "NFS status 70"},
      {ended(kBadHandle), Outcome::unclear, "NFS status 10001"},
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
    const Tried tried = nfs_answer(one.reply).tried;
    EXPECT_EQ(tried.outcome, one.outcome) << one.evidence;
    EXPECT_EQ(tried.evidence, one.evidence);
  }
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_EQ(nfs_answer(whole.substr(0, size)).tried.outcome, Outcome::unclear) << size;
  EXPECT_EQ(nfs_answer(whole).handle, "handle");
  EXPECT_EQ(nfs_answer(whole).attributes, attributes(7, 2));
  EXPECT_EQ(nfs_answer(attributes_of(attributes(7, 2)), true).tried.evidence, "NFS gave attributes");
  EXPECT_EQ(nfs_answer(ended(kStale), true).tried.evidence, "NFS4ERR_STALE");
  EXPECT_EQ(nfs_answer(ended(kBadHandle), true).tried.outcome, Outcome::refused);
}

TEST(nfs, a_look_up_asks_for_the_parts_of_the_export_and_writes_nothing) {
  const std::string call = nfs_lookup("/tenant/home");
  // Record mark, header of the call with AUTH_SYS, no tag, minor version 0, five operations.
  EXPECT_EQ(call.substr(4, 24), xdr({kXid, 0, 2, 100003, 4, 1}));
  EXPECT_TRUE(
      call.ends_with(xdr({0, 0, 5, 24, 15}) + text("tenant") + xdr({15}) + text("home") + xdr({10, 9, 1, kMask})));
  EXPECT_TRUE(nfs_attributes("handle").ends_with(xdr({0, 0, 2, 22}) + text("handle") + xdr({9, 1, kMask})));
}

TEST(nfs, a_mixed_handle_begins_as_one_and_ends_as_the_other) {
  EXPECT_EQ(mixed_handles(kRed, kBlue), std::vector<std::string>{kMixed});
  EXPECT_EQ(mixed_handles("a..b.c..d", "1..2.3..4"), (std::vector<std::string>{"a..2.3..4", "a..b.c..4"}));
  EXPECT_TRUE(mixed_handles("same", "same").empty());
  EXPECT_TRUE(mixed_handles("a..b", "1..2.").empty());
  EXPECT_EQ(mixed_handles("a..a..a..a..a..a", "b..b..b..b..b..b").size(), 4U);
}

TEST(nfs, a_handle_that_the_control_offers_is_tried_and_each_leak_has_its_name) {
  struct Case {
    Manners as;
    const char* own;
    Outcome outcome;
    std::string evidence;
    std::size_t asked;
  };
  const std::string by_name = "NFS4ERR_NOENT; ", by_handle = by_name + "its handle: NFS4ERR_STALE",
                    mixed = "a handle mixed with that of /red", open = "; NFS gave its attributes by " + mixed,
                    third = "; NFS gave attributes of another file by " + mixed,
                    one_run = "; none to mix with that of /red: name folders below the exports";
  const Case cases[] = {
      {{}, "", Outcome::refused, by_handle, 2},
      {{}, "/red", Outcome::refused, by_handle + "; " + mixed + ": NFS4ERR_STALE", 4},
      {{.gives_blue_by_handle = true}, "/red", Outcome::answered, by_name + "NFS gave its attributes by its handle", 2},
      {{.gives_blue_by_mixed = true}, "/red", Outcome::answered, by_handle + open, 4},
      {{.gives_a_third_by_mixed = true}, "/red", Outcome::unclear, by_handle + third, 4},
      {{.file_system_of_red = 8}, "/red", Outcome::refused, by_handle + "; /red has another fsid", 3},
      {{.handle_of_red = kRed.substr(0, 4) + kBlue.substr(4)}, "/red", Outcome::unclear, by_handle + one_run, 3},
      {{.gives_blue_by_mixed = true},
       "/none /red",
       Outcome::answered,
       by_handle + "; its own export /none: NFS4ERR_NOENT" + open,
       5},
      {{},
       "/red /none",
       Outcome::unclear,
       by_handle + "; " + mixed + ": NFS4ERR_STALE; its own export /none: NFS4ERR_NOENT",
       5},
      {{.ends_red = true}, "/red", Outcome::unclear, by_handle + "; its own export /red: NFS4ERR_NOENT", 3},
  };
  const FakeTree shared;
  const NoteFolder notes{shared.path(), kToken};
  Server of_blue(reply_to_blue);
  auto control =
      std::async(std::launch::async, [&] { return offer_handle(of_blue.target(), "/blue", notes, after({2})); });
  for (const auto& one : cases) {
    Server of_red([&](const std::string& call) { return reply_to_red(one.as, call); });
    const Tried tried = try_handle(of_red.target(), "/blue", one.own, notes, after({5}));
    EXPECT_EQ(tried.outcome, one.outcome) << tried.evidence;
    EXPECT_EQ(tried.evidence, one.evidence);
    EXPECT_EQ(of_red.asked.size(), one.asked);
  }
  EXPECT_EQ(control.get().evidence, "NFS gave its attributes by its handle");
  EXPECT_TRUE(std::filesystem::is_empty(shared.path())) << "a note is left";
}

TEST(nfs, without_the_handle_of_the_control_nothing_was_tried_by_it) {
  const FakeTree shared;
  Server of_red([](const std::string& call) { return reply_to_red({.gives_blue_by_handle = true}, call); });
  const Tried tried = try_handle(of_red.target(), "/blue", "", {shared.path(), kToken}, after({0.2}));
  EXPECT_EQ(tried.outcome, Outcome::unclear);
  EXPECT_EQ(tried.evidence, "NFS4ERR_NOENT; no handle of it came into " + shared.path());
  const Note cut_off({shared.path(), kToken}, "a file handle", "00");
  EXPECT_EQ(try_handle(of_red.target(), "/blue", "", {shared.path(), kToken}, after({0.2})).evidence, tried.evidence);
}

TEST(nfs, a_control_that_is_refused_offers_nothing) {
  const FakeTree shared;
  Server closed([](const std::string&) { return ended(kNoEntry); });
  EXPECT_EQ(offer_handle(closed.target(), "/blue", {shared.path(), kToken}, after({5})).evidence, "NFS4ERR_NOENT");
  Server stale([](const std::string& call) {
    return call.find("blue") != std::string::npos ? reply_to_blue(call) : ended(kStale);
  });
  EXPECT_EQ(offer_handle(stale.target(), "/blue", {shared.path(), kToken}, after({5})).evidence,
            "its handle: NFS4ERR_STALE");
}

TEST(nfs, a_server_that_says_nothing_is_silent) {
  Server silent([](const std::string&) { return std::string(8, '\0'); });
  EXPECT_EQ(try_nfs(silent.target(), "/home").outcome, Outcome::unclear);
  const Listener mute(SOCK_STREAM);
  EXPECT_EQ(try_nfs(mute.target, "/home").evidence, "connected; the server said nothing");
  EXPECT_EQ(try_nfs(mute.target, "/home").outcome, Outcome::no_answer);
}

}  // namespace assay::crossing
