// verify_text: the page itself.
#include "reports/dossier/verify_text.h"

#include <fmt/format.h>

#include "reports/dossier/dsse.h"
#include "reports/dossier/statement.h"

namespace assay::dossier {

std::string verify_text() {
  return fmt::format(R"page(How to verify this dossier
==========================

With assay (this is the full check: it also judges the evidence again):

  assay-report verify . --key /path/to/signer.pub

Use a public key that you got from the signer by another way. The file signer.pub in
this folder is a hint only: whoever forges a dossier can put his own key here.

Without assay, with openssl (3.0 or later), jq and coreutils. The commands check the
signature, that the manifest is the signed one, that every file is as the manifest says
and that no file was added. They do not judge the evidence again, and jq accepts
spellings of JSON that assay-report refuses. Run them in this folder, with SIGNER set to
the public key you trust and as many as you like of them at once; each must succeed.
When there are several signatures, set N to 0, 1, … and SIGNER to the key of each.

    set -eu
    N=${{N:-0}}
    T={0}
    W=$(mktemp -d)

The signature is over the payload with its type, in DSSE's pre-authentication encoding:

    test "$(jq -r .payloadType statement.dsse.json)" = "$T"
    jq -j .payload statement.dsse.json | base64 -d > "$W/payload"
    {{ printf 'DSSEv1 %d %s %d ' "${{#T}}" "$T" "$(stat -c %s "$W/payload")"; cat "$W/payload"; }} > "$W/signed"
    jq -j ".signatures[$N].sig" statement.dsse.json | base64 -d > "$W/signature"
    openssl pkeyutl -verify -pubin -inkey "$SIGNER" -rawin -in "$W/signed" -sigfile "$W/signature"

It must be the statement of an acceptance, and nothing else:

    test "$(jq -r ._type "$W/payload")" = {1}
    test "$(jq -r .predicateType "$W/payload")" = {2}

The manifest must be the signed one, whole:

    test "$(sha256sum < MANIFEST.sha256 | cut -c 1-64)" = "$(jq -r .predicate.evidence.manifestSha256 "$W/payload")"
    test "$(wc -l < MANIFEST.sha256)" = "$(jq -r .predicate.evidence.fileCount "$W/payload")"

Every file must be as the manifest says, with nothing extra but the statement and the
manifest itself, and no links:

    sha256sum --strict --quiet -c MANIFEST.sha256
    test "$(find . -type f | wc -l)" = "$(($(wc -l < MANIFEST.sha256) + 2))"
    test -z "$(find . ! -type d ! -type f)"

Then this is what was signed:

    jq -r '.predicate | .verdict.overall, .verdict.reason, "issued " + .issuedAt' "$W/payload"
    rm -r "$W"
)page",
                     kPayloadType, kStatementType, kPredicateType);
}

}  // namespace assay::dossier
