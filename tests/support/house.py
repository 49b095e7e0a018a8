"""The figures of the house, each with its limit: `make house` prints them.

How long are the chains of imports, how many modules does one need, how long are files and
functions? A figure over its limit is marked.
"""

import ast
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.imports import SOURCE, imports, reached, trees


class Figure(NamedTuple):
    """A number, the most that it may be, and where it was found."""

    what: str
    value: int
    limit: int
    where: str = ""

    @property
    def is_kept(self):
        return self.value <= self.limit

    def __str__(self):
        mark = " " if self.is_kept else "!"
        return f"{mark} {self.what:<38}{self.value:>7}  of at most{self.limit:>7}  {self.where}"


def longest_chain():
    """Return how many modules the longest chain of imports has; lazy imports are not in it."""
    graph = reached(only_at_module_level=True)
    graph = {module: targets - {""} for module, targets in graph.items() if module}

    @cache
    def chain(module):
        longer = (chain(target) for target in graph[module])
        return (module, *max(longer, key=len, default=()))

    longest = max(map(chain, graph), key=len)
    return Figure("modules in the longest import chain", len(longest), 10, " → ".join(longest))


def fan_out():
    """Return how many modules of the package a module imports, except one in ten."""
    graph = reached(only_at_module_level=True)
    counts = sorted((len(targets - {""}), module) for module, targets in graph.items() if module)
    value, _ = ninth_decile(counts)
    most = ", ".join(f"{module} {count}" for count, module in counts[:-6:-1])
    return Figure("modules that one imports, ninth decile", value, 8, f"most: {most}")


def ninth_decile(ordered):
    """Return the value that at most a tenth of them is above."""
    return ordered[int(0.9 * (len(ordered) - 1))]


@cache
def functions():
    """Return every function and method with the name of its module."""
    kinds = ast.FunctionDef, ast.AsyncFunctionDef
    return [
        (module, node)
        for module, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, kinds)
    ]


def most_parameters():
    """Return the most parameters of any function, `self` among them."""
    count, where = max(
        (len(f.args.posonlyargs) + len(f.args.args) + len(f.args.kwonlyargs), f"{module}.{f.name}")
        for module, f in functions()
    )
    return Figure("parameters of a function", count, 14, where)


@cache
def lines_by_module():
    """Return how many lines each file has."""
    return {str(f.relative_to(SOURCE)): len(f.read_text().splitlines()) for f in python_files()}


def python_files():
    """Return all files of source."""
    return sorted(SOURCE.rglob("*.py"))


def longest_file():
    """Return the lines of the longest file."""
    where, count = max(lines_by_module().items(), key=lambda item: item[1])
    return Figure("lines of a file", count, 500, where)


def function_length():
    """Return the lines of a function without its docstring, except of one in ten."""
    lengths = sorted((body_lines(f), f"{module}.{f.name}") for module, f in functions())
    value, _ = ninth_decile(lengths)
    most, where = lengths[-1]
    return Figure("lines of a function, ninth decile", value, 20, f"longest: {where} {most}")


def body_lines(function):
    """Return the lines from `def` to the end that are not its docstring."""
    docstring = ast.get_docstring(function, clean=False)
    written = docstring.count("\n") + 1 if docstring else 0
    return function.end_lineno - function.lineno + 1 - written


def shared_constants():
    """Return how many constants are imported from another folder; MISSING is a word, not tuning."""
    shared = {
        f"{found.target}.{found.name}"
        for found in imports()
        if found.target.rpartition(".")[0] != found.module.rpartition(".")[0]
        and found.name in constants(found.target)
    }
    where = ", ".join(sorted(shared))
    return Figure("constants imported from other folders", len(shared), 0, where)


@cache
def constants(module):
    """Return the names in capitals that a module gives a value, except MISSING."""
    targets = []
    for node in trees()[module].body:
        if isinstance(node, ast.Assign):
            targets += node.targets
        elif isinstance(node, ast.AnnAssign):
            targets.append(node.target)
    names = {target.id for target in targets if isinstance(target, ast.Name)}
    return {name for name in names if name.isupper()} - {"MISSING"}


def public_names():
    """Return how many names the package shows."""
    import jointpmf

    return Figure("public names", len(jointpmf.__all__), 45)


FIGURES = [
    longest_chain,
    fan_out,
    most_parameters,
    longest_file,
    function_length,
    shared_constants,
    public_names,
]

if __name__ == "__main__":
    found = [figure() for figure in FIGURES]
    print(*found, sep="\n")  # noqa: T201
    print(f"  lines of source{sum(lines_by_module().values()):>30}")  # noqa: T201
    sys.exit(not all(figure.is_kept for figure in found))
