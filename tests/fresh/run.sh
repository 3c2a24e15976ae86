#!/bin/bash
# Tries the README's two commands on a machine that has nothing: a minimal Debian 12 root with
# ca-certificates, git and sudo, in namespaces of its own. Of the host it sees the kernel, the
# devices, and how packages are reached.
#
#   tests/fresh/run.sh [--quick] [--no-tests] [--keep]
#
#   --quick     only the README's first command, and uninstall
#   --no-tests  leave out the README's second command, which takes the longest
#   --keep      leave the root file system behind (its path is printed)
#
# It prints minutes and disk per step, then a verdict per check; the last line is `N passed, N failed`.
# Without --quick it then kills (-9) a second set-up at three points and compares what it ends with.
# Needs root, mmdebstrap and 12 GB in $TMPDIR (default /var/tmp). Exit codes: 0 all passed, 1 not, 2 wrong usage.
set -euo pipefail
shopt -s inherit_errexit

repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
home=/home/alice
clone=$home/cloister
quick=no
tests=yes
keep=no

say() { echo "fresh: $*"; }

# ---- outside: what must be cleaned up, whatever happens inside

outside() {
    [ "$EUID" = 0 ] || { say "needs root"; exit 1; }
    command -v mmdebstrap >/dev/null || { say "needs mmdebstrap (./dev setup installs it)"; exit 1; }
    # The network is the host's, for the package mirrors; so the port is, too.
    ! ss -Hltn 'sport = :8000' 2>/dev/null | grep -q . || { say "port 8000 is in use: ./dev stop"; exit 1; }
    work=$(mktemp -d "${TMPDIR:-/var/tmp}/cloister-fresh.XXXXXX")
    trap clean_up EXIT
    enter_cgroup "fresh-$$"
    # The new pid namespace ends every process that is started inside, the mount namespace every mount,
    # and the cgroup namespace keeps uninstall away from other instances on this host.
    # In the background, because unshare passes no signal on and a shell that waits for it hears none.
    unshare --mount --pid --cgroup --fork --kill-child --mount-proc "$0" --inside "$work" "$@" &
    trap 'kill -KILL %1; exit 130' INT TERM
    wait %1
}

# Moves this shell into a child of its cgroup in every hierarchy: the root of what is seen inside.
enter_cgroup() {
    local memberships membership controllers path folder
    mapfile -t memberships </proc/self/cgroup # whole, before the moves below change it
    for membership in "${memberships[@]}"; do
        IFS=: read -r _ controllers path <<<"$membership"
        folder=$(cgroup_mount "$controllers")
        [ -n "$folder" ] || continue
        # A path that begins with /.. or lies above the mount's root is seen from elsewhere: use the mount itself.
        [ -d "$folder$path" ] && folder=$folder$path
        mkdir -p "${folder%/}/$1"
        if [ -e "$folder/cpuset.cpus" ]; then # v1: a new cpuset takes no process before it has these
            cat "$folder/cpuset.cpus" >"$folder/$1/cpuset.cpus"
            cat "$folder/cpuset.mems" >"$folder/$1/cpuset.mems"
        fi
        entered+=("${folder%/}/$1")
        echo $$ >"$folder/$1/cgroup.procs"
    done
}

cgroup_mount() {
    if [ -z "$1" ]; then
        awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts
    else
        awk -v c=",${1#name=}," '$3 == "cgroup" && index("," $4 ",", c) || $3 == "cgroup" && index($4, "name=" substr(c, 2, length(c) - 2)) { print $2; exit }' /proc/mounts
    fi
}

clean_up() {
    local group loop
    for group in "${entered[@]}"; do
        echo $$ >"$(dirname "$group")/cgroup.procs" || true
        for _ in {1..100}; do # what was just killed leaves its group a little later
            find "$group" -depth -type d -exec rmdir {} \; 2>/dev/null || true
            [ -d "$group" ] || break
            sleep 0.1
        done
        [ ! -d "$group" ] || say "left behind: cgroup $group"
    done
    losetup --noheadings --output NAME,BACK-FILE | awk -v w="$work/" 'index($2, w) == 1 { print $1 }' |
        while read -r loop; do losetup --detach "$loop"; done
    if [ $keep = yes ]; then say "kept: $work"; else rm -rf "$work"; fi
}

# ---- inside: the machine

bootstrap() {
    local mirror options=() line
    # shellcheck disable=SC2016 # apt's own variables
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -v security | head -n 1)
    while read -r line; do options+=(--aptopt="$line"); done < <(apt_way)
    mmdebstrap --quiet --variant=minbase --include=ca-certificates,git,sudo "${options[@]}" \
        bookworm "$work/bare.tar" "$mirror"
}

# How this host reaches its mirrors; mmdebstrap leaves it in the root.
apt_way() { apt-config dump | grep -E '^Acquire::(http|https|Check-|Retries)' || true; }

