# shellcheck shell=bash
#
# How the shell of a context lives from run to run. Its parent, cloister-shell (src/programs/shell), holds these
# descriptors, and the shell opens them by path each time: so the code has nothing that it could close by mistake,
# and its children inherit stdin, stdout and stderr only.
#
#     0 1 2   of the run
#     4       the bell: a line for each run
#     5       takes answers: NUMBER STATUS
#     6       the request, with a zero byte behind each field: number of the run, working directory or nothing, code,
#             `args` or nothing, how many arguments, the arguments, then name and value of each variable of the run
#     7       the state that this shell leaves to the next
#     8, 9    this file, and loop.bash
#
# What would end the shell (`exit`, `set -e`, an unset variable under `set -u`, an interrupt) ends the run only: the
# EXIT trap writes the state down and executes a new shell in the same process, which reads it and answers.
#
# The code may have set any option and IFS, and may have functions named like builtins.

__cloister_ready() {
    __cloister_guard_exit
    if [[ -v __cloister_run ]]; then
        [[ -z $__cloister_run ]] || __cloister_end "$__cloister_last" "${__cloister_args[@]}"
        return 0
    fi
    builtin trap __cloister_interrupt INT
    builtin trap 'exit 143' TERM
    builtin shopt -s expand_aliases
    __cloister_run='' __cloister_last=0 __cloister_code='' __cloister_args=() __cloister_interrupted=''
    __cloister_former=() __cloister_former_args=()
    builtin printf '0 %s\n' "$BASH_VERSION" >|"/proc/$PPID/fd/5"
}

# In pieces, since a function does not see all traps. Under `set -x` bash writes to stderr what it does.
__cloister_guard_exit() {
    builtin trap '{ __cloister_leave "$?" "$@"; builtin trap -p >>"/proc/$PPID/fd/7"; __cloister_change; } 2>/dev/null' EXIT
}

# Only the name of the program stays of what the process was.
__cloister_change() {
    __cloister_write_functions >>"/proc/$PPID/fd/7"
    exec -a bash /proc/self/exe <"/proc/$PPID/fd/9" >/dev/null
}

# Waits for a run and takes it up. Succeeds when there will be none any more.
__cloister_over() {
    local request REPLY
    # The code left both loops around it (`continue 2`).
    [[ -z $__cloister_run ]] || __cloister_end 0 "${__cloister_args[@]}"
    builtin read -r <"/proc/$PPID/fd/4" || return 0
    builtin mapfile -d '' -t request <"/proc/$PPID/fd/6" || return 0
    __cloister_begin "${request[@]}"
    return 1
}

__cloister_begin() {
    __cloister_run=$1 __cloister_code=$3
    [[ -z $2 ]] || builtin cd -- "$2" 2>|"/proc/$PPID/fd/2" || __cloister_code='! :'
    if [[ -n $4 ]]; then
        __cloister_former_args=(args "${__cloister_args[@]}")
        __cloister_args=("${@:6:$5}")
    fi
    builtin shift "$((5 + $5))"
    while (($# > 0)); do
        __cloister_set_variable "$1" "$2"
        builtin shift 2
    done
}

__cloister_set_variable() {
    if [[ -v $1 ]]; then
        __cloister_former+=("$1" "was ${!1@a}" "${!1}")
    else
        __cloister_former+=("$1" '' '')
    fi
    builtin export -- "$1=$2" 2>/dev/null && return
    builtin printf 'bash: %s: readonly variable\n' "$1" >|"/proc/$PPID/fd/2"
    __cloister_code='! :'
}

__cloister_put_back() {
    while (($# > 0)); do
        if [[ -z $2 ]]; then
            builtin unset -v "$1" || builtin :
        else
            builtin printf -v "$1" %s "$3" || builtin :
            # shellcheck disable=SC2163 # the variable that $1 names
            [[ $2 == *x* ]] || builtin export -n "$1" || builtin :
        fi
        builtin shift 3
    done
}

__cloister_status() {
    return "$__cloister_last"
}

# The run has ended, with status $1; behind it the positional parameters.
__cloister_end() {
    local run=$__cloister_run
    __cloister_last=$1 __cloister_args=("${@:2}")
    __cloister_exit_trap
    __cloister_put_back "${__cloister_former[@]}"
    ((${#__cloister_former_args[@]} == 0)) || __cloister_args=("${__cloister_former_args[@]:1}")
    __cloister_former=() __cloister_former_args=() __cloister_code='' __cloister_run=''
    # On a line of its own, whatever the code has written there. A restricted shell (`set -r`) cannot answer, so it
    # must not live on.
    builtin printf '\n%s %s\n' "$run" "$__cloister_last" >|"/proc/$PPID/fd/5" || builtin exit 1
}

# A trap on EXIT that the code has set is for the end of its run.
__cloister_exit_trap() {
    local text
    builtin trap -p EXIT >|"/proc/$PPID/fd/7"
    builtin read -r -d '' text <"/proc/$PPID/fd/7" || builtin :
    [[ $text != *__cloister_leave* ]] || return 0
    __cloister_guard_exit
    [[ -n $text ]] || return 0
    builtin eval "__cloister_keep_text ${text#trap}"
    builtin eval "__cloister_status
$text" <"/proc/$PPID/fd/0" >|"/proc/$PPID/fd/1" 2>|"/proc/$PPID/fd/2"
    return 0
}

__cloister_keep_text() {
    text=$2
}

# SIGINT ends the run, wherever it is. `set -e` leaves all functions; `exit` would keep their local variables.
__cloister_interrupt() {
    [[ -n $__cloister_run ]] || return 0
    [[ $- == *e* ]] || __cloister_interrupted=yes
    builtin set -e
    return 130
}

# The shell ends with status $1; behind it the positional parameters. From here on nothing is printed.
#
# The order of what is written: no alias may be expanded in what follows it, a function may be called like a builtin, and
# traps are seen outside of functions only.
__cloister_leave() {
    __cloister_last=$1 __cloister_args=("${@:2}")
    builtin set -- ''
    [[ $- != *e* || -n $__cloister_interrupted ]] || builtin set -- 'set -e'
    builtin set +e
    __cloister_interrupted=''
    __cloister_write_state "$1" >|"/proc/$PPID/fd/7"
}

__cloister_write_state() {
    local i
    builtin shopt -p
    builtin printf 'shopt -u expand_aliases\n'
    for ((i = ${#DIRSTACK[@]} - 1; i > 0; --i)); do builtin printf 'pushd -n %q\n' "${DIRSTACK[i]}"; done
    __cloister_write_variables "${#FUNCNAME[@]}"
    builtin alias -p
    builtin set +o
    builtin printf '%s\n' "$1"
}

# The variables as the function that called `exit` sees them, and then, for each function around it, without those that
# are local to one more: so of a name that is local somewhere the global value comes last.
__cloister_write_variables() {
    builtin declare -p
    (($1 > 2)) || return 0
    local names
    builtin mapfile -t names < <(builtin compgen -v)
    builtin unset -v "${names[@]}"
    builtin mapfile -t names < <(builtin compgen -v)
    builtin printf 'unset -v %s\n' "${names[@]}" # with their attributes
    __cloister_write_variables "$(($1 - 1))"
}

__cloister_write_functions() {
    local exported
    builtin mapfile -t exported < <(builtin declare -Fx)
    builtin declare -f
    builtin printf 'builtin %s\n' "${exported[@]}" 'shopt -s expand_aliases'
}
