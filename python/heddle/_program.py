"""Finds the program `heddle` and runs it: its events, its messages, its errors and its end."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Optional, Union

log = logging.getLogger("heddle")
log.addHandler(logging.NullHandler())  # warnings.warn shows them where nobody listens

Path = Union[str, "os.PathLike[str]"]


class HeddleWarning(UserWarning):
    """What the program warns of: the logger `heddle` and warnings.warn get it."""


class Error(Exception):
    """A run failed although its input was right: a peer failed, a port is in use, the disk is full."""


class InputError(Error, ValueError):
    """Wrong input: the message names the setting, array, file or line and the value that is expected."""


class Interrupted(KeyboardInterrupt):
    """A run was interrupted (Ctrl-C). `train` with `out=e.out, resume=True` continues from its checkpoints.

    Attributes:
        out: directory of the run.
    """

    def __init__(self, message: str, out: Optional[pathlib.Path] = None):
        super().__init__(message)
        self.out = out


def program() -> str:
    """Returns the path of the program: HEDDLE_PROGRAM if it is set, else the one inside this package."""
    named = os.environ.get("HEDDLE_PROGRAM")
    if named:
        return named
    path = pathlib.Path(__file__).parent / "bin" / ("heddle.exe" if os.name == "nt" else "heddle")
    if not path.exists():
        raise Error(f"{path} is missing: install a wheel, or build ./cmd/heddle and name the file in HEDDLE_PROGRAM")
    return str(path)


def flags(settings: dict[str, Any]) -> list[str]:
    """Returns settings as flags of the program; None means that a setting is not given."""
    out = []
    for name, value in settings.items():
        if value is None:
            continue
        if isinstance(value, bool):
            value = str(value).lower()
        elif isinstance(value, (list, tuple)):
            value = ",".join(map(str, value))
        elif isinstance(value, os.PathLike):
            value = os.fspath(value)
        out.append(f"--{name.replace('_', '-')}={value}")
    return out


def run(
    args: Iterable[str],
    on_event: Optional[Callable[[dict[str, Any]], Optional[bool]]] = None,
    out: Optional[pathlib.Path] = None,
    ask: bool = False,
) -> str:
    """Runs the program and returns what it prints for people.

    With on_event the program writes its events to standard output, and on_event gets each of them; with ask it waits after
    each round for what on_event returns, whether that is the last. Ctrl-C, and an exception of on_event, interrupt the
    program, which writes a checkpoint where it can.
    """
    command = [program(), *args]
    if on_event is not None:
        command += ["--events=-", "--quiet", "--log-format=json", "--log-level=warn"] + (["--ask"] if ask else [])
    # A group of its own: Ctrl-C comes to Python alone, which passes it on once.
    group: dict[str, Any] = {"start_new_session": True}
    if os.name == "nt":
        group = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}  # type: ignore[attr-defined]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE if ask else subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, encoding="utf-8", **group,
    )  # fmt: skip
    with process:
        return _watch(process, on_event, out)


def in_python(text: str) -> str:
    """Returns text of the program with flags as Python spells settings."""
    text = re.sub(r"--([a-z][a-z-]*[a-z])", lambda m: m[1].removesuffix("-column").replace("-", "_"), text)
    return re.sub(r"^unknown flag: (\w+)(.*?)(?: ?\(see.*)?$", r"\1 is no setting\2 (help(heddle.Settings) lists them)", text)


@contextlib.contextmanager
def in_words(data: Any, *at: Path) -> Iterator[None]:
    """Makes errors of the program about data name its fields instead of files in folders at, and settings as Python spells them."""
    try:
        yield
    except InputError as e:
        own = "(?:" + "|".join(re.escape(os.fspath(one)) for one in at) + ")"
        message = re.sub(rf"{own}\S*\.safetensors: ", "", in_python(str(e)))
        if not isinstance(data, (str, os.PathLike)):
            message = re.sub(rf"{own}\S*?(graph\.npz: array |(?=(nodes|edges)\.csv))", "", message)
            message = re.sub(r"\b(nodes|edges)\.csv: line (\d+)", lambda m: f"{m[1]}, row {int(m[2]) - 2}", message).replace("nodes.csv", "nodes")
            message = re.sub(r"\bon line (\d+)", lambda m: f"in row {int(m[1]) - 2}", message)
            message = re.sub(r"^(\w+: )?npy: ", "", message).replace("edges.csv", "edges")
        raise type(e)("site" + message.removeprefix("client") if message.startswith("client:") else message) from None


def warn(text: str, logged: bool = False) -> None:
    """Warns of text at the line outside of this package that called it."""
    if not logged:
        log.warning("%s", text)
    level, frame, here = 1, sys._getframe(), os.path.dirname(__file__)
    while frame.f_back is not None and os.path.dirname(frame.f_code.co_filename) == here:
        level, frame = level + 1, frame.f_back
    warnings.warn(text, HeddleWarning, stacklevel=level)


def _watch(process: "subprocess.Popen[str]", on_event: Optional[Callable[[dict[str, Any]], Optional[bool]]], out: Optional[pathlib.Path]) -> str:
    messages: list[str] = []
    warned: list[str] = []
    reader = threading.Thread(target=_read_messages, args=(process, messages, warned), daemon=True)
    reader.start()
    printed = []
    interrupted: Optional[BaseException] = None
    while True:
        try:
            for line in process.stdout:  # type: ignore[union-attr]
                if on_event is None:
                    printed.append(line)
                elif interrupted is None:
                    last = on_event(json.loads(line))
                    if last is not None and process.stdin:
                        with contextlib.suppress(OSError):  # the program has ended
                            process.stdin.write("stop\n" if last else "\n")
                            process.stdin.flush()
            process.wait()
            reader.join()
            break
        except BaseException as e:
            if interrupted is None:
                interrupted = e
                if process.stdin:
                    process.stdin.close()  # it waits for no answer
                process.send_signal(signal.CTRL_BREAK_EVENT if os.name == "nt" else signal.SIGINT)  # type: ignore[attr-defined]
            else:
                process.kill()
    text = "".join(printed + messages)
    for one in warned:
        warn(one, logged=True)
    if interrupted is not None:
        if isinstance(interrupted, KeyboardInterrupt):
            raise Interrupted(_fault(text) or "interrupted", out) from None
        raise interrupted
    if process.returncode != 0:
        message = _fault(text) or f"heddle ended with code {process.returncode}"
        raise (InputError if process.returncode == 2 else Error)(message)
    return text


def _read_messages(process: "subprocess.Popen[str]", messages: list[str], warned: list[str]) -> None:
    for line in process.stderr:  # type: ignore[union-attr]
        if line.startswith("{"):
            try:
                record = json.loads(line)
                level = logging.ERROR if record.pop("level") == "ERROR" else logging.WARNING
                record.pop("time", None)
                text = record.pop("msg")
                text = in_python(text + "".join(f", {k} {v}" for k, v in record.items()))
                log.log(level, "%s", text)
                if level == logging.WARNING:
                    warned.append(text)
                continue
            except (ValueError, KeyError):
                pass
        messages.append(line)


def _fault(text: str) -> str:
    """Returns the error in what the program printed: it comes last and begins with the program's name."""
    at = ("\n" + text).rfind("\nheddle: ")
    return text[at + len("heddle: ") :].strip() if at >= 0 else ""


def main() -> int:
    """Is the program: `python -m heddle`, and `heddle` on the command line."""
    command = [program(), *sys.argv[1:]]
    if os.name == "nt":
        return subprocess.call(command)
    os.execv(command[0], command)
