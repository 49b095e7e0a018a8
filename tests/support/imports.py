"""The imports of the package, read from its source without running it."""

import ast
from functools import cache
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).parents[2] / "src" / "jointpmf"

LAYERS = [
    {"errors", "times", "domain", "threads", "point", "output"},
    {"compiled"},
    {"data"},
    {"marginals"},
    {
        "pmf",
        "row_queries",
        "components",
        "mixing",
        "model_file",
        "tensor_file",
        "evidence",
        "probabilities",
        "most_likely",
        "traits",
        "trait_axes",
        "trait_file",
        "trait_queries",
    },
    {"rows"},
    {"solvers"},
    {"fit"},
    {"judge", "predict"},
    {"show"},
    {"estimators"},
    {""},
    {"command"},
]
"""From left to right. The empty name is the public face, `__init__.py`, which the command uses."""


class Import(NamedTuple):
    """One name that one module takes from another."""

    module: str
    target: str
    name: str
    is_lazy: bool


@cache
def trees():
    """Return the syntax tree of every module by its name without the package: `fit.rows`."""
    return {
        module_name(path): ast.parse(path.read_text(), str(path))
        for path in sorted(SOURCE.rglob("*.py"))
    }


def module_name(path):
    """Return the name of a file's module; a folder's `__init__` is named like the folder."""
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def imports():
    """Return all imports inside the package except those that only type checkers see."""
    found = []
    for module, tree in trees().items():
        found += _visit(tree, module, is_lazy=False)
    return found


def _visit(node, module, is_lazy):
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
        return [found for child in node.orelse for found in _visit(child, module, is_lazy)]
    if isinstance(node, ast.ImportFrom):
        base = _absolute(node, module)
        targets = [(f"{base}.{alias.name}", alias.name) for alias in node.names]
    elif isinstance(node, ast.Import):
        targets = [(alias.name, "") for alias in node.names]
    else:
        is_lazy = is_lazy or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        children = ast.iter_child_nodes(node)
        return [found for child in children for found in _visit(child, module, is_lazy)]
    return [
        Import(module, target, name, is_lazy)
        for full, name in targets
        if full.split(".")[0] == "jointpmf"
        and (target := _longest_module(full.removeprefix("jointpmf").lstrip("."))) != module
    ]


def _absolute(node, module):
    """Return the module that `from … import` names, also where it begins with dots."""
    if not node.level:
        return node.module
    is_folder = (SOURCE / module.replace(".", "/")).is_dir()
    parts = ["jointpmf", *module.split(".")]
    parts = parts[: len(parts) + is_folder - node.level]
    return ".".join([*parts, node.module] if node.module else parts)


def _longest_module(dotted):
    """Return the module that holds a dotted name: `fit.rows` for `fit.rows.fit_rows`."""
    while dotted not in trees():
        dotted = dotted.rpartition(".")[0]
    return dotted


def reached(only_at_module_level=False):
    """Return the modules that each module imports."""
    graph = {module: set() for module in trees()}
    for found in imports():
        if not (only_at_module_level and found.is_lazy):
            graph[found.module].add(found.target)
    return graph
