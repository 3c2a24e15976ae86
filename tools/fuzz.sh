#!/bin/bash
# Fuzzes what reads bytes that others wrote: fuzz.sh [NAME] [SECONDS]; without a name all of them, 60 s each.
# Inputs of interest are kept in build/fuzz/corpus/NAME, so that the next time goes on from there; what ended a
# fuzzer badly in build/fuzz/found. Exit codes: 0 nothing was found, 1 something was, 2 wrong usage.
set -euo pipefail
# shellcheck source=setup/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/setup/lib.sh"

names=$(cd "$repo/fuzz/corpus" && echo *)
wanted=$names
if [[ ${1:-} =~ [^0-9] ]]; then
    wanted=$1
    shift
fi
seconds=${1:-60}
if [[ " $names " != *" $wanted "* && $wanted != "$names" ]] || [[ ! $seconds =~ ^[0-9]+$ ]] || [ $# -gt 1 ]; then
    note "usage: ./dev fuzz [NAME] [SECONDS]; NAME is one of: $names"
    exit 2
fi

need_packages build test
step "compile fuzz" as_owner "$repo/tools/setup/compile.sh" fuzz

folder=$repo/build/fuzz
failed=
for name in $wanted; do
    as_owner mkdir -p "$folder/corpus/$name" "$folder/found" # new inputs go to the first folder of the command
    log=$folder/found/$name.log
    if as_owner "$folder/bin/fuzz_$name" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 \
        -print_final_stats=1 -artifact_prefix="$folder/found/$name-" \
        "$folder/corpus/$name" "$repo/fuzz/corpus/$name" >"$log" 2>&1; then
        printf '  %-16s clean, %s inputs\n' "$name" "$(awk '/number_of_executed_units/ { print $2 }' "$log")"
    else
        printf '  %-16s FOUND something:\n' "$name"
        grep -vE '^(INFO|#[0-9])' "$log" | head -n 30
        failed=yes
    fi
done
[ -z "$failed" ] || fail "the inputs are in $folder/found"
