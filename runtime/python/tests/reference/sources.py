"""What the sources and stubs of the package say about a name: its parameters with types, and the members of classes."""

import ast
import importlib
import inspect
import re
from functools import cache
from pathlib import Path

import oarlock

PACKAGE = Path(oarlock.__file__).parent
WIDTH = 110
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)

# Names that only the stubs have, as a reader knows them.
SPOKEN = {"_OtherOrText": "Tensor | Number | str", "_Other": "Tensor | Number"}


@cache
def tree(module):
    """The parsed source of a module of the package; of a native one, its stub."""
    name = module.removeprefix("oarlock").lstrip(".").replace(".", "/")
    candidates = [PACKAGE / f"{name}.pyi"] if name == "_oarlock" else [PACKAGE / f"{name}.py", PACKAGE / name / "__init__.py"]
    return ast.parse(next(file for file in candidates if file.exists()).read_text())


@cache
def stub_of_methods():
    """The members of arrays that Python adds: name and definition."""
    parsed = ast.parse((PACKAGE / "_methods.pyi").read_text())
    return {each.name: each for each in named(parsed, "Methods").body if isinstance(each, ast.FunctionDef)}


def named(scope, name):
    """The first definition of a name in a module or class, also within a condition; `None` if there is none."""
    return next(iter(all_named(scope, name)), None)


def all_named(scope, name):
    """All definitions of a name, of which there are several if it is overloaded."""
    nested = [inner for each in scope.body if isinstance(each, ast.If) for inner in each.body]
    return [each for each in [*scope.body, *nested] if getattr(each, "name", None) == name]


def is_ours(obj):
    """Whether a function or class is of the package; a method of `onnx_backend` is inherited."""
    return (getattr(obj, "__func__", obj).__module__ or "").split(".")[0] == "oarlock"


def definitions(obj):
    """The definitions of a function or class in the sources; none if it is not of the package."""
    if not is_ours(obj):
        return []
    plain = inspect.unwrap(getattr(obj, "__func__", obj))
    module = plain.__module__
    scope = tree("oarlock._oarlock" if module == "oarlock" and not inspect.isfunction(plain) else module)
    *outer, name = plain.__qualname__.split(".")
    for each in outer:
        scope = named(scope, each)
    return all_named(scope, name)


def signatures(obj, shown):
    """How a function is called under the name that is shown, each overload in a text."""
    bound = inspect.ismethod(obj)
    return [signature(each, shown, without_first=bound) for each in definitions(obj)]


def signature(definition, shown, *, without_first=False, returns=True):
    """How a function is called, in one line or with a line for each parameter."""
    given = parameters(definition.args)
    if without_first:
        given = given[1:]
        given = given[1:] if given[:1] == ["/"] else given
    result = f" -> {spoken(definition.returns)}" if returns and definition.returns else ""
    shown = f"await {shown}" if isinstance(definition, ast.AsyncFunctionDef) else shown
    line = f"{shown}({', '.join(given)}){result}"
    if len(line) <= WIDTH:
        return line
    return f"{shown}(\n{''.join(f'    {each},{chr(10)}' for each in given)}){result}"


def parameters(arguments):
    """The parameters as texts, with `/` and `*` between them."""
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(positional) - len(arguments.defaults)) + arguments.defaults
    texts = [parameter(each, default) for each, default in zip(positional, defaults, strict=True)]
    if arguments.posonlyargs:
        texts.insert(len(arguments.posonlyargs), "/")
    if arguments.vararg:
        texts.append("*" + parameter(arguments.vararg))
    elif arguments.kwonlyargs:
        texts.append("*")
    texts += [parameter(each, default) for each, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]
    return texts + (["**" + parameter(arguments.kwarg)] if arguments.kwarg else [])


def parameter(argument, default=None):
    """A parameter with its type and its default."""
    text = argument.arg + (f": {spoken(argument.annotation)}" if argument.annotation else "")
    if default is None:
        return text
    return text + (" = " if argument.annotation else "=") + spoken(default)


def spoken(node):
    """A type or a default as text."""
    text = re.sub(r"\b(builtins|_oarlock|oarlock)\.", "", ast.unparse(node))
    for name, meaning in SPOKEN.items():
        text = re.sub(rf"\b{name}\b", meaning, text)
    return text.replace("'", '"')


def members(cls):
    """The public methods and properties of a class: name and definition, those of its bases of the package too."""
    found = {}
    for base in reversed(cls.__mro__):
        for definition in definitions(base):
            for each in definition.body:
                if isinstance(each, FUNCTIONS) and not each.name.startswith("_") and not is_setter(each):
                    found[each.name] = each
    return found


def is_setter(definition):
    """Whether a method sets a property."""
    return any(ast.unparse(each).endswith(".setter") for each in definition.decorator_list)


def is_property(definition):
    """Whether a method is read like an attribute."""
    return any(ast.unparse(each) == "property" for each in definition.decorator_list)


def constructor(cls):
    """The definition of how an object is made, `None` if a class has none of its own."""
    for base in cls.__mro__:
        for definition in definitions(base):
            for each in definition.body:
                if isinstance(each, ast.FunctionDef) and each.name in ("__init__", "__new__"):
                    return each
    return None


def fields(cls):
    """The fields that a class declares, or that its constructor sets: name and type, if it is declared."""
    found = {}
    for definition in definitions(cls):
        for each in definition.body:
            if isinstance(each, ast.AnnAssign) and not each.target.id.startswith("_"):
                found[each.target.id] = spoken(each.annotation)
            if isinstance(each, ast.FunctionDef) and each.name == "__init__":
                found |= {name: found.get(name) for name in set_in(each)}
    return found


def set_in(function):
    """The public attributes that a constructor sets."""
    targets = [
        target
        for each in ast.walk(function)
        if isinstance(each, (ast.Assign, ast.AnnAssign))
        for target in (each.targets if isinstance(each, ast.Assign) else [each.target])
    ]
    flat = [inner for each in targets for inner in (each.elts if isinstance(each, ast.Tuple) else [each])]
    return [each.attr for each in flat if isinstance(each, ast.Attribute) and not each.attr.startswith("_")]


def module_of(name):
    """A module of the package, by the name that it has in it; the package itself for an empty one."""
    return importlib.import_module(f"oarlock.{name}" if name else "oarlock")
