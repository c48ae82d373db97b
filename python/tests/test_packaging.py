"""Wheels and sdist, as pip and build make them, in bare environments. Builds the program: HEDDLE_LONG=1 runs it."""

import os
import pathlib
import re
import struct
import subprocess
import sys
import zipfile

import pytest

ROOT = pathlib.Path(__file__).parents[2]
PYENV = pathlib.Path(os.environ.get("PYENV_ROOT", pathlib.Path.home() / ".pyenv")) / "versions"
BARE = {k: v for k, v in os.environ.items() if k not in ("HEDDLE_PROGRAM", "PYTHONPATH")}


def run(*args, cwd=ROOT, **variables):
    done = subprocess.run(list(map(str, args)), cwd=cwd, env={**BARE, **variables}, capture_output=True, text=True)
    assert done.returncode == 0, f"{args}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def pythons():
    """Returns the oldest Python here of at least 3.10, and the newest."""
    found = {tuple(map(int, m[1].split("."))): p for p in PYENV.glob("*/bin/python") if (m := re.match(r"(3\.1\d\.\d+)$", p.parents[1].name))}
    return [found[v] for v in sorted({min(found), max(found)})] if found else [pathlib.Path(sys.executable)]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    if not os.environ.get("HEDDLE_LONG"):
        pytest.skip("SKIPPED: builds the program and installs it; HEDDLE_LONG=1 runs it")
    out = tmp_path_factory.mktemp("built")
    run(sys.executable, "-m", "build", "--outdir", out, ROOT / "python")  # the sdist, and the wheel of the sdist
    run(sys.executable, "-m", "twine", "check", "--strict", *out.iterdir())
    return out


def test_the_same_source_gives_the_same_bytes(built, tmp_path):
    wheels = []
    for k in "ab":
        run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", tmp_path / k, ROOT / "python")
        wheels += [p.read_bytes() for p in (tmp_path / k).iterdir()]
    assert len(wheels) == 2 and wheels[0] == wheels[1]


@pytest.mark.parametrize("python", pythons(), ids=lambda p: p.parents[1].name)
@pytest.mark.parametrize("kind", ["*.whl", "*.tar.gz", "editable"])
def test_installed_in_a_bare_environment(built, tmp_path, python, kind):
    run(python, "-m", "venv", tmp_path / "env")
    own = tmp_path / "env" / "bin"
    what = ["-e", ROOT / "python"] if kind == "editable" else [next(built.glob(kind))]
    run(own / "pip", "install", "-q", *what)
    assert "Requires: numpy\n" in run(own / "pip", "show", "heddle-gnn")
    assert run(own / "heddle", "--version").startswith("heddle version")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    lines = re.search("```python\n(.*?)```\n", readme, re.S)[1]
    assert run(own / "python", "-c", lines, cwd=tmp_path) == re.search("  # (test accuracy .*\n)", lines)[1]


def test_without_go_one_sentence_says_what_is_missing(built, tmp_path):
    sdist = next(built.glob("*.tar.gz"))
    done = subprocess.run([sys.executable, "-m", "pip", "wheel", "--no-deps", "-w", tmp_path, sdist],
                          env={**BARE, "PATH": "/usr/bin:/bin"}, capture_output=True, text=True)  # fmt: skip
    assert done.returncode != 0
    assert "building heddle-gnn needs Go (https://go.dev/dl), or a built program whose path HEDDLE_PROGRAM names" in done.stdout + done.stderr


def system(program):
    """Returns the system that a program is for, by its header."""
    if program[:4] == b"\x7fELF":
        return "linux-" + {62: "amd64", 183: "arm64"}[struct.unpack_from("<H", program, 18)[0]]
    if program[:2] == b"MZ":
        at = struct.unpack_from("<I", program, 60)[0]
        return "windows-" + {0x8664: "amd64", 0xAA64: "arm64"}[struct.unpack_from("<H", program, at + 4)[0]]
    return "darwin-" + {0x01000007: "amd64", 0x0100000C: "arm64"}[struct.unpack_from("<I", program, 4)[0]]


TAGS = {"linux": ("manylinux_2_17_", "x86_64", "aarch64"), "darwin": ("macosx_12_0_", "x86_64", "arm64"), "windows": ("win_", "amd64", "arm64")}


def test_wheels_of_other_systems(tmp_path):
    if not (programs := os.environ.get("HEDDLE_PROGRAMS")):
        pytest.skip("SKIPPED: HEDDLE_PROGRAMS names no directory of programs for other systems")
    names = sorted(p.name for p in pathlib.Path(programs).iterdir())
    assert names
    for name in names:
        of, processor = name.split("-")
        run(ROOT / "packaging" / "wheels", tmp_path / name, f"{of}/{processor}", PROGRAMS=programs)
        (wheel,) = (tmp_path / name).iterdir()
        start, amd, arm = TAGS[of]
        assert f"-py3-none-{start}{amd if processor == 'amd64' else arm}." in wheel.name
        with zipfile.ZipFile(wheel) as z:
            (inside,) = [i for i in z.infolist() if i.filename.startswith("heddle/bin/heddle")]
            assert inside.filename.endswith(".exe") == (of == "windows")
            assert inside.external_attr >> 16 & 0o111
            assert system(z.read(inside)) == name
            modules = re.findall(r"\tdep\t(\S+)\t(\S+)", run("go", "version", "-m", pathlib.Path(programs) / name))
            notices = z.read("heddle/bin/NOTICES").decode()
            assert modules and [m for m in modules if f"\n{m[0]} {m[1]}: " not in notices] == []
