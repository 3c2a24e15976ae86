#!/bin/bash
# Builds what the tests need and runs them: test.sh [GROUP…] [--full]. The work is tools/test_runner.py.
set -euo pipefail
# shellcheck source=setup/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/setup/lib.sh"

# A misspelt group is an error before anything is installed or built.
check_groups() {
    local group
    for group in "$@"; do
        case $group in
            unit | api | escape | crash | conformance | sdk | e2b | --full) ;;
            *)
                note "there is no test group '$group'; known: unit api escape crash conformance sdk e2b"
                exit 2
                ;;
        esac
    done
}

check_groups "$@"
system=yes # all groups but `unit` make sandboxes: they need root and the image
[ "$*" != unit ] && [ "$*" != "unit --full" ] || system=no
[ $system = no ] || "$repo/tools/setup/preflight.sh"
need_packages build test
steps_begin
step_start "compile asan" as_owner "$repo/tools/setup/compile.sh" asan
[ $system = no ] || step_start "base image" "$repo/images/build" --cache "$cache"
steps_wait
[ $system = no ] || step "polyglot image" "$repo/images/layer" polyglot --cache "$cache"
[ $system = no ] || "$repo/tools/setup/user.sh"
CLOISTER_BIN=$repo/build/asan/bin CLOISTER_IMAGE=$(image_paths) \
    exec /usr/bin/python3 "$repo/tools/test_runner.py" "$@"
