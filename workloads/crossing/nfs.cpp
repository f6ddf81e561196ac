// nfs: calls of RPC on one connection, and their replies.
#include "workloads/crossing/nfs.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <sstream>
#include <tuple>

#include <arpa/inet.h>
#include <fmt/format.h>

#include "probes/core/probe.h"
#include "probes/core/text.h"

namespace assay::crossing {
namespace {

// RFC 5531: kinds of messages and of authentication; RFC 7530 and linux/nfs4.h: numbers of operations and errors.
constexpr std::uint32_t kXid = 0x61737361, kCall = 0, kReply = 1, kRpcVersion = 2, kNfsProgram = 100003,
                        kNfsVersion = 4, kCompound = 1, kAuthSys = 1, kDenied = 1, kAuthError = 1,
                        kLastPart = 0x80000000;
constexpr std::uint32_t kGetAttributes = 9, kGetHandle = 10, kLookUp = 15, kPutHandle = 22, kPutRootHandle = 24;
constexpr std::uint32_t kFileSystemAndNumber = 1U << 8 | 1U << 20;  // FATTR4_FSID and FATTR4_FILEID
constexpr std::size_t kLongestReply = 4096;                         // B; a handle has at most 128
constexpr std::size_t kWord = sizeof(std::uint32_t), kFileSystem = 16, kNumber = 8, kMostMixed = 4;
constexpr const char* kFileHandle = "a file handle";
struct NfsError {
  std::uint32_t number;
  const char* name;
  bool of_handles;  ///< says no to a handle only
};
constexpr std::array<NfsError, 6> kRefusals = {{{1, "NFS4ERR_PERM", false},
                                                {2, "NFS4ERR_NOENT", false},
                                                {13, "NFS4ERR_ACCESS", false},
                                                {10016, "NFS4ERR_WRONGSEC", false},
                                                {70, "NFS4ERR_STALE", true},
                                                {10001, "NFS4ERR_BADHANDLE", true}}};

void put(std::string& bytes, std::uint32_t number) {
  const std::uint32_t wire = htonl(number);
  bytes.append(reinterpret_cast<const char*>(&wire), sizeof wire);
}

void put_text(std::string& bytes, std::string_view text) {
  put(bytes, static_cast<std::uint32_t>(text.size()));
  bytes += text;
  bytes.append((kWord - text.size() % kWord) % kWord, '\0');
}

/// Takes a number from the front of `bytes`; nothing if they are too few.
std::optional<std::uint32_t> take(std::string_view& bytes) {
  if (bytes.size() < kWord) return std::nullopt;
  std::uint32_t wire = 0;
  std::copy_n(bytes.begin(), sizeof wire, reinterpret_cast<char*>(&wire));
  bytes.remove_prefix(sizeof wire);
  return ntohl(wire);
}

std::optional<std::string_view> take_text(std::string_view& bytes) {
  const auto size = take(bytes);
  if (!size || *size > bytes.size()) return std::nullopt;
  const auto text = bytes.substr(0, *size);
  bytes.remove_prefix(std::min(bytes.size(), (*size + kWord - 1) / kWord * kWord));
  return text;
}

/// One COMPOUND of `count` operations.
std::string call_of(std::uint32_t count, std::string_view operations) {
  std::string call, credential;
  for (const std::uint32_t number : {kXid, kCall, kRpcVersion, kNfsProgram, kNfsVersion, kCompound}) put(call, number);
  put(credential, 0);                              // stamp
  put_text(credential, "");                        // machine
  for (int i = 0; i < 3; ++i) put(credential, 0);  // user, group, no more groups
  put(call, kAuthSys);
  put_text(call, credential);
  put(call, 0), put(call, 0);  // no verifier
  put_text(call, "");          // tag
  put(call, 0);                // minor version
  put(call, count);
  call += operations;
  std::string marked;
  put(marked, kLastPart | static_cast<std::uint32_t>(call.size()));
  return marked + call;
}

void put_attributes(std::string& operations) {
  for (const std::uint32_t number : {kGetAttributes, 1U, kFileSystemAndNumber}) put(operations, number);
}

/// Reads the results in a reply; false if it is cut off.
bool take_results(std::string_view& bytes, NfsReply& reply) {
  const auto tag = take_text(bytes);
  const auto count = take(bytes);
  if (!tag || !count) return false;
  for (std::uint32_t i = 0; i < *count; ++i) {
    const auto operation = take(bytes), status = take(bytes);
    if (!status) return false;
    if (operation == kGetHandle) {
      const auto handle = take_text(bytes);
      if (!handle) return false;
      reply.handle = *handle;
    } else if (operation == kGetAttributes) {
      const auto words = take(bytes), mask = take(bytes);
      const auto values = take_text(bytes);
      if (words != 1U || mask != kFileSystemAndNumber || !values || values->size() != kFileSystem + kNumber)
        return false;
      reply.attributes = *values;
    }
  }
  return true;
}

std::string_view file_system_of(std::string_view attributes) { return attributes.substr(0, kFileSystem); }

/// A connection and its calls, one after the other.
class Session {
 public:
  explicit Session(const Target& target) : timeout_(target.timeout) {
    std::tie(connection_, opened_) = open_tcp(target, true);
  }

