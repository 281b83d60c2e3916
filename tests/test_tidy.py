"""What prose cannot hold: rules about the code that a program can check.

A rule takes a file's text or syntax tree and returns one complaint for each fault, so that the
second half of this file can show each rule a bad snippet and see it complain.
"""

import ast
import os
import re
import tomllib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).parent.parent
PYPROJECT: dict[str, Any] = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
SETUPTOOLS: dict[str, Any] = PYPROJECT["tool"]["setuptools"]

FILE_LINES_MAX = 600
FUNCTION_LINES_MAX = 60
LINE_LENGTH_MAX = 100
MODULE_DOCSTRING_LINES_MAX = 10
PACKAGE_DOCSTRING_LINES_MAX = 3

# What is longer than it should be, as long as it is today. A number here only goes down, and
# an entry leaves once its file or function fits; nothing new comes in.
LONG_FILES: dict[str, int] = {}
LONG_FUNCTIONS: dict[str, int] = {}  # by "folder/module.py::Class.function"

# Who may catch everything, and why nothing narrower will do there.
CATCHES_EVERYTHING: dict[str, str] = {
    "broker/dispatch.py": "the top of a connection: a handler's error is not everybody's",
}

# Names that are not ours: asyncio calls these.
ASYNCIO_NAMES = {
    *("get_buffer", "get_debug", "get_extra_info", "get_exception_handler", "get_loop"),
    *("get_protocol", "get_task_factory", "get_write_buffer_limits", "get_write_buffer_size"),
}

# The doors to the world, and what each may use that no other module of Ottla may.
FILES, CLOCK, RANDOMNESS, SLEEP = "files", "a clock", "randomness", "sleep"
DOORS = {"storage/disk_files.py": {FILES}, "broker/world.py": {CLOCK, RANDOMNESS}}
# The command line makes and removes the directory of an ephemeral broker.
DOORS["broker/cli.py"] = {FILES}
# A test may read files and measure itself; it may not wait, nor differ from run to run.
ALLOWED_IN_TESTS = {FILES, CLOCK}

BANNED = {
    FILES: "open io.open os.open os.fdopen os.fsync os.listdir os.makedirs os.mkdir os.remove "
    "os.rename os.replace os.rmdir os.scandir os.stat os.truncate os.unlink os.walk",
    CLOCK: "time.time time.time_ns time.monotonic time.monotonic_ns time.perf_counter "
    "time.perf_counter_ns datetime.datetime.now datetime.datetime.utcnow datetime.date.today",
    RANDOMNESS: "os.urandom uuid.uuid1 uuid.uuid4",
    SLEEP: "time.sleep",
}
BANNED_NAMES = {name: kind for kind, names in BANNED.items() for name in names.split()}
# A pathlib.Path opens files behind the door's back; inside Ottla a path is a string.
BANNED_MODULES = {
    "pathlib": FILES,
    "random": RANDOMNESS,
    "secrets": RANDOMNESS,
    "shutil": FILES,
    "tempfile": FILES,
}

VAGUE_NAMES = {"base", "common", "helper", "helpers", "manager", "misc", "util", "utils"}
NOT_INSTALLED = ("tests", "compat_tests", "bench")
# In capitals they are notes of work not done; written small here, to pass their own rule.
LEFTOVER_WORDS = [word.upper() for word in ("todo", "fixme", "xxx")]
LEFTOVER = re.compile(rf"\b(?:{'|'.join(LEFTOVER_WORDS)})\b")


# --- the files that there are -------------------------------------------------------------


def python_files(folder: str) -> list[str]:
    """The Python files below a folder of the repository; the links in ottla/ are not followed."""
    found = []
    for place, folders, names in os.walk(REPOSITORY / folder):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "__")))
        found += [Path(place, name) for name in sorted(names) if name.endswith(".py")]
    return [str(path.relative_to(REPOSITORY)) for path in found]


