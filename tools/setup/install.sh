#!/bin/bash
# Installs root's own copy of the programs and, for the user behind sudo, the right to start them.
set -euo pipefail
# shellcheck source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

main() {
    "$repo/tools/setup/user.sh"
    install -d -m 755 "$installed" "$installed/bin"
    local program
    for program in "$programs"/cloister*; do
        [[ $program == *_test ]] || replace "$program" "$installed/bin/$(basename "$program")" 755
    done
    replace_runtime
    start_service_script >"$installed/.start-service"
    ln -sfn "$installed/bin/cloister" /usr/local/bin/cloister
    allow_start
    # Last: this file says that the rest is there.
    replace "$installed/.start-service" "$installed/start-service" 755
    rm -f "$installed/.start-service"
}

# A file that is the same stays; another one is replaced in one rename, so that whoever runs it is not disturbed.
replace() {
    ! cmp -s "$1" "$2" || return 0
    install -m "$3" "$1" "$2.new"
    mv "$2.new" "$2"
    echo "installed $2"
}

replace_runtime() {
    local from=$repo/build/release/runtime to=$installed/runtime
    ! diff -rq "$from" "$to" >/dev/null 2>&1 || return 0
    rm -rf "$to.new" "$to.old"
    cp -r --no-preserve=ownership "$from" "$to.new"
    [ ! -e "$to" ] || mv "$to" "$to.old"
    mv "$to.new" "$to"
    rm -rf "$to.old"
    echo "installed $to"
}

# The one command that the user may run as root: no arguments, so nothing to abuse.
start_service_script() {
    cat <<SH
#!/bin/sh
# Starts Cloister's service in the background; it leaves after 10 idle minutes. Written by ./dev setup.
export CLOISTER_IMAGE='$(image_paths)'
exec $installed/bin/cloister serve --data '$data' --detach --quiet --idle-exit 600
SH
}

allow_start() {
    [ -n "${SUDO_UID:-}" ] && [ "$SUDO_UID" != 0 ] && [ -d /etc/sudoers.d ] || return 0
    # By number: a user's name may hold characters that mean something here. "" allows no argument.
    printf '%s\n' "# Written by Cloister's ./dev setup." "#$SUDO_UID ALL=(root) NOPASSWD: $installed/start-service \"\"" |
        install -m 440 /dev/stdin "$sudoers.new~" # sudo reads no file with a dot or a tilde in its name
    visudo -cqf "$sudoers.new~"
    mv "$sudoers.new~" "$sudoers"
}

main
