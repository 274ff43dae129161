"""The wheels as a user gets them: built from the tree, installed into an environment of their own."""

import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def _build(arguments: list[str]) -> None:
    result = subprocess.run([sys.executable, "-m", *arguments], cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr[-2000:]


@pytest.fixture(scope="module")
def codec_wheel(tmp_path_factory) -> Path:
    """The wheel that the set-up built and installed, unless the sources have changed since."""
    newest = max(
        path.stat().st_mtime for path in (ROOT / "recipe-rs").rglob("*") if path.suffix in (".rs", ".toml", ".py")
    )
    for wheel in (ROOT / ".stamps/wheels").glob("*.whl"):
        if wheel.stat().st_mtime > newest:
            return wheel
    out = tmp_path_factory.mktemp("codec")
    _build(["maturin", "build", "--release", "-q", "-m", "recipe-rs/Cargo.toml", "-o", str(out)])
    (wheel,) = out.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def engine_wheel(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("engine")
    _build(["hatchling", "build", "-t", "wheel", "-d", str(out)])
    (wheel,) = out.glob("*.whl")
    return wheel


@pytest.mark.timeout(600)
def test_codec_wheel_is_small_and_has_no_dependency(codec_wheel):
    assert "cp311-abi3" in codec_wheel.name
    assert codec_wheel.stat().st_size < 6_000_000
    with zipfile.ZipFile(codec_wheel) as archive:
        names = archive.namelist()
        metadata = archive.read(next(n for n in names if n.endswith("METADATA"))).decode()
    assert "Requires-Dist" not in metadata
    for name in ("recipe_rs/__init__.py", "recipe_rs/_native.pyi", "recipe_rs/py.typed"):
        assert name in names


@pytest.mark.timeout(600)
def test_codec_wheel_works_alone(codec_wheel, tmp_path):
    """In an environment with nothing else, from a folder that is not the repository."""
    venv.create(tmp_path / "env", with_pip=True)
    python = tmp_path / "env/bin/python"
    install = [python, "-m", "pip", "install", "-q", "--no-index", "--disable-pip-version-check", codec_wheel]
    subprocess.run(install, check=True, capture_output=True)
    program = (
        "import sys, recipe_rs; assert not {'torch', 'numpy'} & set(sys.modules); "
        "print(recipe_rs.TextStream.__name__, recipe_rs.__version__)"
    )
    result = subprocess.run([python, "-c", program], capture_output=True, text=True, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("TextStream ")


def test_engine_wheel_holds_three_packages(engine_wheel):
    assert engine_wheel.name.endswith("py3-none-any.whl")
    with zipfile.ZipFile(engine_wheel) as archive:
        names = set(archive.namelist())
    for package in ("deepinfer", "deepinfer_kernels", "deepinfer_api"):
        assert f"{package}/__init__.py" in names
        assert f"{package}/py.typed" in names
    assert {n.split("/")[0] for n in names if ".dist-info" not in n} == {
        "deepinfer",
        "deepinfer_kernels",
        "deepinfer_api",
    }
    assert "deepinfer_api/static/index.html" in names
