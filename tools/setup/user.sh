#!/bin/bash
# Makes the system user that the network-facing server runs as, where it is missing.
set -euo pipefail

if ! getent passwd cloister >/dev/null; then
    # A killed useradd may leave the group alone, and its lock files.
    pgrep -x 'useradd|groupadd|usermod' >/dev/null || rm -f /etc/passwd.lock /etc/shadow.lock /etc/group.lock /etc/gshadow.lock
    getent group cloister >/dev/null || groupadd --system cloister
    useradd --system --gid cloister --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin cloister
fi
