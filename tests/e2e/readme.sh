#!/bin/bash
# readme.sh ASSAY README WITH-CUDA: the probe table of the README is what the probes say of themselves. In a build without
# CUDA (OFF) the rows of the probes that need it to be built are left out of the comparison.
set -euo pipefail
table=$(sed -n '/<!-- probes:/,/<!-- \/probes -->/p' "$2" | sed '1d;$d')
[ -n "$table" ] || { echo "README has no probe table"; exit 1; }
[ "$3" = ON ] || table=$(grep -Ev '^\| `(cuda|nccl)_' <<<"$table")
diff <("$1" list --markdown) <(echo "$table") || { echo "hint: put the output of \`assay list --markdown\` between the markers"; exit 1; }
