"""What the base image must be able to do, run inside it as its user before it is packed."""

import importlib
import json
import os
import pathlib
import subprocess
import sys

MODULES = [
    "IPython", "numpy", "pandas", "scipy", "matplotlib", "seaborn", "sklearn", "sympy", "PIL",
    "openpyxl", "requests", "pip", "venv",
]  # fmt: skip
COMMANDS = [
    "bash", "git", "curl", "jq", "rg", "gcc", "make", "ps", "file", "less", "unzip", "zip", "node",
    "npm", "npx", "python", "pip", "esbuild",
]  # fmt: skip


def output_of(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def check_user() -> None:
    assert os.getuid() == 1000 and pathlib.Path.home() == pathlib.Path("/home/user")
    pathlib.Path("/home/user/written").write_text("x")
    assert pathlib.Path("/etc/hostname").read_text() == "sandbox\n"


def check_python() -> None:
    for module in MODULES:
        importlib.import_module(module)

    import numpy
    import threadpoolctl

    numpy.ones((8, 8)) @ numpy.ones((8, 8))
    pools = threadpoolctl.threadpool_info()
    openblas = [p for p in pools if p["internal_api"] == "openblas"]
    assert openblas and openblas[0]["threading_layer"] == "pthreads", pools


def check_chart() -> None:
    """The caller turns the warning about a missing glyph into an error."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.font_manager
    import matplotlib.pyplot as plt

    cache = pathlib.Path(matplotlib.get_cachedir())
    assert cache == pathlib.Path("/home/user/.cache/matplotlib"), cache
    fonts = json.loads(next(cache.glob("fontlist-*.json")).read_text())
    assert any(f["name"] == "WenQuanYi Micro Hei" for f in fonts["ttflist"])
    plt.plot([1, 2])
    plt.title("Sales, Größe, 売上 カタカナ, 销售额, 매출")
    plt.savefig("/home/user/chart.png")


def check_commands() -> None:
    for command in COMMANDS:
        output_of(command, "-v" if command == "unzip" else "--version")
    assert output_of("node", "-p", "6 * 7") == "42"
    assert output_of("npm", "prefix", "-g") == "/home/user/.local"
    pathlib.Path("/tmp/hello.c").write_text('#include <stdio.h>\nint main(void){puts("compiled");}\n')
    output_of("gcc", "-o", "/tmp/hello", "/tmp/hello.c")
    assert output_of("/tmp/hello") == "compiled"


def check_typescript() -> None:
    """The interpreter requires esbuild by its name, as any other program does not need to."""
    code = "require('esbuild').transform('let a: number = 6 * 7; a', {loader: 'ts'}).then((r) => console.log(eval(r.code)))"
    assert output_of("node", "-e", code) == "42"


def check_pip() -> None:
    """Builds and installs a package of our own: no network, but all that pip does otherwise."""
    source = pathlib.Path("/tmp/probe")
    source.mkdir()
    (source / "setup.py").write_text("from setuptools import setup\nsetup(name='probe', py_modules=['probe'])\n")
    (source / "probe.py").write_text("value = 7\n")
    output_of("pip", "install", "--no-index", "--no-build-isolation", str(source))
    assert output_of(sys.executable, "-c", "import probe; print(probe.value, probe.__file__)").startswith("7 /home/user/.local/")


if __name__ == "__main__":
    check_user()
    check_python()
    check_chart()
    check_commands()
    check_typescript()
    check_pip()
    print("the image can do what it must")
