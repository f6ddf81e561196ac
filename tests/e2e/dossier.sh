#!/bin/sh
# dossier.sh ASSAY_REPORT MAKE_RUN: the command line from run to verified dossier, and VERIFY.txt with foreign tools only.
set -eu
report=$1 make_run=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

fail() { echo "FAILED: $*" >&2; exit 1; }
# expect CODE command...: runs it and compares the exit code; its output is in out and err.
expect() {
  code=$1; shift
  set +e; "$@" >out 2>err; got=$?; set -e
  [ "$got" = "$code" ] || { cat out err >&2; fail "exit code $got, not $code: $*"; }
}
said() { grep -qF -- "$1" out err || { cat out err >&2; fail "does not say: $1"; }; }

"$make_run" accepted run
expect 0 "$report" keygen signer.key
[ "$(stat -c %a signer.key)" = 600 ] || fail "the private key is readable by others"
fingerprint=$(cat out)
expect 0 "$report" fingerprint signer.key.pub; said "$fingerprint"
expect 2 "$report" keygen signer.key; said "File exists"
echo "open sesame" >pass
expect 0 "$report" keygen other.key --passphrase-file pass

expect 4 "$report" sign run --key signer.key; said "report.html: is missing"
expect 0 "$report" report run --self-signed "$fingerprint"
expect 0 "$report" sign run --key signer.key --self-signed --name "Ada Example"; said run/dossier
expect 2 "$report" sign run --key signer.key --self-signed; said "exists already"
expect 0 "$report" verify run/dossier --key signer.key.pub
said "verified: accepted"; said "Ada Example"; said "SELF-SIGNED"; said "$fingerprint"
expect 4 "$report" verify run/dossier --key signer.key.pub --key other.key.pub; said "refused: statement.dsse.json: has no valid signature"
expect 2 "$report" sign run/dossier --add --key other.key; said "--passphrase-file"
expect 2 "$report" sign run/dossier --add --key other.key --passphrase-file pass; said "--with-key"
expect 2 "$report" sign run/dossier --key signer.key --nodes n01; said "--add"
expect 0 "$report" sign run/dossier --add --key other.key --passphrase-file pass --with-key signer.key.pub --nodes n01,n02,n03
said "verified: accepted"; said "no deviations"; said "signed run/dossier with the key"
expect 0 "$report" verify run/dossier --key signer.key.pub --key other.key.pub --json
jq -e '.verified and .overall == "accepted" and (.signers | length) == 2 and .other_signatures == 0' out >/dev/null || fail "--json"

expect 2 "$report" verfy; said "did you mean 'verify'?"
expect 2 "$report" verify run/dossier --key signer.key.pub --jsn; said "did you mean '--json'?"
expect 2 "$report" verify run/dossier; said "--key"
expect 2 "$report" verify nowhere --key signer.key.pub; said "nowhere: is not a folder"
expect 2 "$report" verify run/dossier --key pass; said "is not a public key in PEM"
expect 2 "$report"; said "--help"
expect 0 "$report" --help; said "Example:"
[ "$(wc -l <out)" -le 30 ] || fail "--help does not fit one screen"

# The commands of VERIFY.txt, as a reader would copy them.
sed -n 's/^    //p' run/dossier/VERIFY.txt >commands
[ "$(wc -l <commands)" -ge 15 ] || fail "VERIFY.txt has lost its commands"
by_hand() { (cd "$1" && env SIGNER="$2" N="$3" sh "$work/commands"); }
expect 0 by_hand run/dossier "$work/signer.key.pub" 0; said accepted
expect 0 by_hand run/dossier "$work/other.key.pub" 1
refused_by_hand() {
  set +e; by_hand "$@" >out 2>err; got=$?; set -e
  [ "$got" != 0 ] || { cat out >&2; fail "VERIFY.txt takes $what"; }
}
# refuse WHAT: `bad`, a changed copy of the dossier, must be refused by both ways; then it is made anew.
refuse() {
  what=$1
  refused_by_hand bad "$work/signer.key.pub" 0
  expect 4 "$report" verify bad --key signer.key.pub; said "refused: "
  rm -rf bad; cp -r run/dossier bad
}
what="a wrong key"; refused_by_hand run/dossier "$work/other.key.pub" 0
cp -r run/dossier bad
echo >>bad/evidence/plan.json; refuse "a changed file"
echo >bad/evidence/extra; refuse "an extra file"
rm bad/evidence/journal.jsonl; refuse "a missing file"
cp run/plan.json .; rm bad/evidence/plan.json; ln -s "$work/plan.json" bad/evidence/plan.json; refuse "a link"
sed -i '$d' bad/MANIFEST.sha256; refuse "a truncated manifest"
ln bad/evidence/plan.json second; refuse "a second hard link"
mkdir bad/evidence/ACCEPTED; refuse "an empty folder"
printf '}' >>bad/statement.dsse.json; refuse "a brace behind the envelope"
printf '\357\273\277' | cat - run/dossier/statement.dsse.json >bad/statement.dsse.json; refuse "a byte order mark"
jq -c '.payloadType = "text/plain"' run/dossier/statement.dsse.json >bad/statement.dsse.json; refuse "another payload type"
jq -c '.payload |= (@base64d | sub("\"accepted\"";"\"rejected\"") | @base64)' run/dossier/statement.dsse.json >bad/statement.dsse.json; refuse "another payload"
echo "all claims hold"
