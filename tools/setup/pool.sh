#!/bin/bash
# Makes the storage pool and imports the images; quick when both are there.
set -euo pipefail
# shellcheck source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# A running service holds the pool and prepares it itself when it starts.
lock=$data/run/warden.lock
if [ -e "$lock" ] && ! flock --nonblock "$lock" true; then
    echo "the running service holds the pool"
    exit 0
fi

mapfile -t -d : images < <(printf '%s' "$(image_paths)")
exec "$installed/bin/cloister-warden" prepare --data "$data" --runtime "$installed/runtime" \
    "${images[@]/#/--image=}"
