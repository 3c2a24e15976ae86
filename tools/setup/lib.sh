# shellcheck shell=bash disable=SC2034 # the variables are for the scripts that source this file
# What `dev` and the set-up scripts share: where things are, who owns them, and how steps show their progress.
# Progress goes to stderr, so that the output of a program that `./dev run` runs stays pure.

repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
programs=$repo/build/release/bin
stamp=$repo/build/release/.set-up
data=${CLOISTER_DATA:-/var/lib/cloister}
cache=${CLOISTER_CACHE:-/var/cache/cloister}
installed=/usr/local/lib/cloister # root's own copies: what sudo may start must not lie in a user's clone
installed_packages=/var/lib/cloister-packages.list # for uninstall's farewell
sudoers=/etc/sudoers.d/cloister

export PYTHONDONTWRITEBYTECODE=1 # nothing of root in the clone

note() { echo "dev: $*" >&2; }
fail() { note "$@"; exit 1; }
lacking() { note "$@"; exit 69; } # the machine lacks something

need_programs() { [ -x "$programs/cloister" ] || lacking "Cloister is not set up here; run: sudo ./dev setup"; }

# Where the base image of this recipe is, or would be.
image_path() { "$repo/images/build" --cache "$cache" --print-path; }

# Where the image of the template polyglot is, or would be.
polyglot_path() { "$repo/images/layer" polyglot --cache "$cache" --print-path; }

# Whether this machine has that template: it was asked for once, and is kept up to date since then.
polyglot_is_wanted() { compgen -G "$cache/polyglot-*.tar.zst" >/dev/null; }

# All images of this machine, with colons between them: what CLOISTER_IMAGE holds.
image_paths() {
    local polyglot
    polyglot=$(polyglot_path)
    if [ -e "$polyglot" ]; then echo "$(image_path):$polyglot"; else image_path; fi
}

# Runs a command as the owner of the clone, to whom everything in it must belong.
as_owner() {
    local uid gid home
    uid=$(stat -c %u "$repo")
    gid=$(stat -c %g "$repo")
    if [ "$EUID" != 0 ] || [ "$uid" = 0 ]; then
        "$@"
        return
    fi
    home=$(getent passwd "$uid" | cut -d: -f6)
    env HOME="${home:-/tmp}" setpriv --reuid "$uid" --regid "$gid" --clear-groups -- "$@"
}

# The first source that is newer than the last set-up; nothing when there is none.
changed_since_setup() {
    find "$repo/src" "$repo/kernels" "$repo/images" "$repo/tools/setup" "$repo/CMakeLists.txt" \
        "$repo/CMakePresets.json" -newer "$stamp" -type f -print -quit
}

# ---- packages

# The packages of some groups of packages.list that this machine does not have.
missing_packages() {
    local wanted
    wanted=$("$repo/tools/setup/packages.sh" --list "$@")
    # shellcheck disable=SC2086 # one word per package
    comm -23 <(tr ' ' '\n' <<<"$wanted" | sort -u) \
        <(dpkg-query -W -f '${Package} ${db:Status-Status}\n' $wanted 2>/dev/null | awk '$2 == "installed" { print $1 }' | sort -u)
}

need_packages() {
    local missing
    missing=$(missing_packages "$@" | paste -sd' ')
    [ -n "$missing" ] || return 0
    [ "$EUID" = 0 ] || lacking "these Debian packages are missing: $missing; run the same command with sudo"
    step packages "$repo/tools/setup/packages.sh" "$@"
}

# ---- steps: run in the background with a log of their own, one line of progress for all of them

steps_begin() {
    step_names=()
    step_pids=()
    step_logs=()
    step_begun=()
    steps_failed=no
    if [ "$EUID" = 0 ]; then logs=$cache/log; else logs=$repo/build/log; fi
    mkdir -p "$logs"
    # A step has a process group of its own, so that an interrupt of `dev` ends all of it.
    trap 'kill_steps; exit 130' INT TERM
}

kill_steps() {
    local pid
    for pid in "${step_pids[@]}"; do [ -z "$pid" ] || kill -TERM -- "-$pid" 2>/dev/null || true; done
    clear_progress
}

step_start() {
    local name=$1 log=$logs/${1//[^a-z]/-}.log
    shift
    set -m
    ("$@") >"$log" 2>&1 </dev/null 7>&- & # 7: the lock of `dev setup`
    set +m
    step_names+=("$name")
    step_pids+=($!)
    step_logs+=("$log")
    step_begun+=("$SECONDS")
}

steps_wait() {
    local i running=1 next_report=$((SECONDS + 30))
    while [ $running = 1 ]; do
        running=0
        for i in "${!step_names[@]}"; do
            [ -n "${step_pids[i]}" ] || continue
            if kill -0 "${step_pids[i]}" 2>/dev/null; then running=1; else step_ended "$i"; fi
        done
        [ $running = 1 ] || break
        if [ -t 2 ]; then
            show_progress
        elif [ $SECONDS -ge $next_report ]; then
            next_report=$((SECONDS + 30))
            progress_text >&2
        fi
        sleep 0.2
    done
    trap - INT TERM
    [ "$steps_failed" = no ] || exit 1
}

step_ended() {
    local status=0 seconds=$((SECONDS - step_begun[$1]))
    wait "${step_pids[$1]}" || status=$?
    step_pids[$1]=
    clear_progress
    if [ $status = 0 ]; then
        printf '  %-14s done   %4d s\n' "${step_names[$1]}" $seconds >&2
        return
    fi
    steps_failed=yes
    printf '  %-14s FAILED %4d s\n' "${step_names[$1]}" $seconds >&2
    tail -n 20 "${step_logs[$1]}" | sed 's/^/    | /' >&2
    note "${step_names[$1]} failed (exit code $status); the whole log is ${step_logs[$1]}"
    note "mend that and run the same command again: it goes on where it stopped"
}

step() {
    steps_begin
    step_start "$@"
    steps_wait
}

progress_text() {
    local i last
    for i in "${!step_names[@]}"; do
        [ -n "${step_pids[i]}" ] || continue
        last=$(tail -n 1 "${step_logs[i]}" 2>/dev/null | tr -d '\r' | sed 's/^ *//')
        printf '  %s %d s: %s\n' "${step_names[i]}" $((SECONDS - step_begun[i])) "$last"
    done
}

show_progress() {
    local columns=${COLUMNS:-80} share running=0 i text=
    for i in "${!step_pids[@]}"; do [ -z "${step_pids[i]}" ] || running=$((running + 1)); done
    share=$(((columns - 2) / (running > 0 ? running : 1) - 1))
    while IFS= read -r i; do text+=$(printf "%-$share.${share}s " "$i"); done < <(progress_text)
    printf '\r\033[K%s' "$text" >&2
}

clear_progress() { [ ! -t 2 ] || printf '\r\033[K' >&2; }