make_machine() {
    root=$work/$1
    mkdir -p "$root"
    tar --extract --file "$work/bare.tar" --directory "$root"
    local file
    for file in /etc/resolv.conf /etc/hosts /etc/pip.conf /etc/npmrc /etc/ssl/certs/ca-certificates.crt /etc/apt/auth.conf; do
        [ ! -e "$file" ] || install -D -m 644 "$file" "$root$file"
    done
    [ ! -e ~/.npmrc ] || cp ~/.npmrc "$root/root/.npmrc"
    mount_machine
    in_machine useradd --create-home --shell /bin/bash alice
    echo 'alice ALL=(ALL) NOPASSWD: ALL' >"$root/etc/sudoers.d/alice"
    in_machine git config --system safe.directory '*'
    as_alice git clone --quiet /mnt/repo "$clone"
    in_machine chmod 700 "$home" # as many systems make it: the service must not need to look into it
    disk_before=$(disk_used)
}

mount_machine() {
    mount --bind "$root" "$root" # so that the root is a mount, as a machine's is
    mount --bind /proc "$root/proc"
    mount --rbind /dev "$root/dev"
    mount -t tmpfs none "$root/run"
    mkdir -p "$root/mnt/repo"
    mount -o bind,ro "$repo" "$root/mnt/repo"
    mount -t sysfs none "$root/sys"
    mount_cgroups
}

# Mounted anew they show this namespace's part only.
mount_cgroups() {
    local target type options option controller
    if ! grep -q ' cgroup ' /proc/mounts; then
        mount -t cgroup2 none "$root/sys/fs/cgroup"
        mkdir "$root/sys/fs/cgroup/machine" # v2: controllers are passed on only by a group without processes
        local pids pid
        mapfile -t pids <"$root/sys/fs/cgroup/cgroup.procs"
        for pid in "${pids[@]}"; do echo "$pid" >"$root/sys/fs/cgroup/machine/cgroup.procs" || true; done
        return
    fi
    mount -t tmpfs none "$root/sys/fs/cgroup"
    grep -E '^[^ ]+ [^ ]+ cgroup2? ' /proc/mounts | awk '{ print $2, $3, $4 }' | grep ^/sys/fs/cgroup | while read -r target type options; do
        mkdir -p "$root$target"
        controller=
        for option in ${options//,/ }; do
            case $option in
                rw | ro | relatime | nosuid | nodev | noexec | xattr | clone_children | release_agent=* | nsdelegate | memory_* | favordynmods) ;;
                *) controller+=${controller:+,}$option ;;
            esac
        done
        mount -t "$type" ${controller:+-o "$controller"} none "$root$target"
    done
}

# What names the way to packages in this environment holds inside, too.
machine_environment() { env | grep -E '^(PIP_|NPM_CONFIG_|npm_config_|NODE_EXTRA_CA_CERTS=|https?_proxy=|no_proxy=)' || true; }

# By pivot_root: a process in a chroot may make no user namespace.
in_machine() {
    local environment
    mapfile -t environment < <(machine_environment)
    # shellcheck disable=SC2016 # the inner shell's arguments
    env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 \
        "${environment[@]}" unshare --mount --propagation private bash -c '
            set -e; mount --rbind "$0" "$0"; cd "$0"; pivot_root . mnt; cd /; umount --lazy /mnt; exec "$@"' "$root" "$@"
}

# alice's shell, in her clone once it is there.
as_alice() {
    # shellcheck disable=SC2016 # the inner shell's arguments
    in_machine setpriv --reuid alice --regid alice --init-groups env HOME="$home" USER=alice \
        bash -c 'cd "$0"; [ ! -d cloister ] || cd cloister; "$@"' "$home" "$@"
}

disk_used() { du --summarize --one-file-system --block-size=1M "$root" | cut -f1; }

# ---- inside: the checks

passed=0
failed=0
check() {
    local what=$1
    shift
    if "$@"; then
        passed=$((passed + 1))
        say "ok      $what"
    else
        failed=$((failed + 1))
        say "FAILED  $what"
    fi
}

# The README's commands as they stand there, without a comment behind them.
readme_commands() {
    grep -oE '^ *(\$ )?sudo \./dev .*' "$root$clone/README.md" | sed -e 's/^ *\(\$ \)\?//' -e 's/ *#.*//' -e 's/ *$//' | awk '!seen[$0]++' | head -n 2
}

# timed TEXT: runs a line of the README as alice; sets status and seconds.
timed() {
    local begin=$SECONDS
    status=0
    as_alice bash -c "$1" </dev/null >"$work/output" 2>"$work/progress" || status=$?
    seconds=$((SECONDS - begin))
    sed 's/^/    /' "$work/progress" "$work/output"
    say "$(printf '%-45s %4d.%d min, exit code %d, disk %d MB' "$1" $((seconds / 60)) $((seconds % 60 / 6)) $status $(($(disk_used) - disk_before)))"
}

