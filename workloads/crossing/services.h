// services: attempts that ask a service, after the connection to it was accepted. Nothing is written, and no login
// made.
#pragma once

#include <string>

#include "workloads/crossing/tried.h"
#include "workloads/protocols/s3_client.h"

namespace assay::crossing {

/// Looks `path` of an export up by NFS 4.0 (RFC 7530): PUTROOTFH, a LOOKUP for each of its parts, GETFH. Answered with
/// a file handle; refused by NFS4ERR_PERM, NOENT, ACCESS or WRONGSEC, or by the authentication of RPC (RFC 5531).
Tried try_nfs(const Target& target, const std::string& path);

/// GET of `path` over HTTP. Answered with a status from 200 to 299; refused by 401 and 403; no_answer where the
/// connection was accepted and nothing said.
Tried try_http(const Target& target, const std::string& path);

/// The same over HTTPS, whose certificate is not checked: nothing secret is sent.
Tried try_https(const Target& target, const std::string& path);

/// Lists at most one key of the bucket, signed with the own key; of no bucket as try_https. `endpoint` of it has
/// only the scheme.
Tried try_s3(const Target& target, protocols::S3Bucket bucket, const std::string& path = "");

/// One IPMI request that needs no session, Get Channel Authentication Capabilities (IPMI v2.0, 13.14 and 22.13).
Tried try_ipmi(const Target& target);

/// The XDR bytes of the call that try_nfs makes, with its record mark.
std::string nfs_lookup(const std::string& path);
/// The outcome by a reply of RPC, without its record mark.
Tried nfs_answer(std::string_view reply);
/// The outcome by a status of HTTP.
Tried of_status(long status);

}  // namespace assay::crossing
