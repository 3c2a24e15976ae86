"""The parts of the bridge that need no kernel: frames, kernelspecs, and what a kernel says in our words."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

_KERNELS = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(_KERNELS / "jupyter"), str(_KERNELS / "python")]

from cloister_jupyter import kernelspec, translate  # noqa: E402
from cloister_jupyter.languages import preparation  # noqa: E402
from cloister_jupyter.session import Session  # noqa: E402

# --- frames ---


def test_a_message_is_read_as_it_was_written() -> None:
    session = Session("secret")
    msg_id, frames = session.frames("execute_request", {"code": "ü"}, {"msg_id": "parent"})
    message = session.message([b"who", *frames])
    assert message is not None
    assert (message.msg_type, message.msg_id, message.parent_id) == ("execute_request", msg_id, "parent")
    assert message.content == {"code": "ü"}


def test_a_message_of_another_key_is_none() -> None:
    _, frames = Session("other").frames("status", {})
    assert Session("secret").message(frames) is None


@pytest.mark.parametrize("changed", range(1, 6))
def test_a_changed_message_is_none(changed: int) -> None:
    session = Session("secret")
    _, frames = session.frames("status", {"execution_state": "idle"})
    frames[changed] += b" "
    assert session.message(frames) is None


def test_nonsense_is_none() -> None:
    session = Session("secret")
    _, frames = session.frames("status", {})
    for wrong in ([], [b"<IDS|MSG>"], frames[:4], [b"x"] * 7):
        assert session.message(wrong) is None
    for part in (b"[]", b"7", b"{", b"\xff", b"[" * 100_000):
        parts = [part, b"{}", b"{}", b"{}"]
        assert session.message([b"<IDS|MSG>", session._signature(parts), *parts]) is None


# --- kernelspecs ---


def written(folder: Path, name: str, spec: Any) -> None:
    (folder / name).mkdir(parents=True)
    (folder / name / "kernel.json").write_text(spec if isinstance(spec, str) else json.dumps(spec))


def test_a_spec_is_found_in_whatever_case_and_filled_in(tmp_path: Path) -> None:
    written(tmp_path / "b", "IR", {"argv": ["x"]})
    written(tmp_path / "a", "ir", {"argv": ["run", "{connection_file}", "{resource_dir}", "{other}"], "env": {"P": "/a:${PATH}"}})
    spec = kernelspec.find("Ir", [tmp_path / "none", tmp_path / "a", tmp_path / "b"])
    assert spec.command("/c.json") == ["run", "/c.json", str(tmp_path / "a" / "ir"), "{other}"]
    assert spec.environment({"PATH": "/bin"}) == {"PATH": "/bin", "P": "/a:/bin"}


@pytest.mark.parametrize(
    "spec",
    ["", "[]", {}, {"argv": []}, {"argv": "x"}, {"argv": [1]}, {"argv": ["x"], "env": {"A": 1}}, {"argv": ["x"], "interrupt_mode": "none"}],
    ids=str,
)
def test_a_broken_spec_says_where_it_is(spec: Any, tmp_path: Path) -> None:
    written(tmp_path, "k", spec)
    with pytest.raises(kernelspec.NoKernelspec, match="kernel.json"):
        kernelspec.find("k", [tmp_path])


def test_what_is_not_there_names_what_is(tmp_path: Path) -> None:
    written(tmp_path, "one", {"argv": ["x"]})
    with pytest.raises(kernelspec.NoKernelspec, match="there is one"):
        kernelspec.find("two", [tmp_path])
    with pytest.raises(kernelspec.NoKernelspec, match="cannot be the name"):
        kernelspec.find("../one", [tmp_path])


def test_places_are_those_of_jupyter() -> None:
    places = kernelspec.folders({"HOME": "/h", "JUPYTER_PATH": "/p:"})
    assert [str(place) for place in places[:2]] == ["/p/kernels", "/h/.local/share/jupyter/kernels"]


# --- words ---


def test_streams_and_displays() -> None:
    assert translate.translated("stream", {"name": "stderr", "text": "x"}) == translate.Output(2, "x")
    assert translate.translated("stream", {"text": 7}) == translate.Output(1, "")
    assert translate.translated("comm_open", {}) is None
    bundle = {"data": {"image/png": "aG\nVs\n", "text/plain": ["a", "b"], "application/json": {"n": float("nan")}}}
    told = translate.translated("execute_result", {**bundle, "execution_count": -1})
    assert isinstance(told, translate.Told)
    assert told.content["data"] == {"image/png": "aGVs", "text/plain": "ab", "application/json": {"n": None}}
    assert told.content["execution_count"] == 0


def test_errors_are_plain_and_bounded() -> None:
    content = translate.error({"ename": None, "evalue": "\x1b[31mred\x1b[0m", "traceback": ["a\nb", 7] + ["x"] * 1000})
    assert (content["ename"], content["evalue"]) == ("Error", "red")
    assert content["traceback"][:2] == ["a", "b"]
    assert len(content["traceback"]) == 401
    assert "lines are left out" in content["traceback"][200]
    assert len(translate.error({"evalue": "y" * 10**6})["evalue"]) < 70_000


def test_pages_and_exits() -> None:
    reply = {"payload": [{"source": "page", "data": {"text/plain": "help"}}, {"source": "ask_exit"}, 7]}
    assert [page.content["data"] for page in translate.pages(reply)] == [{"text/plain": "help"}]
    assert translate.asks_exit(reply)
    assert not translate.asks_exit({"payload": [{"source": "ask_exit", "keepkernel": True}]})
    assert not translate.asks_exit({"payload": "none"})


def test_languages_that_we_know_and_others() -> None:
    for language in ("R", "python"):
        way = preparation(language)
        assert way is not None
        assert "CLOISTER_RUN_FILE" in way.enter
    assert preparation("toy") is None
