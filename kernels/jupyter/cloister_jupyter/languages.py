"""What a run asks for that Jupyter's protocol has no words for: its directory, environment and arguments.

Where we know the language, constant code reads them from a file of ours, runs silently before and after the run, and
puts the former values back: nothing of a run is ever put together as source. A kernel of another language keeps the
directory and environment of its context.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Preparation:
    """`enter` and `leave` read the JSON at the path in CLOISTER_RUN_FILE of the kernel's environment:
    `cwd` (or null), `env` (names to values), `argv` (or null). `begin` runs once; what it does may write an exit code
    beside that file, with `.exit` behind its name, and end the run."""

    enter: str
    leave: str
    begin: str = ""


# An environment on the search path holds what is to be undone, and `commandArgs` for this run.
_R = Preparation(
    # quit() ends the run, not the interpreter. The restart is that by which IRkernel leaves a run that failed.
    begin="""
local({
    scope <- attach(NULL, name = "cloister", warn.conflicts = FALSE)
    scope$quit <- scope$q <- function(save = "default", status = 0, runLast = TRUE) {
        writeLines(as.character(as.integer(status)), paste0(Sys.getenv("CLOISTER_RUN_FILE"), ".exit"))
        invokeRestart("eval_stop")
    }
    lockEnvironment(scope, bindings = TRUE)
})
""",
    enter="""
local({
    run <- jsonlite::fromJSON(Sys.getenv("CLOISTER_RUN_FILE"), simplifyVector = FALSE)
    if (!is.null(run$cwd)) setwd(run$cwd)
    scope <- attach(NULL, name = "cloister:run", warn.conflicts = FALSE)
    scope$.former <- sapply(names(run$env), Sys.getenv, unset = NA, USE.NAMES = TRUE)
    if (length(run$env)) do.call(Sys.setenv, run$env)
    words <- unlist(run$argv)
    if (length(words)) scope$commandArgs <- function(trailingOnly = FALSE)
        if (trailingOnly) words[-1] else c("R", paste0("--file=", words[1]), "--args", words[-1])
})
""",
    leave="""
if ("cloister:run" %in% search()) local({
    former <- get(".former", "cloister:run")
    for (name in names(former)) {
        if (is.na(former[[name]])) Sys.unsetenv(name) else do.call(Sys.setenv, former[name])
    }
    detach("cloister:run", character.only = TRUE)
})
""",
)

_PYTHON = Preparation(
    enter="""
def __cloister_enter():
    import json, os, sys
    with open(os.environ["CLOISTER_RUN_FILE"]) as file:
        run = json.load(file)
    if run["cwd"] is not None:
        os.chdir(run["cwd"])
    sys.__cloister_former = {name: os.environ.get(name) for name in run["env"]}, sys.argv
    os.environ.update(run["env"])
    if run["argv"] is not None:
        sys.argv = run["argv"]
__cloister_enter()
del __cloister_enter
""",
    leave="""
def __cloister_leave():
    import os, sys
    former, sys.argv = sys.__dict__.pop("__cloister_former", ({}, sys.argv))
    for name, value in former.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
__cloister_leave()
del __cloister_leave
""",
)

_BY_LANGUAGE = {"r": _R, "python": _PYTHON}


def preparation(language: str) -> Preparation | None:
    """By the name that the kernel gives its language."""
    return _BY_LANGUAGE.get(language.lower())
