"""Ottla installed for real, in every way that pip knows.

The folders at the top of the repository become subpackages of `ottla`. This is where one of
them could land in somebody's site-packages under its own name, or be left out of a wheel.
Needs the package index, so `make packaging` runs it and `make test` does not.
"""

import os
import shutil
import subprocess
import sys
import tomllib
import venv
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

pytestmark = pytest.mark.packaging

REPOSITORY = Path(__file__).parent.parent
PYPROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
DEPENDENCIES: list[str] = PYPROJECT["project"]["dependencies"]
FOLDERS: dict[str, str] = PYPROJECT["tool"]["setuptools"]["package-dir"]
VERSION: str = PYPROJECT["project"]["version"]

LEFT_BEHIND = shutil.ignore_patterns(
    ".git", ".venv*", ".*_cache", "__pycache__", "build", "*.egg-info"
)
FROM_SETUPTOOLS = "import sys, setuptools.build_meta as b; print(b.build_sdist(sys.argv[1]))"


@dataclass(frozen=True, slots=True)
class Installed:
    python: Path
    way: str
    new_in_site_packages: set[str]
    new_commands: set[str]

    def run(self, *arguments: str) -> str:
        return run(str(self.python), "-P", *arguments, cwd=self.python.parent)


def run(*command: str, cwd: Path) -> str:
    # Nothing of the shell that started the tests may leak into what is imported.
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    ran = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, f"{' '.join(command)[:200]}\n{ran.stderr[-2000:]}"
    return ran.stdout


def install(python: Path, *what: str) -> None:
    run(sys.executable, "-m", "pip", "--python", str(python), "install", *what, cwd=python.parent)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository as a clone has it, in a place where a build may leave its files."""
    copy = tmp_path_factory.mktemp("source") / "clone"
    return Path(shutil.copytree(REPOSITORY, copy, symlinks=True, ignore=LEFT_BEHIND))


@pytest.fixture(scope="module")
def sdist(source: Path) -> Path:
    name = run(sys.executable, "-c", FROM_SETUPTOOLS, "sdist", cwd=source).splitlines()[-1]
    return source / "sdist" / name


@pytest.fixture(scope="module")
def wheel(sdist: Path) -> Path:
    run(sys.executable, "-m", "pip", "wheel", "--no-deps", str(sdist), cwd=sdist.parent)
    (built,) = sdist.parent.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def download(source: Path) -> Path:
    """An archive as a browser gets it: pip unpacks its links as files that hold their target."""
    archive = source.parent / "ottla-main.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        for path in sorted(source.rglob("*")):
            name = f"ottla-main/{path.relative_to(source)}"
            if path.is_symlink():
                packed.writestr(name, os.readlink(path))
            elif path.is_file():
                packed.write(path, name)
    return archive


WAYS: dict[str, Callable[[pytest.FixtureRequest], list[str]]] = {
    "folder": lambda request: [str(request.getfixturevalue("source"))],
    "editable": lambda request: ["--editable", str(request.getfixturevalue("source"))],
    "sdist": lambda request: [str(request.getfixturevalue("sdist"))],
    "wheel-from-sdist": lambda request: [str(request.getfixturevalue("wheel"))],
    "download": lambda request: [str(request.getfixturevalue("download"))],
}


@pytest.fixture(scope="module", params=list(WAYS))
def installed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Installed:
    """Ottla in an environment that holds nothing else but what Ottla declares it needs."""
    home = tmp_path_factory.mktemp("installed")
    venv.create(home, with_pip=False, symlinks=True)
    python = home / "bin" / "python"
    (site_packages,) = home.glob("lib/python*/site-packages")
    install(python, *DEPENDENCIES)
    names_before = set(os.listdir(site_packages))
    commands_before = set(os.listdir(python.parent))
    install(python, "--no-deps", *WAYS[request.param](request))
    return Installed(
        python=python,
        way=request.param,
        new_in_site_packages=set(os.listdir(site_packages)) - names_before,
        new_commands=set(os.listdir(python.parent)) - commands_before,
    )


def modules_in_repository() -> dict[str, Path]:
    """Every module that must be there once Ottla is installed, with its file."""
    modules = {}
    for package, folder in FOLDERS.items():
        for path in sorted((REPOSITORY / folder).rglob("*.py")):
            parts = path.relative_to(REPOSITORY / folder).with_suffix("").parts
            if not (REPOSITORY / folder / parts[0]).is_symlink():
                modules[".".join((package, *parts)).removesuffix(".__init__")] = path
    return modules


def test_site_packages_gets_ottla_and_nothing_else(installed: Installed) -> None:
    record = f"ottla-{VERSION}.dist-info"
    # An editable install points to the folder instead of holding it, by two files of setuptools.
    finder = f"__editable___ottla_{VERSION.replace('.', '_')}_finder.py"
    pointer = {f"__editable__.ottla-{VERSION}.pth", finder}
    package = pointer if installed.way == "editable" else {"ottla"}
    assert installed.new_in_site_packages - {"__pycache__"} == {record, *package}


def test_ottla_is_the_only_command(installed: Installed) -> None:
    assert installed.new_commands == {"ottla"}
    said = run(str(installed.python.parent / "ottla"), "version", cwd=installed.python.parent)
    assert said == f"ottla {VERSION}\n"


def test_no_folder_can_be_imported_by_its_own_name(installed: Installed) -> None:
    folders = [folder for package, folder in FOLDERS.items() if package != folder]
    names = sorted({*folders, "tests", "compat_tests", "bench"})
    program = (
        "import importlib.util, sys; "
        "print([name for name in sys.argv[1:] if importlib.util.find_spec(name)])"
    )
    assert installed.run("-c", program, *names).strip() == "[]"


def test_every_module_arrives_and_its_imports_are_declared(installed: Installed) -> None:
    program = (
        "import importlib, sys\n"
        "for name in sys.argv[1:]: print(importlib.import_module(name).__spec__.name)"
    )
    modules = modules_in_repository()
    assert installed.run("-c", program, *modules).splitlines() == list(modules)


def test_a_type_checker_is_told_that_ottla_has_types(installed: Installed) -> None:
    program = (
        "import ottla, pathlib; print((pathlib.Path(ottla.__file__).parent / 'py.typed').exists())"
    )
    assert installed.run("-c", program).strip() == "True"


def test_the_wheel_holds_the_modules_and_no_other_file(wheel: Path) -> None:
    expected = {"ottla/py.typed"}
    for name, path in modules_in_repository().items():
        file = name.replace(".", "/")
        expected.add(f"{file}/__init__.py" if path.name == "__init__.py" else f"{file}.py")
    with zipfile.ZipFile(wheel) as opened:
        held = {name for name in opened.namelist() if ".dist-info/" not in name}
        licenses = [name for name in opened.namelist() if name.endswith("licenses/LICENSE")]
    assert held == expected
    assert len(licenses) == 1
