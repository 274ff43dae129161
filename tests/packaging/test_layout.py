"""The shape of the repository that packaging depends on (two wheels from one tree)."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS_WITHOUT_INIT = ("kernels", "api", "tests", "scripts", "benchmarks", "examples", "docs")


def _versions() -> dict[str, str]:
    root = tomllib.loads((ROOT / "pyproject.toml").read_text())
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text())
    init = re.search(r'^__version__ = "(.+)"$', (ROOT / "deepinfer/__init__.py").read_text(), re.MULTILINE)
    assert init is not None
    requirement = next(d for d in root["project"]["dependencies"] if d.startswith("recipe-rs"))
    return {
        "pyproject": root["project"]["version"],
        "cargo workspace": workspace["workspace"]["package"]["version"],
        "deepinfer.__version__": init.group(1),
        "required recipe-rs": requirement.split("==")[1],
    }


def test_one_version_everywhere():
    assert len(set(_versions().values())) == 1, _versions()


def test_installed_codec_has_the_same_version():
    import recipe_rs

    assert recipe_rs.__version__ == _versions()["pyproject"]


def test_no_python_file_in_the_root():
    assert [p.name for p in ROOT.glob("*.py")] == []


@pytest.mark.parametrize("folder", FOLDERS_WITHOUT_INIT)
def test_folder_is_not_a_package(folder):
    assert not (ROOT / folder / "__init__.py").exists()


def _tracked_files() -> list[Path]:
    listing = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / line for line in listing.splitlines() if (ROOT / line).is_file()]


def test_no_source_file_is_longer_than_500_lines():
    sources = (p for p in _tracked_files() if p.suffix in {".py", ".rs", ".js", ".css", ".html"})
    long = {str(p.relative_to(ROOT)): n for p in sources if (n := len(p.read_bytes().splitlines())) > 500}
    assert long == {}


TORCH_FREE = (
    "recipe_rs",
    "deepinfer",
    "deepinfer.config",
    "deepinfer.scheduler",
    "deepinfer.kvcache",
    "deepinfer.sampling",
    "deepinfer.engine",
    "deepinfer.loader",
    "deepinfer_kernels",
    "deepinfer.cli.main",
    "deepinfer_api.app",
)


def test_imports_without_torch():
    """None of these packages needs torch (or triton) to be imported, and none touches a device."""
    program = (
        "import sys, importlib\n"
        "class Refuse:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in ('torch', 'triton', 'transformers'):\n"
        "            raise ImportError('forbidden here: ' + name)\n"
        "sys.meta_path.insert(0, Refuse())\n"
        f"for name in {TORCH_FREE!r}: importlib.import_module(name)\n"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT / "tests")
    assert result.returncode == 0, result.stderr