inside() {
    mount --make-rprivate /
    say "bootstrapping a bare Debian 12"
    bootstrap
    make_machine one
    local commands
    mapfile -t commands < <(readme_commands)
    [ ${#commands[@]} = 2 ] || { say "README.md does not show two lines that begin with: sudo ./dev"; exit 1; }

    timed "${commands[0]}"
    local first_seconds=$seconds
    check "${commands[0]}: ends with 0" test $status = 0
    check "first result within 10 minutes" test "$first_seconds" -le 600
    check "everything in the clone belongs to the user" owned_by_alice
    state >"$work/state-one" || true
    rm "$root/etc/sudoers.d/alice" # from here on alice may only start the service
    timed "./${commands[0]#*./}"
    check "a second call, without sudo: ends with 0" test $status = 0
    check "a second call takes at most a few seconds" test "$seconds" -le 3
    if [ $quick = no ] && [ $tests = yes ]; then
        echo 'alice ALL=(ALL) NOPASSWD: ALL' >"$root/etc/sudoers.d/alice"
        timed "${commands[1]}"
        check "${commands[1]}: ends with 0" test $status = 0
    fi
    check_uninstall
    [ $quick = yes ] || try_kills "${commands[0]}"
    echo "$passed passed, $failed failed"
    [ "$failed" = 0 ]
}

owned_by_alice() { [ -z "$(find "$root$clone" ! -user "$(stat -c %u "$root$home")" -print -quit)" ]; }

check_uninstall() {
    in_machine "$clone/dev" uninstall --yes || true
    check "uninstall leaves no file" no_files
    check "uninstall leaves no user" fails in_machine getent passwd cloister
    check "uninstall leaves no mount" fails grep -q /var/lib/cloister /proc/self/mountinfo
    check "uninstall leaves no loop device" fails grep -qr "$root/" /sys/block --include=backing_file
    check "uninstall leaves no cgroup" test -z "$(find "$root/sys/fs/cgroup" -name 'cloister-*' -print -quit)"
    check "uninstall leaves no process" fails pgrep -f /usr/local/lib/cloister
}

fails() { ! "$@"; }

no_files() {
    local path
    for path in var/lib/cloister var/cache/cloister usr/local/lib/cloister usr/local/bin/cloister etc/sudoers.d/cloister; do
        if [ -e "$root/$path" ] || [ -L "$root/$path" ]; then
            say "left: /$path"
            return 1
        fi
    done
}

# ---- inside: kill -9 at three points

# A name and a condition each; the set-up is killed as soon as the condition holds.
kill_points() {
    cat <<'TEXT'
packages grep -q "Setting up libclang" $root/var/cache/cloister/log/packages.log
compile-and-image grep -qE "^.[1-9][0-9]+/" $root/var/cache/cloister/log/compile.log && grep -q "install packages" $root/var/cache/cloister/log/base-image.log
pool test -e $root/var/lib/cloister/pool.img
TEXT
}

try_kills() {
    local name condition group
    make_machine two
    group=$root/sys/fs/cgroup
    [ ! -d "$group/pids" ] || group+=/pids
    group+=/killed
    mkdir "$group"
    while read -r name condition; do
        # The group holds every process of the set-up, whatever sessions and process groups they make.
        (echo "$BASHPID" >"$group/cgroup.procs" && as_alice bash -c "$1") </dev/null >"$work/killed.log" 2>&1 &
        until (eval "$condition") 2>/dev/null || [ -z "$(jobs -r)" ]; do sleep 0.1; done
        check "the set-up was running when killed at: $name" still_running
        kill_group "$group"
        wait
    done < <(kill_points)
    timed "$1"
    check "after three kills the set-up ends with 0" test "$status" = 0
    state >"$work/state-two" || true
    check "and ends with the same" diff "$work/state-one" "$work/state-two"
    check_uninstall
}

# If it is not, what it said tells why.
still_running() {
    [ -z "$(jobs -r)" ] || return 0
    tail -n 20 "$work/killed.log" | sed 's/^/    /'
    return 1
}

kill_group() {
    local pids
    while mapfile -t pids <"$1/cgroup.procs" && [ ${#pids[@]} -gt 0 ]; do
        kill -KILL "${pids[@]}" 2>/dev/null || true
        sleep 0.05
    done
}

# What a set-up leaves, without what differs from one time to the next.
state() {
    # shellcheck disable=SC2016 # dpkg's own variables
    in_machine dpkg-query -W -f '${Package} ${Version} ${db:Status-Status}\n'
    (cd "$root" && find usr/local/lib/cloister usr/local/bin/cloister etc/sudoers.d/cloister -printf '%p %m %u %l\n' | sort)
    (cd "$root/usr/local/lib/cloister" && find . -type f -not -path './bin/*' -exec sha256sum {} + | sort -k2)
    (cd "$root/var/cache/cloister" && find . -name 'base-*' | sort)
    in_machine getent passwd cloister | cut -d: -f1,6,7
    sed -E 's/[0-9]+(\.[0-9]+)?//g' "$work/output"
}

# ---- start

arguments=()
inner=no
entered=()
while [ $# -gt 0 ]; do
    case $1 in
        --quick) quick=yes; arguments+=("$1") ;;
        --no-tests) tests=no; arguments+=("$1") ;;
        --keep) keep=yes; arguments+=("$1") ;;
        --inside) inner=yes; work=$2; shift ;; # our own second start
        *) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0" >&2; exit 2 ;;
    esac
    shift
done
if [ $inner = yes ]; then inside; else outside "${arguments[@]}"; fi
