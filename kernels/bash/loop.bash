. "/proc/$PPID/fd/8"; . "/proc/$PPID/fd/7"; __cloister_ready; until __cloister_over; do set -- "${__cloister_args[@]}"; for __cloister_once in 1; do if __cloister_status; then eval "$__cloister_code" <"/proc/$PPID/fd/0" >|"/proc/$PPID/fd/1" 2>|"/proc/$PPID/fd/2"; else eval "$__cloister_code" <"/proc/$PPID/fd/0" >|"/proc/$PPID/fd/1" 2>|"/proc/$PPID/fd/2"; fi; done; __cloister_end "$?" "$@"; done
# What the shell of a context reads from its stdin: one run after the other. See functions.bash.
#
# It is one line, because bash counts the lines of the code from that of `eval` on: the first line of a run is
# line 1. `for`: a `break` of the code leaves that loop, not ours. `until`: after `set -n` every command counts as
# done without being executed, and the shell ends instead of turning for ever. `if`: when the code begins, $? is
# the status of the last run, and neither an ERR trap nor `set -e` has seen it.
