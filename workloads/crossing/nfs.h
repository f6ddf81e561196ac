// nfs: an export asked for by its name and by its file handle (NFS 4.0, RFC 7530). Only attributes are read.
//
// A look-up by name gives a file handle, and each use of that should be decided again. A handle is no secret:
// it can be guessed, or kept from an earlier lease. So the control hands its own one over, as a guess that was right.
// Where the other tenant has an export of its own in the same file system, a second kind of guess is made. The first
// bytes of a handle are those of the export, the last ones those of the file; without a check that a file is below the
// export (the Linux server with no_subtree_check, nfs-ganesha) the first bytes of one export open files of another:
//
//   own handle      43 01 | 0002 | .. 00c1 7f3a ..
//   the path's      43 01 | 0001 | .. 0b24 11d0 ..
//   mixed           43 01 | 0002 | .. 0b24 11d0 ..
//
// No number is invented: each byte is of one of two handles of declared exports in the same file system.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "workloads/crossing/notes.h"
#include "workloads/crossing/tried.h"

namespace assay::crossing {

/// The reply of a server to a path or a handle.
struct NfsReply {
  Tried tried;
  std::string handle;      ///< empty if it was not asked for or not given
  std::string attributes;  ///< as they came: file system and number of the file
};

/// Looks `path` up: PUTROOTFH, a LOOKUP for each of its parts, GETFH, GETATTR. Answered with a file handle; refused by
/// NFS4ERR_PERM, NOENT, ACCESS or WRONGSEC, or by the authentication of RPC (RFC 5531).
Tried try_nfs(const Target& target, const std::string& path);

/// The same of the other tenant's node, and where the server refuses, by the handle that offer_handle gives (PUTFH,
/// GETATTR), then by handles mixed of it and that of each of `own`, exports of the node's tenant with a blank between
/// ("": none). Refused only where all are; NFS4ERR_STALE and BADHANDLE refuse a handle. Unclear without that handle,
/// and if none can be mixed in one file system. The first answer ends it.
Tried try_handle(const Target& target, const std::string& path, const std::string& own, const NoteFolder& notes,
                 Clock::time_point until);

/// The positive control of it: looks `path` up, reads the attributes by the handle, and offers that one until `until`.
Tried offer_handle(const Target& target, const std::string& path, const NoteFolder& notes, Clock::time_point until);

/// Handles that begin as `own` and end as `other`, from which they differ: one for each run of different bytes but the
/// first; two equal bytes end a run. At most four; none of different lengths.
std::vector<std::string> mixed_handles(std::string_view own, std::string_view other);

/// The XDR bytes of the calls, with their record mark.
std::string nfs_lookup(std::string_view path);
std::string nfs_attributes(std::string_view handle);
/// By a reply of RPC, without its record mark; `by_handle`: to nfs_attributes.
NfsReply nfs_answer(std::string_view reply, bool by_handle = false);

}  // namespace assay::crossing
