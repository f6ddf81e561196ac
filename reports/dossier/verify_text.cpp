// verify_text: VERIFY.txt, how to check a dossier with openssl, jq and coreutils.
#include "reports/dossier/verify_text.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "orchestrator/files/digest.h"
#include "reports/dossier/dsse.h"
#include "reports/dossier/ssh_key.h"
#include "reports/dossier/statement.h"

namespace assay::dossier {

namespace {

/// With the payload type {0}, statement type {1}, predicate type {2} and namespace of SSH {3}.
constexpr const char* kPage = R"page(How to verify this dossier
==========================

With assay (the full check, which also judges the evidence again):

  assay-report verify . --key /path/to/signer.pub

Use a public key that you obtained from the signer through another channel. Do not trust
the file signer.pub in this folder: a forged dossier can contain the key of the forger.

Without assay, with openssl (3.0 or later), jq and coreutils: the commands check the
signature, the digest of the manifest, the digest of every file, and that no file was
added. They do not judge the evidence again, and jq accepts spellings of the signed JSON
that assay-report refuses. Run them in this folder in order, with SIGNER set to the path of
the trusted public key; each must succeed. For several signatures, repeat with N set to
0, 1, … and SIGNER set to the key of each.

    set -eu
    N=${{N:-0}}
    T={0}
    W=$(mktemp -d)

The envelope must be spelt as assay writes it: one JSON document, and not a byte before or after it:

    jq -cSj . statement.dsse.json | cmp - statement.dsse.json

The signature covers the payload and its type (DSSE pre-authentication encoding):

    test "$(jq -r .payloadType statement.dsse.json)" = "$T"
    jq -j .payload statement.dsse.json | base64 -d > "$W/payload"
    {{ printf 'DSSEv1 %d %s %d ' "${{#T}}" "$T" "$(stat -c %s "$W/payload")"; cat "$W/payload"; }} > "$W/signed"
    jq -j ".signatures[$N].sig" statement.dsse.json | base64 -d > "$W/signature"
    head -c 6 "$W/signature" | grep -qx SSHSIG && SSH=yes || SSH=

A signature by openssl, of a key on the curve P-384 with DIGEST set to sha384:

    test "$SSH" || openssl pkeyutl -verify -pubin -inkey "$SIGNER" -rawin ${{DIGEST:+-digest $DIGEST}} \
      -in "$W/signed" -sigfile "$W/signature"

A signature by an SSH agent; SIGNER is then the line of OpenSSH (id_ed25519.pub), and ssh-keygen checks it:

    {{ echo '-----BEGIN SSH SIGNATURE-----'; base64 -w 70 "$W/signature"; echo '-----END SSH SIGNATURE-----'; }} > "$W/armored"
    printf 'signer %s\n' "$(cat "$SIGNER")" > "$W/allowed"
    test -z "$SSH" || ssh-keygen -Y verify -f "$W/allowed" -I signer -n {3} -s "$W/armored" < "$W/signed"

The payload must be the statement of an acceptance test:

    test "$(jq -r ._type "$W/payload")" = "{1}"
    test "$(jq -r .predicateType "$W/payload")" = "{2}"

The manifest must be the signed one, with all of its lines:

    test "$(sha256sum < MANIFEST.sha256 | cut -c 1-64)" = "$(jq -r .predicate.evidence.manifestSha256 "$W/payload")"
    test "$(wc -l < MANIFEST.sha256)" = "$(jq -r .predicate.evidence.fileCount "$W/payload")"

Every file must match the manifest. The only other files are the statement and the
manifest; there are no links, no second hard links and no empty folders:

    sha256sum --strict --quiet -c MANIFEST.sha256
    test "$(find . -type f | wc -l)" = "$(($(wc -l < MANIFEST.sha256) + 2))"
    test -z "$(find . ! -type d ! -type f)"
    test -z "$(find . -type f -links +1)"
    test -z "$(find . -mindepth 1 -type d -empty)"

The signed verdict, its reason and its date. -a shows them as JSON in ASCII: text of a signer or
of a tested node must not reach the terminal as it is:

    jq -a '.predicate | .verdict.overall, .verdict.reason, .issuedAt' "$W/payload"
    rm -r "$W"
)page";

}  // namespace

std::string verify_text() { return fmt::format(kPage, kPayloadType, kStatementType, kPredicateType, kSshNamespace); }

bool is_verify_text(std::string_view sha256) {
  // Pages of earlier versions: of dossiers with signatures of openssl alone, and without the checks of spelling, hard
  // links and empty folders.
  constexpr std::string_view kEarlier[] = {"fdfd4a1d83837be4b01db91dff2c6d53c98f68acaf3b90e47df84a67a26c6ee2",
                                           "984d29959006ee95431fface9d2739987f03806d8fa9bd02398e63a6bd883676"};
  return sha256 == files::sha256(verify_text()) || std::ranges::find(kEarlier, sha256) != std::end(kEarlier);
}

}  // namespace assay::dossier
