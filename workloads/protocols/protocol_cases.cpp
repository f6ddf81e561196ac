// protocol_cases: the same acts and looks for each pair of protocols.
#include "workloads/protocols/protocol_cases.h"

#include <algorithm>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <cerrno>

#include <fmt/format.h>

#include "workloads/storage/shared/direct_file.h"
#include "workloads/storage/shared/payload.h"
#include "workloads/storage/shared/storage_file.h"

namespace assay::protocols {
namespace {

constexpr std::uint64_t kContents = 8;  // of one rank in one round, at most

cluster_storage::Look judge_size(std::optional<std::uint64_t> found, std::uint64_t now, std::uint64_t before) {
  if (found == now) return {};
  if (!found) return {cluster_storage::Seen::old, "no size is reported, as of a missing name"};
  const auto seen = *found == before || *found == 0 ? cluster_storage::Seen::old : cluster_storage::Seen::wrong;
  return {seen, fmt::format("its size is reported as {} B and is {} B", *found, now)};
}

cluster_storage::Look judge_listing(bool found, bool now) {
  if (found == now) return {};
  return {cluster_storage::Seen::old, now ? "it is not listed" : "it is still listed"};
}

}  // namespace

StoreAccess posix_access(const std::string& folder) {
  const auto path = [folder](const std::string& name) { return folder + "/" + name; };
  return {.word = "posix",
          .write =
              [path](const std::string& name, const cluster_storage::Content& bytes) {
                cluster_storage::write_durably(path(name), O_CREAT | O_TRUNC, bytes);
                return std::string();
              },
          .read = [path](const std::string& name) { return cluster_storage::content_on_storage(path(name)); },
          .size = [path](const std::string& name) -> std::optional<std::uint64_t> {
            struct stat found = {};
            if (lstat(path(name).c_str(), &found) == 0) return static_cast<std::uint64_t>(found.st_size);
            if (errno == ENOENT) return std::nullopt;
            throw std::system_error(errno, std::generic_category(), "stat " + path(name));
          },
          .lists =
              [folder](const std::string& name) {
                const auto names = cluster_storage::names_on_storage(folder);
                return std::ranges::find(names, name) != names.end();
              },
          .remove = [path](const std::string& name) { cluster_storage::unlink_on_storage(path(name)); }};
}

StoreAccess s3_access(S3Client& client, const std::string& prefix) {
  return {
      .word = "s3",
      .write = [&client, prefix](const std::string& name,
                                 const cluster_storage::Content& bytes) { return client.put(prefix + name, bytes); },
      .read = [&client, prefix](const std::string& name) -> std::optional<cluster_storage::Content> {
        auto found = client.get(prefix + name);
        return found ? std::optional(std::move(found->body)) : std::nullopt;
      },
      .size = [&client, prefix](const std::string& name) { return client.size(prefix + name); },
      .lists = [&client, prefix](const std::string& name) { return client.lists(prefix + name); },
      .remove = [&client, prefix](const std::string& name) { client.remove(prefix + name); }};
}

/// The acting and the looking rank, and the name.
struct ProtocolCases::Turn {
  std::uint64_t round = 0, self = 0, writer = 0;
  std::string who;          ///< writer and reader
  std::string pair;         ///< "posix_to_s3"
  std::uint64_t first = 0;  ///< number of its first content
};

cluster_storage::Content ProtocolCases::content(std::uint64_t rank, std::uint64_t step, std::size_t size) const {
  cluster_storage::Content bytes(size);
  cluster_storage::fill_payload({.rank = rank, .step = step, .nonce = settings_.nonce}, 0, bytes);
  return bytes;
}

/// Does `work`; whether the store refused none of it. A refusal is counted.
bool ProtocolCases::attempt(const std::string& which, const std::function<void()>& work, const std::string& who) {
  std::string why;
  try {
    work();
    return true;
  } catch (const std::system_error& error) {
    why = error.what();
  } catch (const S3Refused& error) {
    why = error.what();
  }
  tallies_[which].fault(&cluster_storage::CaseTally::failures, fmt::format("{}: refused: {}", who, why));
  return false;
}

/// Every rank acts on its own name; then each looks at its writer's, where the act was not refused.
void ProtocolCases::act_and_look(
    const Turn& turn, const std::string& act, const std::function<void()>& work,
    const std::vector<std::pair<std::string, std::function<cluster_storage::Look()>>>& looks) {
  const bool mine = attempt(turn.pair + "." + act, work, settings_.names[turn.self]);
  const auto done = group_.all_gather(mine ? "1" : "0");
  for (const auto& [name, look] : looks) {
    const std::string which = turn.pair + "." + name;
    if (done[turn.writer] == "1")
      attempt(
          which, [&, &by = look] { cluster_storage::check_until_right(tallies_[which], by, settings_.wait, turn.who); },
          turn.who);
  }
  group_.barrier();
}

/// The ETag that PUT returned to the writer is the one that another rank gets with the object.
void ProtocolCases::same_etag(const Turn& turn, const std::string& mine) {
  const auto told = group_.all_gather(mine);
  const std::string theirs = fmt::format("{}{}-{:04}-{:06}", prefix_, turn.pair, turn.round, turn.writer);
  const std::string& expected = told[turn.writer];
  const std::string which = turn.pair + ".etag";
  const auto look = [&]() -> cluster_storage::Look {
    const auto found = client_.get(theirs);
    if (found && found->etag == expected) return {};
    return {found ? cluster_storage::Seen::wrong : cluster_storage::Seen::old,
            found ? fmt::format("its ETag is {} and was reported as {}", found->etag, expected)
                  : "there is no such object"};
  };
  if (!expected.empty())
    attempt(
        which, [&] { cluster_storage::check_until_right(tallies_[which], look, settings_.wait, turn.who); }, turn.who);
  group_.barrier();
}

void ProtocolCases::through(Turn turn, const StoreAccess& writer, const StoreAccess& reader) {
  turn.pair = writer.word + "_to_" + reader.word;
  const auto name_of = [&](std::uint64_t rank) { return fmt::format("{}-{:04}-{:06}", turn.pair, turn.round, rank); };
  const std::string mine = name_of(turn.self), theirs = name_of(turn.writer);
  const std::size_t half = settings_.size / 2;
  const cluster_storage::Content old = content(turn.writer, turn.first, settings_.size),
                                 now = content(turn.writer, turn.first + 1, half);
  std::string etag;
  act_and_look(turn, "new", [&] { (void)writer.write(mine, content(turn.self, turn.first, settings_.size)); },
               {{"new", [&] { return cluster_storage::judge_content(reader.read(theirs), old, std::nullopt); }},
                {"listing", [&] { return judge_listing(reader.lists(theirs), true); }}});
  act_and_look(turn, "overwrite", [&] { etag = writer.write(mine, content(turn.self, turn.first + 1, half)); },
               {{"overwrite", [&] { return cluster_storage::judge_content(reader.read(theirs), now, old); }},
                {"size", [&] { return judge_size(reader.size(theirs), half, settings_.size); }}});
  if (writer.word == "s3" && reader.word == "s3") same_etag(turn, etag);
  act_and_look(turn, "remove", [&] { writer.remove(mine); },
               {{"remove", [&] { return cluster_storage::judge_content(reader.read(theirs), std::nullopt, now); }},
                {"listing", [&] { return judge_listing(reader.lists(theirs), false); }}});
}

void ProtocolCases::round(std::uint64_t number, int shift) {
  const auto world = static_cast<std::uint64_t>(group_.world());
  const auto self = static_cast<std::uint64_t>(group_.rank());
  const std::uint64_t writer = (self + world - static_cast<std::uint64_t>(shift)) % world;
  Turn turn{.round = number,
            .self = self,
            .writer = writer,
            .who = fmt::format("{} to {}", settings_.names[writer], settings_.names[self]),
            .pair = "",
            .first = number * kContents};
  through(turn, posix_, s3_);
  turn.first += 2;
  through(turn, s3_, posix_);
  turn.first += 2;
  through(turn, s3_, s3_);
}

}  // namespace assay::protocols