  [[nodiscard]] bool is_open() const { return static_cast<bool>(connection_); }
  [[nodiscard]] NfsReply look_up(const std::string& path) const { return ask(nfs_lookup(path), false); }
  [[nodiscard]] NfsReply attributes(std::string_view handle) const { return ask(nfs_attributes(handle), true); }

 private:
  [[nodiscard]] NfsReply ask(const std::string& call, bool by_handle) const {
    if (!connection_) return {opened_, "", ""};
    std::string reply = exchange(connection_, call, kWord, timeout_);
    std::string_view mark(reply);
    const auto marked = take(mark);
    if (!marked) return {{Outcome::no_answer, "connected; the server said nothing"}, "", ""};
    const std::size_t size = std::min<std::size_t>(*marked & ~kLastPart, kLongestReply) + kWord;
    if (reply.size() < size) reply += exchange(connection_, "", size - reply.size(), timeout_);
    return nfs_answer(std::string_view(reply).substr(kWord), by_handle);
  }

  Seconds timeout_;
  Descriptor connection_;
  Tried opened_;
};

/// The content of the control's note.
struct Offered {
  std::string handle, attributes;
};

std::optional<Offered> offered_in(const NoteFolder& notes, Clock::time_point until) {
  const auto text = await_note(notes, kFileHandle, until);
  const auto end = text ? text->find('\n') : std::string::npos;
  if (end == std::string::npos) return std::nullopt;
  const auto handle = from_hexadecimal(text->substr(0, end)), attributes = from_hexadecimal(text->substr(end + 1));
  if (!handle || !attributes) return std::nullopt;
  return Offered{*handle, *attributes};
}

/// An attempt by `handle`: answered only by the attributes of the offered one, not by those of another file.
Tried tried_by(const Session& session, std::string_view handle, const Offered& offered, std::string_view own,
               std::string_view what) {
  const NfsReply reply = session.attributes(handle);
  const Outcome outcome = reply.tried.outcome;
  if (outcome != Outcome::answered) return {outcome, fmt::format("{}: {}", what, reply.tried.evidence)};
  if (reply.attributes == offered.attributes)
    return {Outcome::answered, fmt::format("NFS gave its attributes by {}", what)};
  if (reply.attributes == own) return {Outcome::refused, fmt::format("{}: that of its own export", what)};
  return {Outcome::unclear, fmt::format("NFS gave attributes of another file by {}", what)};
}

/// Attempts by handles that begin as that of the node's own export.
Tried tried_mixed(const Session& session, const std::string& own_path, const Offered& offered) {
  const NfsReply own = session.look_up(own_path);
  if (own.tried.outcome != Outcome::answered)
    return {own.tried.outcome == Outcome::no_answer ? Outcome::no_answer : Outcome::unclear,
            fmt::format("its own export {}: {}", own_path, own.tried.evidence)};
  if (file_system_of(own.attributes) != file_system_of(offered.attributes))
    return {Outcome::refused, fmt::format("{} has another fsid", own_path)};
  Tried tried{Outcome::unclear, fmt::format("none to mix with that of {}: name folders below the exports", own_path)};
  for (const auto& handle : mixed_handles(own.handle, offered.handle)) {
    tried = tried_by(session, handle, offered, own.attributes, fmt::format("a handle mixed with that of {}", own_path));
    if (tried.outcome != Outcome::refused) break;
  }
  return tried;
}

}  // namespace

std::string nfs_lookup(std::string_view path) {
  std::string operations;
  std::uint32_t parts = 0;
  put(operations, kPutRootHandle);
  while (!path.empty()) {
    const auto end = std::min(path.find('/'), path.size());
    if (end > 0) {
      put(operations, kLookUp);
      put_text(operations, path.substr(0, end));
      ++parts;
    }
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  put(operations, kGetHandle);
  put_attributes(operations);
  return call_of(parts + 3, operations);
}

std::string nfs_attributes(std::string_view handle) {
  std::string operations;
  put(operations, kPutHandle);
  put_text(operations, handle);
  put_attributes(operations);
  return call_of(2, operations);
}

NfsReply nfs_answer(std::string_view reply, bool by_handle) {
  const auto ended = [](Outcome outcome, std::string evidence) {
    return NfsReply{{outcome, std::move(evidence)}, "", ""};
  };
  NfsReply short_reply = ended(Outcome::unclear, "the reply is none of RPC");
  const auto xid = take(reply), kind = take(reply), denied = take(reply);
  if (!denied || xid != kXid || kind != kReply) return short_reply;
  if (*denied == kDenied) {
    const auto why = take(reply), error = take(reply);
    if (why == kAuthError && error) return ended(Outcome::refused, fmt::format("RPC authentication error {}", *error));
    return ended(Outcome::unclear, "RPC does not take the version of the call");
  }
  (void)take(reply);  // kind of the verifier
  if (!take_text(reply)) return short_reply;
  const auto accepted = take(reply);
  if (accepted != 0U) return ended(Outcome::unclear, fmt::format("RPC status {}", accepted.value_or(0)));
  const auto status = take(reply);
  if (!status) return short_reply;
  for (const auto& [number, name, of_handles] : kRefusals)
    if (number == *status && (by_handle || !of_handles)) return ended(Outcome::refused, name);
  if (*status != 0) return ended(Outcome::unclear, fmt::format("NFS status {}", *status));
  NfsReply found = ended(Outcome::answered, by_handle ? "NFS gave attributes" : "NFS gave a file handle");
  if (!take_results(reply, found) || found.attributes.empty() || found.handle.empty() != by_handle)
    return ended(Outcome::unclear, "the reply of NFS is not complete");
  return found;
}

std::vector<std::string> mixed_handles(std::string_view own, std::string_view other) {
  std::vector<std::string> mixed;
  if (own.size() != other.size()) return mixed;
  std::size_t equal = 0;
  bool is_first = true;
  for (std::size_t i = 0; i < own.size() && mixed.size() < kMostMixed; ++i) {
    if (own[i] == other[i]) {
      ++equal;
      continue;
    }
    if (!is_first && equal >= 2) mixed.push_back(std::string(own.substr(0, i)).append(other.substr(i)));
    is_first = false, equal = 0;
  }
  return mixed;
}

Tried try_nfs(const Target& target, const std::string& path) { return Session(target).look_up(path).tried; }

Tried try_handle(const Target& target, const std::string& path, const std::string& own, const NoteFolder& notes,
                 Clock::time_point until) {
  const Session session(target);
  Tried by_name = session.look_up(path).tried;
  if (!session.is_open() || by_name.outcome != Outcome::refused) return by_name;
  const auto offered = offered_in(notes, until);
  if (!offered)
    return {Outcome::unclear, fmt::format("{}; no handle of it came into {}", by_name.evidence, notes.folder)};
  Tried tried = tried_by(session, offered->handle, *offered, "", "its handle");
  std::istringstream exports(tried.outcome == Outcome::refused ? own : "");
  for (std::string one; tried.outcome != Outcome::answered && exports >> one;) {
    const Tried mixed = tried_mixed(session, one, *offered);
    const bool open = mixed.outcome == Outcome::answered;  // else the less clear outcome
    tried = {open ? mixed.outcome : std::max(tried.outcome, mixed.outcome),
             fmt::format("{}; {}", tried.evidence, mixed.evidence)};
  }
  return {tried.outcome, fmt::format("{}; {}", by_name.evidence, tried.evidence)};
}

Tried offer_handle(const Target& target, const std::string& path, const NoteFolder& notes, Clock::time_point until) {
  const Session session(target);
  const NfsReply found = session.look_up(path);
  if (found.tried.outcome != Outcome::answered) return found.tried;
  const Tried tried = tried_by(session, found.handle, {found.handle, found.attributes}, "", "its handle");
  if (tried.outcome != Outcome::answered) return tried;
  const Note note(notes, kFileHandle, to_hexadecimal(found.handle) + "\n" + to_hexadecimal(found.attributes));
  sleep_until_stopped(until - Clock::now());
  return tried;
}

}  // namespace assay::crossing
