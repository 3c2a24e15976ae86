#!/bin/bash
# Checks the form of everything: lint.sh; or formats the C++ code: lint.sh --format.
# Exit codes: 0 clean, 1 something is not (all checks run, so that all of it is named at once).
set -euo pipefail
# shellcheck source=setup/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/setup/lib.sh"
cd "$repo"

failed=()
check() {
    local name=$1 begin=$SECONDS
    shift
    if "$@"; then
        printf '  %-14s clean %4d s\n' "$name" $((SECONDS - begin))
    else
        failed+=("$name")
        printf '  %-14s FAILED\n' "$name"
    fi
}

cpp_files() { find src fuzz tests -name '*.h' -o -name '*.cc' -o -name '*.c'; }

bash_files() {
    grep -rlE --exclude-dir={.git,build,node_modules} -m1 '^#!/bin/bash|^# shellcheck shell=bash' . | sort
}

format() { cpp_files | xargs clang-format-19 "$@"; }

# clang-tidy needs the compile commands, which the configuration writes; nothing is compiled for it, so there
# are no precompiled headers either.
tidy_cpp() {
    as_owner cmake --preset dev -B build/lint -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON >/dev/null
    find src -name '*.cc' -print0 |
        xargs -0 -P "$(nproc)" -n 1 clang-tidy-19 -p build/lint --quiet --warnings-as-errors='*' \
            --header-filter="^$repo/src/" 2>&1 | { grep -vE '^[0-9]+ warnings? (generated|treated)|^Suppressed|^Use -header-filter' || true; }
}

tidy_rules() { tools/tidy --headers; }

check_bash() { bash_files | xargs shellcheck; }

if [ "${1:-}" = --format ]; then
    format -i
    exit
fi
check clang-format format --dry-run -Werror
check tidy tidy_rules
check shellcheck check_bash
check clang-tidy tidy_cpp
[ ${#failed[@]} = 0 ] || fail "not clean: ${failed[*]}"
