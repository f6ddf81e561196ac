// protocol_cases: operations of one rank on a name through one protocol, and their effect for another rank through
// another.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "probes/core/rendezvous.h"
#include "workloads/protocols/s3_client.h"
#include "workloads/storage/shared/consistency_look.h"

namespace assay::protocols {

/// One way to the store; names are below the folder of the run. Calls throw std::system_error or S3Refused.
struct StoreAccess {
  std::string word;  ///< "posix" or "s3"
  std::function<std::string(const std::string& name, const cluster_storage::Content& bytes)>
      write;  ///< its ETag, if there are some
  std::function<std::optional<cluster_storage::Content>(const std::string& name)> read;
  std::function<std::optional<std::uint64_t>(const std::string& name)> size;
  std::function<bool(const std::string& name)> lists;
  std::function<void(const std::string& name)> remove;
};

/// Through the file system at `folder`; every write is synced.
StoreAccess posix_access(const std::string& folder);
/// Through S3, under keys that begin with `prefix`. The client must outlive it.
StoreAccess s3_access(S3Client& client, const std::string& prefix);

/// Settings of all rounds.
struct ProtocolSettings {
  std::size_t size = 0;  ///< B of a file; those that overwrite it have half of that
  Seconds wait;
  std::uint64_t nonce = 0;
  std::vector<std::string> names;  ///< of the ranks
};

/// Makes the cases; every rank makes the same calls.
class ProtocolCases {
 public:
  ProtocolCases(Rendezvous& group, ProtocolSettings settings, StoreAccess posix, S3Client& client, std::string prefix)
      : group_(group),
        settings_(std::move(settings)),
        posix_(std::move(posix)),
        client_(client),
        prefix_(std::move(prefix)),
        s3_(s3_access(client_, prefix_)) {}
  /// Every rank acts on names of its own and looks at those of the rank `shift` before it.
  void round(std::uint64_t number, int shift);
  /// This rank's tallies, by case: "posix_to_s3.overwrite".
  [[nodiscard]] const std::map<std::string, cluster_storage::CaseTally>& tallies() const { return tallies_; }

 private:
  struct Turn;
  bool attempt(const std::string& which, const std::function<void()>& work, const std::string& who);
  void act_and_look(const Turn& turn, const std::string& act, const std::function<void()>& work,
                    const std::vector<std::pair<std::string, std::function<cluster_storage::Look()>>>& looks);
  void through(Turn turn, const StoreAccess& writer, const StoreAccess& reader);
  void same_etag(const Turn& turn, const std::string& mine);
  [[nodiscard]] cluster_storage::Content content(std::uint64_t rank, std::uint64_t step, std::size_t size) const;

  Rendezvous& group_;
  ProtocolSettings settings_;
  StoreAccess posix_;
  S3Client& client_;
  std::string prefix_;
  StoreAccess s3_;
  std::map<std::string, cluster_storage::CaseTally> tallies_;
};

}  // namespace assay::protocols
