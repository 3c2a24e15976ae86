#!/bin/bash
# Bash: a report from a CSV with the usual tools, a function, arguments and an exit code.
#
#   ./dev run --file examples/sales.csv examples/sales_report.sh Coffee Tea
set -euo pipefail

total() { # of a product
    awk -F, -v product="$1" '$3 == product { sum += $4 * $5 } END { printf "%.1f", sum }' sales.csv
}

cat <<END
$(($(wc -l < sales.csv) - 1)) sales in $(cut -d, -f2 sales.csv | tail -n +2 | sort -u | wc -l) regions
END

for product in "$@"; do
    printf '%-8s%8s\n' "$product" "$(total "$product")"
done

best=$(for product in "$@"; do echo "$(total "$product") $product"; done | sort -rn | head -1)
echo "best: ${best#* }"
[[ ${best#* } == Coffee ]] || exit 3
