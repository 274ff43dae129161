import subprocess
import sys

import deepinfer


def test_importing_the_package_imports_nothing_heavy():
    program = (
        "import sys, deepinfer; print(any(name in sys.modules for name in ('torch', 'numpy', 'recipe_rs', 'rich')))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_the_engine_runs_without_torch():
    program = (
        "import sys; sys.modules['torch'] = None; import deepinfer.engine.async_engine, deepinfer.engine.llm, "
        "deepinfer.engine.build, deepinfer.sampling; print('ok')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "ok"


def test_every_exported_name_exists():
    for name in deepinfer.__all__:
        assert getattr(deepinfer, name) is not None
    assert set(deepinfer.__all__) <= set(dir(deepinfer))


def test_an_unknown_name_is_an_attribute_error():
    assert not hasattr(deepinfer, "no_such_name")
