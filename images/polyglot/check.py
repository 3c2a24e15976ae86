"""What the template polyglot must be able to do beside the base, run inside it as its user before it is packed."""

import pathlib
import subprocess


def output_of(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def check_r() -> None:
    assert output_of("Rscript", "-e", "cat(6 * 7)") == "42"
    assert output_of("Rscript", "-e", 'cat(requireNamespace("IRkernel", quietly = TRUE))') == "TRUE"
    plot = 'png("/tmp/plot.png"); plot(1:3, main = "Größe 売上"); invisible(dev.off()); svg("/tmp/plot.svg"); plot(1:3)'
    output_of("Rscript", "-e", plot)
    assert pathlib.Path("/tmp/plot.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in pathlib.Path("/tmp/plot.svg").read_text()


def check_java() -> None:
    assert "jdk.jshell" in output_of("java", "--list-modules")
    source = pathlib.Path("/tmp/Hello.java")
    source.write_text('class Hello { public static void main(String[] a) { System.out.println("compiled"); } }')
    output_of("javac", "-d", "/tmp", str(source))
    assert output_of("java", "-cp", "/tmp", "Hello") == "compiled"


def check_bridge() -> None:
    import zmq

    assert zmq.zmq_version_info() >= (4, 3)


if __name__ == "__main__":
    check_r()
    check_java()
    check_bridge()
    print("the image can do what it must")
