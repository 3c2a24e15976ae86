#!/bin/bash
# Stops everything and removes all that the set-up made, also when it was cut off half-way.
# Debian packages stay; those that the set-up brought are listed at the end.
#   uninstall.sh [--yes]     --yes: do not ask
set -euo pipefail
# shellcheck source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

export LC_ALL=C # paths are bytes

main() {
    confirm "$@"
    "$programs/cloister" stop --data "$data" >/dev/null 2>&1 || true
    kill_service
    remove_cgroups
    remove_mounts
    rm -rf "$data" "$cache" "$installed" "$sudoers" "$sudoers.new~" "$repo/build/log" "$stamp" "$stamp.begun" /run/cloister-ids /run/cloister-setup.lock
    [ ! -L /usr/local/bin/cloister ] || rm -f /usr/local/bin/cloister
    remove_user
    note "Cloister is removed; the clone and its build/ are left"
    if [ -s "$installed_packages" ]; then
        note "the set-up had installed these Debian packages, which stay: $(paste -sd' ' "$installed_packages")"
        rm -f "$installed_packages"
    fi
}

confirm() {
    case ${1:-} in
        --yes) ;;
        '')
            [ -t 0 ] || { note "there is no terminal to ask on; say --yes"; exit 2; }
            echo "This stops every sandbox and removes $data (all files of all sandboxes), $cache, $installed," >&2
            read -r -p "the system user cloister and $sudoers. Go on? [y/N] " answer
            [[ $answer == [yY]* ]] || fail "nothing was removed"
            ;;
        *)
            note "uninstall knows only --yes"
            exit 2
            ;;
    esac
    [ "$EUID" = 0 ] || lacking "removing needs root; run: sudo ./dev uninstall"
}

# Ours are the programs that run on this data directory, or from root's own copy. Other instances
# (a test's, another clone's) stay.
service_pids() {
    local process
    for process in /proc/[0-9]*; do
        if tr '\0' '\n' <"$process/cmdline" 2>/dev/null | grep -qxF -- "$data" ||
            [[ $(readlink "$process/exe" 2>/dev/null) == "$installed"/bin/* ]] ||
            [ -n "$(find "$process/fd" -maxdepth 1 -lname "$data/*" -print -quit 2>/dev/null)" ]; then
            [ "${process#/proc/}" = $$ ] || echo "${process#/proc/}"
        fi
    done 2>/dev/null
}

kill_service() {
    local pids
    for _ in 1 2 3; do # a supervisor may start something between the look and the kill
        mapfile -t pids < <(service_pids)
        [ ${#pids[@]} -gt 0 ] || return 0
        kill -KILL "${pids[@]}" 2>/dev/null || true
        sleep 0.3
    done
}

# The warden's cgroups are named after the data directory: FNV-1a of its path (src/programs/warden/host.cc).
cgroup_name() {
    local path sum=$((0x811c9dc5)) i byte
    path=$(realpath -m "$data")
    for ((i = 0; i < ${#path}; i++)); do
        printf -v byte %d "'${path:i:1}"
        sum=$((((sum ^ byte) * 0x01000193) & 0xffffffff))
    done
    printf 'cloister-%08x' "$sum"
}

remove_cgroups() {
    local group pids
    find /sys/fs/cgroup -type d -name "$(cgroup_name)" -prune 2>/dev/null | while read -r group; do
        for _ in 1 2 3 4 5; do # what is killed leaves its group a little later
            mapfile -t pids < <(find "$group" -name cgroup.procs -exec cat {} + 2>/dev/null)
            [ ${#pids[@]} = 0 ] || kill -KILL "${pids[@]}" 2>/dev/null || true
            find "$group" -depth -type d -exec rmdir {} + 2>/dev/null || true
            [ -e "$group" ] || break
            sleep 0.2
        done
        [ ! -e "$group" ] || note "the cgroup $group is still in use"
    done
}

remove_mounts() {
    local target loop
    findmnt --raw --noheadings --output TARGET | grep "^$data\(/\|$\)" | sort -r | while read -r target; do
        umount "$target" 2>/dev/null || umount --lazy "$target"
    done || true
    if [ -e "$data/pool.img" ]; then
        losetup --noheadings --output NAME --associated "$data/pool.img" | while read -r loop; do losetup --detach "$loop"; done
    fi
}

remove_user() {
    ! getent passwd cloister >/dev/null || userdel cloister
    ! getent group cloister >/dev/null || groupdel cloister
}

main "$@"
