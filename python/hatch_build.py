"""Puts the program `heddle` into a wheel, and the Go sources that it is built from into an sdist.

HEDDLE_PROGRAM names a program that is built already. HEDDLE_TARGET is another system than this one, as linux/arm64.
"""

import os
import pathlib
import platform
import shutil
import subprocess
import tempfile

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# Tags of the systems (packaging.python.org/specifications/platform-compatibility-tags). The program is static, so that
# one wheel serves glibc and musl. Go 1.26 needs macOS 12.
TAGS = {
    "linux/amd64": "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64",
    "linux/arm64": "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64",
    "darwin/amd64": "macosx_12_0_x86_64",
    "darwin/arm64": "macosx_12_0_arm64",
    "windows/amd64": "win_amd64",
    "windows/arm64": "win_arm64",
}

# Folders of a clone that the program is not built from.
OTHER = {"bench", "docs", "examples", "mobile", "out", "packaging", "python", "runs", "wheels"}
SUFFIXES = {".css", ".go", ".h", ".html", ".js", ".mod", ".s", ".sum", ".yaml"}


class CustomBuildHook(BuildHookInterface):
    def initialize(self, version, build_data):
        root = pathlib.Path(self.root)
        sources = next((d for d in (root / "go", root.parent) if (d / "go.mod").exists()), None)
        if self.target_name == "sdist":
            if sources is None:
                raise FileNotFoundError("go.mod: an sdist is built from a clone of Heddle, in which this folder is python/")
            build_data["force_include"].update({str(f): f"go/{f.relative_to(sources).as_posix()}" for f in _go_files(sources)})
            return
        self.temporary = tempfile.TemporaryDirectory()
        made = pathlib.Path(self.temporary.name)
        processor = platform.machine().lower()
        here = f"{platform.system().lower()}/{ {'x86_64': 'amd64', 'aarch64': 'arm64'}.get(processor, processor)}"
        target = os.environ.get("HEDDLE_TARGET", here)
        if target not in TAGS:
            raise ValueError(f"HEDDLE_TARGET must be one of {', '.join(TAGS)} (got {target!r})")
        program = self._program(made, sources, target)
        name = "heddle.exe" if target.startswith("windows/") else "heddle"
        if version == "editable":
            (root / "heddle" / "bin").mkdir(exist_ok=True)
            shutil.copy(program, root / "heddle" / "bin" / name)
        else:
            build_data["force_include"][str(program)] = f"heddle/bin/{name}"
            if sources is not None and shutil.which("go"):
                _go("run", "./packaging/notices", "-out", str(made / "NOTICES"), "-targets", target, "./cmd/heddle", at=sources)
                build_data["force_include"][str(made / "NOTICES")] = "heddle/bin/NOTICES"
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{TAGS[target]}"

    def _program(self, made, sources, target):
        """Returns the file of the program, which it builds unless HEDDLE_PROGRAM names it."""
        if named := os.environ.get("HEDDLE_PROGRAM"):
            if not os.access(named, os.X_OK):
                raise FileNotFoundError(f"HEDDLE_PROGRAM must be the program heddle (got {named})")
            return named
        if sources is None or shutil.which("go") is None:
            lacks = "Go (https://go.dev/dl)" if sources else "the folder go/ of the sdist, or a clone of Heddle"
            raise RuntimeError(f"building heddle-gnn needs {lacks}, or a built program whose path HEDDLE_PROGRAM names")
        system, processor = target.split("/")
        _go("build", "-trimpath", "-ldflags=-s -w", "-o", str(made / "heddle"), "./cmd/heddle",
            at=sources, CGO_ENABLED="0", GOOS=system, GOARCH=processor)  # fmt: skip
        return made / "heddle"


def _go(*args, at=None, **variables):
    return subprocess.run(["go", *args], cwd=at, env={**os.environ, **variables}, check=True, stdout=subprocess.PIPE, text=True).stdout


def _go_files(root):
    for at, folders, files in os.walk(root):
        left = OTHER if at == str(root) else {"testdata"}
        folders[:] = sorted(d for d in folders if d not in left and d[0] not in "._")
        for name in sorted(files):
            if pathlib.Path(name).suffix in SUFFIXES and not name.endswith("_test.go"):
                yield pathlib.Path(at) / name
    yield root / "packaging" / "notices" / "main.go"
