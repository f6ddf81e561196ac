// services: attempts that ask a service over HTTP, S3 or IPMI. Nothing is written, and no login made.
#pragma once

#include <string>

#include "workloads/crossing/tried.h"
#include "workloads/protocols/s3_client.h"

namespace assay::crossing {

/// GET of `path` over HTTP. Answered with a status from 200 to 299; refused by 401 and 403; no_answer where the
/// connection was accepted and nothing said.
Tried try_http(const Target& target, const std::string& path);

/// The same over HTTPS, whose certificate is not checked: nothing secret is sent.
Tried try_https(const Target& target, const std::string& path);

/// Lists at most one key of the bucket, signed with the own key; of no bucket as try_https. `endpoint` of it has
/// only the scheme. Unclear where the store does not know that key: it then says no to everyone.
Tried try_s3(const Target& target, protocols::S3Bucket bucket, const std::string& path = "");

/// One IPMI request that needs no session, Get Channel Authentication Capabilities (IPMI v2.0, 13.14 and 22.13).
Tried try_ipmi(const Target& target);

/// The outcome by a status of HTTP, and the word of an error of S3, if there is one.
Tried of_status(long status, const std::string& code = "");

}  // namespace assay::crossing
