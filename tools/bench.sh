#!/bin/bash
# Builds the release programs and measures them: bench.sh [ROW…]. The work is bench/run.py.
set -euo pipefail
# shellcheck source=setup/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/setup/lib.sh"

"$repo/tools/setup/preflight.sh"
need_packages build test
steps_begin
step_start "compile release" as_owner "$repo/tools/setup/compile.sh" release
step_start "base image" "$repo/images/build" --cache "$cache"
steps_wait
"$repo/tools/setup/user.sh"
CLOISTER_CACHE=$cache CLOISTER_BIN=$repo/build/release/bin CLOISTER_IMAGE=$(image_path) exec /usr/bin/python3 "$repo/bench/run.py" "$@"
