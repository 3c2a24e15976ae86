#!/bin/bash
# Makes the storage pool and imports the base image; quick when both are there.
set -euo pipefail
# shellcheck source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

exec "$installed/bin/cloister-warden" prepare --data "$data" --runtime "$installed/runtime" \
    --image "$(image_path)"
