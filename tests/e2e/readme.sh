#!/bin/bash
# readme.sh ASSAY README: the probe table of the README is what the probes say of themselves.
set -euo pipefail
table=$(sed -n '/<!-- probes:/,/<!-- \/probes -->/p' "$2" | sed '1d;$d')
[ -n "$table" ] || { echo "README has no probe table"; exit 1; }
diff <("$1" list --markdown) <(echo "$table") || { echo "hint: put the output of \`assay list --markdown\` between the markers"; exit 1; }