def folders_with_python() -> list[str]:
    names = sorted(path.name for path in REPOSITORY.iterdir() if path.is_dir())
    # build/ is what setuptools leaves behind: copies.
    return [n for n in names if not n.startswith(".") and n != "build" and python_files(n)]


PRODUCT_FOLDERS = [name for name in folders_with_python() if name not in NOT_INSTALLED]
PRODUCT = [path for folder in PRODUCT_FOLDERS for path in python_files(folder)]
MODULES = [path for path in PRODUCT if not path.endswith("__init__.py")]
PACKAGES = [path for path in PRODUCT if path.endswith("__init__.py")]
TESTS = python_files("tests")
PYTHON = PRODUCT + [path for folder in NOT_INSTALLED for path in python_files(folder)]
DOCUMENTS = sorted(path.name for path in REPOSITORY.glob("*.md"))
TEXTS = [*PYTHON, *DOCUMENTS, "Makefile", "pyproject.toml", ".ci/run"]


@cache
def text_of(path: str) -> str:
    return (REPOSITORY / path).read_text()


@cache
def tree_of(path: str) -> ast.Module:
    return ast.parse(text_of(path))


# --- the rules ----------------------------------------------------------------------------


def leftovers(text: str) -> list[str]:
    """Notes of work not done: they belong into an issue."""
    lines = enumerate(text.splitlines(), 1)
    return [f"line {number}: {line.strip()}" for number, line in lines if LEFTOVER.search(line)]


def vague_names(path: str) -> list[str]:
    parts = Path(path).with_suffix("").parts
    return [f"{part} does not say what is inside" for part in parts if part in VAGUE_NAMES]


def docstring_faults(tree: ast.Module, *, lines_max: int) -> list[str]:
    docstring = ast.get_docstring(tree)
    if not docstring:
        return ["no docstring: what is this, and what must it not know?"]
    count = len(docstring.splitlines())
    return [f"docstring of {count} lines, {lines_max} at most"] if count > lines_max else []


def code_beside_docstring(tree: ast.Module) -> list[str]:
    rest = tree.body[1:] if ast.get_docstring(tree) else tree.body
    return [f"line {node.lineno}: {ast.unparse(node)[:60]}" for node in rest]


def functions(tree: ast.Module) -> dict[str, ast.FunctionDef | ast.AsyncFunctionDef]:
    """Every function by its qualified name."""

    def below(node: ast.AST, prefix: str) -> Iterator[tuple[str, Any]]:
        for child in ast.iter_child_nodes(node):
            name = prefix
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                name = f"{prefix}.{child.name}" if prefix else child.name
                if not isinstance(child, ast.ClassDef):
                    yield name, child
            yield from below(child, name)

    return dict(below(tree, ""))


def getters(tree: ast.Module) -> list[str]:
    found = functions(tree).items()
    return [
        f"line {f.lineno}: {name}"
        for name, f in found
        if f.name.startswith("get_") and f.name not in ASYNCIO_NAMES
    ]


def catch_alls(tree: ast.Module) -> list[str]:
    """Handlers that catch everything, but for those that only clean up and raise it again."""

    def everything(caught: ast.expr | None) -> bool:
        if isinstance(caught, ast.Tuple):
            return any(everything(each) for each in caught.elts)
        return caught is None or ast.unparse(caught) in ("Exception", "BaseException")

    def raised_again(handler: ast.ExceptHandler) -> bool:
        last = handler.body[-1]
        return isinstance(last, ast.Raise) and last.exc is None

    handlers = [node for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler)]
    faults = [h for h in handlers if everything(h.type) and not raised_again(h)]
    return [f"line {handler.lineno}: catches everything" for handler in faults]


