#!/bin/bash
# Compiles one preset: compile.sh PRESET. Prints ninja's progress.
set -euo pipefail
# shellcheck source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$repo"

preset=${1:?the preset is missing}
known=$(/usr/bin/python3 -c 'import json
print(*(p["name"] for p in json.load(open("CMakePresets.json"))["buildPresets"]))')
if [[ " $known " != *" $preset "* ]]; then
    note "there is no preset '$preset'; known: $known"
    exit 2
fi

folder=build/$preset
mkdir -p "$folder"
exec 9>"$folder/.lock" # an earlier compilation whose `dev` was killed may still be writing there
flock --nonblock 9 || { echo "waiting for another compilation of $preset"; flock 9; }

# One compiler needs up to 1 GB (the files that include Beast).
memory_gb=$(awk '/^MemAvailable/ { print int($2 / 1048576) }' /proc/meminfo)
jobs=$(nproc)
[ "$memory_gb" -ge "$jobs" ] || jobs=$((memory_gb > 0 ? memory_gb : 1))

if [ ! -e "$folder/build.ninja" ] || [ CMakePresets.json -nt "$folder/build.ninja" ]; then
    cmake --preset "$preset" || cmake --fresh --preset "$preset" # a killed configuration leaves half a cache
    touch "$folder/build.ninja"
fi
exec cmake --build --preset "$preset" --parallel "$jobs"
