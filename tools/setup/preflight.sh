#!/bin/bash
# Checks what the set-up needs before anything is downloaded, and names everything that is missing with its fix.
# Exit codes: 0 all there, 69 something is missing.
set -euo pipefail
# shellcheck source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

problems=()
problem() { problems+=("$1"$'\n'"      fix: $2"); }

main() {
    [ "$EUID" = 0 ] || problem "this is not root" "run the same command with sudo"
    check_machine
    check_kernel
    check_cgroups
    check_memory
    check_disk
    check_mirrors
    [ ${#problems[@]} -gt 0 ] || return 0
    echo "dev: this machine lacks something that Cloister needs:" >&2
    printf '  - %s\n' "${problems[@]}" >&2
    exit 69
}

check_machine() {
    [ "$(uname -m)" = x86_64 ] || problem "the processor is $(uname -m)" "use an x86_64 machine"
    command -v apt-get >/dev/null || problem "there is no apt-get" "use Debian 12 or newer, or a derivative"
}

check_kernel() {
    local release major minor part
    release=$(uname -r)
    IFS=.- read -r major minor _ <<<"$release"
    if [ "$major" -lt 6 ] || { [ "$major" = 6 ] && [ "$minor" -lt 1 ]; }; then
        problem "the kernel is $release" "boot kernel 6.1 or newer (Debian 12's own is enough)"
    fi
    for part in btrfs overlay nf_tables loop; do
        kernel_has "$part" || problem "the kernel has no $part" "load it (modprobe $part), or boot a kernel that has it"
    done
    [ "$(cat /proc/sys/user/max_user_namespaces 2>/dev/null || echo 0)" -gt 0 ] ||
        problem "user namespaces are off" "sysctl user.max_user_namespaces=65536"
    [ -e /dev/loop-control ] || problem "there is no /dev/loop-control" "give this machine (or container) loop devices"
}

kernel_has() {
    ! grep -qw "$1" /proc/filesystems || return 0
    ! modprobe --quiet "$1" 2>/dev/null || return 0
    # Built in: its symbols are there, whatever the distribution does with its configuration file.
    grep -qm1 " ${1}_" /proc/kallsyms
}

check_cgroups() {
    local controller
    for controller in memory pids cpu; do
        grep -qsw "$controller" /sys/fs/cgroup/cgroup.controllers ||
            awk '$3 == "cgroup" { print "," $4 "," }' /proc/mounts | grep -q ",$controller," ||
            problem "there is no $controller cgroup" "mount cgroups at /sys/fs/cgroup, with the $controller controller"
    done
}

check_memory() {
    local mb
    mb=$(awk '/^(MemAvailable|SwapFree)/ { sum += $2 } END { print int(sum / 1024) }' /proc/meminfo)
    [ "$mb" -ge 1800 ] || problem "only $mb MB of memory are free" "free some, or add swap: compiling needs 1800 MB"
}

# Needs are added up per file system: they are often the same one.
check_disk() {
    local -A needed=() free=() named=()
    local folder mb existing device free_mb
    while read -r folder mb; do
        existing=$folder
        while [ ! -e "$existing" ]; do existing=$(dirname "$existing"); done
        read -r device free_mb < <(df --output=source,avail --block-size=1M "$existing" | tail -n 1)
        device+=$(stat -c %d "$existing")
        needed[$device]=$((${needed[$device]:-0} + mb))
        free[$device]=$free_mb
        named[$device]+="$folder "
    done < <(disk_needs)
    for device in "${!needed[@]}"; do
        [ "${free[$device]}" -ge "${needed[$device]}" ] ||
            problem "only ${free[$device]} MB are free for ${named[$device]}" "free ${needed[$device]} MB there"
    done
}

# FOLDER MB, for what is not there yet.
disk_needs() {
    [ -z "$(missing_packages build)" ] || echo /usr 1500
    [ -e "$programs/cloister" ] || echo "$repo" 800
    [ -e "$(image_path)" ] || echo "$cache" 1800
    [ -e "$data/pool.img" ] || echo "$data" 4000
}

# Only when something is to be fetched. Without curl or Python, a connection is what can be tried.
check_mirrors() {
    local fetch_image=no url
    [ -e "$(image_path)" ] || fetch_image=yes
    [ -n "$(missing_packages build)" ] || [ $fetch_image = yes ] || return 0
    while read -r url; do
        reachable "$url" || problem "the package mirror $url does not answer" \
            "check the network, /etc/apt/sources.list* and apt's proxy"
    done < <(apt_mirrors)
    [ $fetch_image = yes ] || return 0
    while read -r url; do
        reachable "$url" || problem "the npm registry $url does not answer" "check the network and npm's configuration"
    done < <(npm_registries)
}

apt_mirrors() {
    local proxy
    proxy=$(apt-config dump 2>/dev/null | sed -n 's/^Acquire::https\?::Proxy "\(.*\)";/\1/p' | head -n 1)
    if [ -n "$proxy" ]; then
        echo "$proxy"
    else
        # shellcheck disable=SC2016 # apt's own variable
        apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2>/dev/null | grep ^http | sort -u
    fi
}

# Only a registry that somebody configured: npm's own default is not ours to know.
npm_registries() {
    { echo "${NPM_CONFIG_REGISTRY:-${npm_config_registry:-}}"; sed -n 's/^registry *= *//p' ~/.npmrc /etc/npmrc 2>/dev/null; } |
        grep ^http | head -n 1
}

reachable() {
    local host port=80
    [[ $1 != https:* ]] || port=443
    host=${1#*://}
    host=${host%%/*}
    host=${host##*@}
    if [[ $host == *:* ]]; then
        port=${host##*:}
        host=${host%:*}
    fi
    # shellcheck disable=SC2016 # the inner shell's arguments
    timeout 10 bash -c 'exec 3<>"/dev/tcp/$0/$1"' "$host" "$port" 2>/dev/null
}

main
