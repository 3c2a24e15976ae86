#!/bin/bash
# Installs the Debian packages of some groups of packages.list, those that are missing.
#   packages.sh GROUP…           install
#   packages.sh --list GROUP…    print their names only
set -euo pipefail
# shellcheck source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

list_packages() {
    local codename
    codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
    [ "$codename" = bookworm ] || codename=other
    awk -v groups=" $* " -v release="@$codename" '
        /^#/ || NF < 2 || !index(groups, " " $1 " ") { next }
        NF == 2 || $3 == release { printf "%s%s", sep, $2; sep = " " }' "$repo/tools/setup/packages.list"
}

install_packages() {
    local missing conflicting
    mapfile -t missing < <(missing_packages "$@")
    [ ${#missing[@]} -gt 0 ] || return 0
    echo "packages to install: ${missing[*]}"
    conflicting=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' 'libboost*1.74-dev' 2>/dev/null | awk '$1 == "installed" { print $2 }' || true)
    [ -z "$conflicting" ] || echo "apt removes ${conflicting//$'\n'/, }: it conflicts with libboost1.81-dev"

    # Recorded first, so that the list is whole however this ends.
    { printf '%s\n' "${missing[@]}"; cat "$installed_packages" 2>/dev/null || true; } | sort -u >"$installed_packages.new"
    mv "$installed_packages.new" "$installed_packages"

    export DEBIAN_FRONTEND=noninteractive
    local apt=(apt-get --yes --no-install-recommends -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300)
    dpkg --configure -a # where an earlier installation was cut off
    "${apt[@]}" update
    "${apt[@]}" install "${missing[@]}"
}

if [ "${1:-}" = --list ]; then
    shift
    list_packages "$@"
else
    install_packages "$@"
fi