def names_used(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """Each imported name that is read, and `open`: in full, whatever it is called here."""
    known = {"open": "open"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for each in node.names:
                top = each.name.split(".")[0]
                known[each.asname or top] = each.name if each.asname else top
        if isinstance(node, ast.ImportFrom):
            known |= {each.asname or each.name: f"{node.module}.{each.name}" for each in node.names}
    inner = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    handed_in = names_handed_in(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Name) and id(node) not in inner:
            first, *rest = ast.unparse(node).split(".")
            if first in known and id(node) not in handed_in:
                yield ".".join([known[first], *rest]), node


def names_handed_in(tree: ast.Module) -> set[int]:
    """The names, dotted ones in full, that stand for an argument of the function around them."""
    found = set()
    for function in functions(tree).values():
        arguments = function.args
        names = {a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
        for node in (inner for statement in function.body for inner in ast.walk(statement)):
            if isinstance(node, ast.Attribute | ast.Name):
                found |= {id(node)} if ast.unparse(node).split(".")[0] in names else set()
    return found


def banned_uses(tree: ast.Module, *, allowed: set[str], seeds_allowed: bool = False) -> list[str]:
    """What reaches past the doors, whether it is called or kept to be called later."""
    calls = {id(node.func): node for node in ast.walk(tree) if isinstance(node, ast.Call)}
    faults = []
    for name, node in names_used(tree):
        kind = BANNED_NAMES.get(name) or BANNED_MODULES.get(name.split(".")[0])
        if name == "random.Random":
            call = calls.get(id(node))
            seeded = call is not None and bool(call.args) and seeds_allowed
            # Naming the type of what is handed in is right; making one is not.
            kind = None if call is None or seeded else RANDOMNESS
        if kind and kind not in allowed:
            faults.append(f"line {node.lineno}: {name}: {kind} comes from a door")
    return faults


def long_lines(text: str) -> list[str]:
    lines = enumerate(text.splitlines(), 1)
    return [f"line {number}" for number, line in lines if len(line) > LINE_LENGTH_MAX]


def long_functions(tree: ast.Module) -> dict[str, int]:
    lengths = {
        name: (function.end_lineno or 0) - function.lineno + 1
        for name, function in functions(tree).items()
    }
    return {name: lines for name, lines in lengths.items() if lines > FUNCTION_LINES_MAX}


def ratchet(too_long: dict[str, int], exceptions: dict[str, int]) -> list[str]:
    """What is too long must be listed with its very length, and nothing else may be listed."""
    names = sorted({*too_long, *exceptions})
    return [
        f"{name}: {too_long.get(name, 'short enough')}, listed as {exceptions.get(name, 'nothing')}"
        for name in names
        if too_long.get(name) != exceptions.get(name)
    ]


def unmapped(modules: list[str], document: str) -> list[str]:
    """Modules that the map does not name, and rows of the map that name no module."""
    mapped = re.findall(r"^\| `([^`]+\.py)` \|", document, re.MULTILINE)
    missing = [
        f"the map lacks a row: | `{path}` | what it is |" for path in modules if path not in mapped
    ]
    stale = [f"the map names {path}, which is not there" for path in mapped if path not in modules]
    twice = [f"the map names {path} twice" for path in set(mapped) if mapped.count(path) > 1]
    return missing + stale + twice


def dead_links(document: str, exists: Callable[[str], bool]) -> list[str]:
    targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)", document)
    return [
        f"{target} is not there" for target in targets if "://" not in target if not exists(target)
    ]


def packaging_faults(
    product: list[str], setuptools: dict[str, Any], links: dict[str, str]
) -> list[str]:
    """Where pyproject.toml and the links in ottla/ differ from the folders that hold modules.

    A package that the list lacks is left out of the wheel without a word.
    """
    folders = sorted({str(Path(path).parent) for path in product})
    top = [folder for folder in folders if "/" not in folder]

    def installed_as(folder: str) -> str:
        return folder if folder == "ottla" else f"ottla.{folder}".replace("/", ".")

    pairs: list[tuple[str, object, object]] = [
        ("packages", sorted(setuptools["packages"]), sorted(map(installed_as, folders))),
        ("package-dir", setuptools["package-dir"], {installed_as(f): f for f in top}),
        ("links in ottla/", links, {f: f"../{f}" for f in top if f != "ottla"}),
    ]
    faults = [f"{what}: {now}, should be {should}" for what, now, should in pairs if now != should]
    bare = [folder for folder in folders if f"{folder}/__init__.py" not in product]
    return faults + [f"{folder}/ has no __init__.py" for folder in bare]


# --- the rules, file by file --------------------------------------------------------------


def none_of(faults: list[str]) -> None:
    if faults:
        pytest.fail("\n".join(faults), pytrace=False)


@pytest.mark.parametrize("path", TEXTS)
def test_nothing_is_left_to_do(path: str) -> None:
    none_of(leftovers(text_of(path)))


@pytest.mark.parametrize("path", PYTHON)
def test_names_say_what_is_inside(path: str) -> None:
    none_of(vague_names(path))
    none_of(getters(tree_of(path)))


@pytest.mark.parametrize("path", PYTHON)
def test_lengths_are_within_bounds(path: str) -> None:
    none_of(long_lines(text_of(path)))
    lines = len(text_of(path).splitlines())
    too_long = {path: lines} if lines > FILE_LINES_MAX else {}
    none_of(ratchet(too_long, {p: n for p, n in LONG_FILES.items() if p == path}))
    found = {f"{path}::{name}": n for name, n in long_functions(tree_of(path)).items()}
    listed = {name: n for name, n in LONG_FUNCTIONS.items() if name.startswith(f"{path}::")}
    none_of(ratchet(found, listed))


@pytest.mark.parametrize("path", MODULES)
def test_a_module_says_what_it_is(path: str) -> None:
    none_of(docstring_faults(tree_of(path), lines_max=MODULE_DOCSTRING_LINES_MAX))


@pytest.mark.parametrize("path", PACKAGES)
def test_a_package_holds_a_docstring_and_no_code(path: str) -> None:
    none_of(docstring_faults(tree_of(path), lines_max=PACKAGE_DOCSTRING_LINES_MAX))
    none_of(code_beside_docstring(tree_of(path)))


@pytest.mark.parametrize("path", PRODUCT)
def test_the_world_is_reached_through_doors_only(path: str) -> None:
    none_of(banned_uses(tree_of(path), allowed=DOORS.get(path, set())))


@pytest.mark.parametrize("path", TESTS)
def test_a_test_neither_sleeps_nor_throws_dice(path: str) -> None:
    none_of(banned_uses(tree_of(path), allowed=ALLOWED_IN_TESTS, seeds_allowed=True))


@pytest.mark.parametrize("path", PYTHON)
def test_errors_are_caught_by_their_names(path: str) -> None:
    faults = catch_alls(tree_of(path))
    if path in CATCHES_EVERYTHING:
        assert faults, "it catches nothing any more: take its entry out"
    else:
        none_of(faults)


@pytest.mark.parametrize("path", DOCUMENTS)
def test_documents_link_to_what_is_there(path: str) -> None:
    none_of(dead_links(text_of(path), lambda target: (REPOSITORY / target).exists()))


def test_architecture_names_every_module() -> None:
    none_of(unmapped(MODULES, text_of("ARCHITECTURE.md")))


def test_packaging_knows_every_package() -> None:
    entries = (REPOSITORY / "ottla").iterdir()
    links = {path.name: os.readlink(path) for path in entries if path.is_symlink()}
    none_of(packaging_faults(PRODUCT, SETUPTOOLS, links))
    assert SETUPTOOLS["package-data"] == {"ottla": ["py.typed"]}
    assert (REPOSITORY / "ottla" / "py.typed").exists()


def test_types_are_checked_in_every_folder() -> None:
    others = [folder for folder in NOT_INSTALLED if python_files(folder)]
    assert PYPROJECT["tool"]["mypy"]["files"] == ["ottla", *others]


def test_exceptions_are_for_files_that_are_there() -> None:
    listed = [*LONG_FILES, *CATCHES_EVERYTHING, *(name.split("::")[0] for name in LONG_FUNCTIONS)]
    none_of([f"{path} is gone: take its entry out" for path in listed if path not in PYTHON])


# --- each rule complains about what it is there for, and only about that ------------------

BANNED_SNIPPETS = {
    "builtin open": "def f(path): return open(path)",
    "os.open": "import os\ndef f(path): return os.open(path, 0)",
    "open under another name": "from os import open as o\ndef f(path): return o(path, 0)",
    "removing a file": "import os\ndef f(path): os.unlink(path)",
    "a path that reads": "from pathlib import Path\ndef f(path: Path): return path.read_bytes()",
    "a temporary file": "import tempfile\nplace = tempfile.mkdtemp()",
    "wall clock": "import time\nnow = time.time()",
    "wall clock under another name": "from time import time as now\nwall = now()",
    "module under another name": "import time as t\nwall = t.monotonic()",
    "clock kept for later": "import time\ndef f(clock=time.monotonic): ...",
    "datetime": "from datetime import datetime\nnow = datetime.now()",
    "sleep": "import time\ntime.sleep(1)",
    "dice": "import random\nside = random.randint(1, 6)",
    "dice of one's own": "import random\ndice = random.Random(1)",
    "urandom": "from os import urandom\nkey = urandom(16)",
    "uuid": "import uuid\nid = uuid.uuid4()",
    "secrets": "import secrets\nkey = secrets.token_bytes(16)",
}
HARMLESS_SNIPPETS = {
    "the type of what is handed in": "import random\ndef f(dice: random.Random): dice.random()",
    "an argument of that name": "import random\ndef f(random): return random.random()",
    "something called random": "def f(random): return random.random()",
    "a method called read_bytes": "def f(files, path): return files.read_bytes(path)",
    "a method called open": "def f(files, path): return files.open(path)",
    "a clock handed in": "def f(now): return now.monotonic_ms",
    "the environment": "import os\nhome = os.environ",
}


@pytest.mark.parametrize("snippet", BANNED_SNIPPETS.values(), ids=BANNED_SNIPPETS)
def test_a_use_past_the_doors_is_found(snippet: str) -> None:
    assert len(banned_uses(ast.parse(snippet), allowed=set())) == 1


@pytest.mark.parametrize("snippet", HARMLESS_SNIPPETS.values(), ids=HARMLESS_SNIPPETS)
def test_what_is_handed_in_may_be_used(snippet: str) -> None:
    assert banned_uses(ast.parse(snippet), allowed=set()) == []


def test_a_door_opens_for_its_own_kind_only() -> None:
    both = ast.parse("import time\ndef f(path): return open(path), time.time()")
    (complaint,) = banned_uses(both, allowed={FILES})
    assert "time.time" in complaint


def test_a_test_may_throw_dice_with_a_seed() -> None:
    seeded = ast.parse("import random\ndice = random.Random(7)")
    unseeded = ast.parse("import random\ndice = random.Random()")
    assert banned_uses(seeded, allowed=ALLOWED_IN_TESTS, seeds_allowed=True) == []
    assert banned_uses(unseeded, allowed=ALLOWED_IN_TESTS, seeds_allowed=True) != []


CATCHING = {  # handler: is it a fault?
    "except: pass": True,
    "except Exception: pass": True,
    "except (OSError, BaseException): pass": True,
    "except Exception as e: raise OSError from e": True,
    "except BaseException: raise": False,
    "except OSError: pass": False,
}


@pytest.mark.parametrize(("handler", "is_fault"), CATCHING.items(), ids=CATCHING)
def test_catching_everything_is_found(handler: str, is_fault: bool) -> None:
    assert bool(catch_alls(ast.parse(f"try: f()\n{handler}"))) == is_fault


@pytest.mark.parametrize("word", LEFTOVER_WORDS)
def test_a_leftover_is_found_in_its_line(word: str) -> None:
    (complaint,) = leftovers(f"a = 1\nb = 2  # {word}: later\n")
    assert complaint.startswith("line 2")
    assert leftovers(f"MAS{word}NTE") == []


def test_a_vague_name_is_found_anywhere_in_a_path() -> None:
    assert vague_names("storage/utils.py")
    assert vague_names("storage/common/log.py")
    assert vague_names("storage/log.py") == []


def test_a_getter_is_found_in_a_class_too() -> None:
    assert (
        len(getters(ast.parse("class A:\n def get_size(self): ...\nasync def get_b(): ..."))) == 2
    )
    assert getters(ast.parse("def target(): ...\ndef getter(): ...")) == []


def test_a_docstring_is_required_and_bounded() -> None:
    assert docstring_faults(ast.parse("a = 1"), lines_max=3)
    assert docstring_faults(ast.parse('"""One.\n\nThree.\nFour.\n"""'), lines_max=3)
    assert docstring_faults(ast.parse('"""One.\n\nThree.\n"""'), lines_max=3) == []


def test_code_in_a_package_is_found() -> None:
    assert code_beside_docstring(ast.parse('"""Docstring."""\nfrom a import b'))
    assert code_beside_docstring(ast.parse("from a import b"))
    assert code_beside_docstring(ast.parse('"""Docstring."""')) == []


def test_length_is_counted_from_def_to_the_last_line() -> None:
    body = "\n".join(["  a = 1"] * FUNCTION_LINES_MAX)
    fits = "\n".join(["  a = 1"] * (FUNCTION_LINES_MAX - 1))
    tree = ast.parse(f"class C:\n def f(self):\n{body}\ndef g():\n{fits}\n")
    assert long_functions(tree) == {"C.f": FUNCTION_LINES_MAX + 1}
    assert long_lines("a" * LINE_LENGTH_MAX) == []
    assert long_lines("short\n" + "a" * (LINE_LENGTH_MAX + 1)) == ["line 2"]


RATCHET = [  # too long now, listed, is it a fault?
    ({}, {}, False),
    ({"a": 70}, {"a": 70}, False),
    ({"a": 70}, {}, True),
    ({"a": 71}, {"a": 70}, True),
    ({"a": 69}, {"a": 70}, True),
    ({}, {"a": 70}, True),
]


@pytest.mark.parametrize(("too_long", "listed", "is_fault"), RATCHET)
def test_the_ratchet_turns_one_way(
    too_long: dict[str, int], listed: dict[str, int], is_fault: bool
) -> None:
    assert bool(ratchet(too_long, listed)) == is_fault


def test_the_map_and_the_modules_must_agree() -> None:
    row = "| `a/b.py` | what it is |\n"
    assert unmapped(["a/b.py"], row) == []
    assert unmapped(["a/b.py", "a/c.py"], row) == ["the map lacks a row: | `a/c.py` | what it is |"]
    assert unmapped([], row) == ["the map names a/b.py, which is not there"]
    assert unmapped(["a/b.py"], row + row) == ["the map names a/b.py twice"]
    assert unmapped(["a/b.py"], "a/b.py is spoken of here only") == [
        "the map lacks a row: | `a/b.py` | what it is |"
    ]


def test_a_dead_link_is_found() -> None:
    document = "[a](here.md) [b](gone.md#part) [c](https://example.org) [d](#part)"
    assert dead_links(document, lambda target: target == "here.md") == ["gone.md is not there"]


def test_packaging_that_misses_a_folder_is_found() -> None:
    product = ["ottla/__init__.py", "log/__init__.py", "log/files/__init__.py"]
    right = {
        "packages": ["ottla", "ottla.log", "ottla.log.files"],
        "package-dir": {"ottla": "ottla", "ottla.log": "log"},
    }
    links = {"log": "../log"}
    assert packaging_faults(product, right, links) == []
    assert packaging_faults(product, right | {"packages": ["ottla", "ottla.log"]}, links)
    assert packaging_faults(product, right | {"package-dir": {"ottla": "ottla"}}, links)
    assert packaging_faults(product, right, {})
    assert packaging_faults(product, right, {"log": "/elsewhere/log"})
    assert packaging_faults([*product, "log/bare/module.py"], right, links)
