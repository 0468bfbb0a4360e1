"""Kernel plugins in Python: a function for each op, with its signature."""

from __future__ import annotations

import json
import warnings
from typing import TYPE_CHECKING, Any, TypedDict

from . import _oarlock
from ._arguments import arrays_of, in_own_name
from ._compile import hidden
from ._oarlock import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable
    from inspect import Signature

    from ._typing import ArrayLike

    # Types cannot say how many outputs an op has that is compiled at run time.
    Function = Callable[..., Any]


class Operand(TypedDict):
    """One operand of a kernel."""

    name: str
    dtypes: list[str]
    optional: bool
    variadic: bool


class Kernel(TypedDict):
    """A kernel of an op for one type of device."""

    plugin: str
    op: str
    domain: str
    versions: str
    device: str
    inputs: list[Operand]
    outputs: list[Operand]


class Extension:
    """The ops of a kernel plugin as functions: `extension.swish(x)`. `ops` has them by their full names, such as
    `acme::swish`, and `file` is the plugin."""

    def __init__(self, name: str, file: str | None, words: Callable[[], set[str]] | None = None) -> None:
        self.name = name
        self.file = file
        self.ops: dict[str, Function] = {}
        kernels: list[Kernel] = json.loads(_oarlock._kernels(plugin=name))
        if not kernels:
            raise ValueError(f"expected a plugin of kernels that is loaded, found none of the name `{name}`")
        of_ops: dict[tuple[str, str], list[Kernel]] = {}
        for kernel in kernels:
            of_ops.setdefault((kernel["domain"], kernel["op"]), []).append(kernel)
        keywords = Keywords(name, words)
        for (domain, op), rows in of_ops.items():
            function = made(domain, op, rows, keywords)
            self.ops[f"{domain}::{op}"] = function
            # If two domains have ops of the same name, it is the first.
            self.__dict__.setdefault(op, function)

    def __getattr__(self, name: str) -> Function:
        known = ", ".join(f"`{op}`" for op in self.ops)
        raise AttributeError(f"expected an op of the extension `{self.name}` ({known}), found `{name}`")

    def __repr__(self) -> str:
        return f"<extension {self.name}: {', '.join(self.ops)}>"


class Keywords:
    """The attribute names that callers passed to an extension's functions. Which names a kernel reads cannot be seen from
    outside, but a name that occurs nowhere in the sources is a mistake."""

    def __init__(self, extension: str, words: Callable[[], set[str]] | None) -> None:
        self._extension = extension
        self._words = words
        self._found = set[str]()

    def check(self, op: str, given: dict[str, Any]) -> None:
        """Warns about names that no kernel can know."""
        if self._words is None or self._found.issuperset(given):
            return
        words = self._words()
        known = {name for name in given if hidden(name) in words}
        self._found |= known
        for name in given:
            if words and name not in known:
                message = f"`{op}` was given `{name}`, which stands nowhere in the sources of `{self._extension}`: no kernel can ask for it"
                # The caller of the function, which is called by another that names it in errors.
                warnings.warn(message, stacklevel=4)


def made(domain: str, op: str, kernels: list[Kernel], keywords: Keywords) -> Function:
    """Makes the function that calls an op."""
    signature = signature_of(kernels)
    names = [name for name, each in signature.parameters.items() if each.kind is not each.VAR_KEYWORD]
    outputs = len(kernels[0]["outputs"])
    is_plain = all(each.kind is each.POSITIONAL_OR_KEYWORD for each in signature.parameters.values() if each.name in names)

    def function(*given: ArrayLike | None, **named: Any) -> Tensor | tuple[Tensor, ...]:
        operands, attributes = given, named
        if not is_plain or len(given) != len(names):
            try:
                bound = signature.bind(*given, **named)
            except TypeError as error:
                raise TypeError(f"`{op}` expected operands {', '.join(f'`{name}`' for name in names)}: {error}") from None
            bound.apply_defaults()
            operands, attributes = bound.args, bound.kwargs
        if attributes:
            keywords.check(op, attributes)
        arrays = iter(arrays_of(*(x for x in operands if x is not None)))
        inputs = [None if x is None else next(arrays) for x in operands]
        return _oarlock.op(op, inputs, attributes, outputs=outputs, domain=domain)

    function.__name__ = function.__qualname__ = op
    function.__doc__ = described(domain, op, kernels)
    function.__module__ = __name__
    function.__annotations__ = {name: each.annotation for name, each in signature.parameters.items()}
    function.__annotations__["return"] = signature.return_annotation
    function.__signature__ = signature  # type: ignore[attr-defined]
    return in_own_name(function)


def signature_of(kernels: list[Kernel]) -> Signature:
    """A signature with the operands by name, and any attributes."""
    # It takes longer to load than all of the package.
    from inspect import Parameter, Signature

    first = kernels[0]
    parameters = list[Parameter]()
    for name, operand in zip(named(first["inputs"]), first["inputs"], strict=True):
        if operand["variadic"]:
            parameters.append(Parameter(name, Parameter.VAR_POSITIONAL, annotation=Tensor))
        elif operand["optional"]:
            kind = Parameter.POSITIONAL_OR_KEYWORD
            parameters.append(Parameter(name, kind, annotation=Tensor | None, default=None))
        else:
            parameters.append(Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, annotation=Tensor))
    parameters.append(Parameter("attributes", Parameter.VAR_KEYWORD, annotation=Any))
    given_back: Any = Tensor
    if len(first["outputs"]) != 1:
        given_back = tuple.__class_getitem__((Tensor,) * len(first["outputs"]))
    return Signature(parameters, return_annotation=given_back)


def named(operands: list[Operand]) -> list[str]:
    """The Python names of operands: the kernel's names, if they are valid and distinct."""
    from keyword import iskeyword

    names = [operand["name"] for operand in operands]
    allowed = all(name.isidentifier() and not iskeyword(name) and name != "attributes" for name in names)
    return names if allowed and len(set(names)) == len(names) else [f"x{index + 1}" for index in range(len(names))]


def described(domain: str, op: str, kernels: list[Kernel]) -> str:
    """Which devices run an op, with which inputs and outputs."""

    def told(operand: Operand, name: str) -> str:
        like = ", optional" if operand["optional"] else ", any number" if operand["variadic"] else ""
        return f"    {name}: {' or '.join(operand['dtypes'])}{like}"

    lines = [f"The op `{op}` of the domain `{domain}`. Attributes are given by their names."]
    for kernel in kernels:
        inputs = zip(kernel["inputs"], named(kernel["inputs"]), strict=True)
        outputs = zip(kernel["outputs"], named(kernel["outputs"]), strict=True)
        lines += ["", f"On `{kernel['device']}` it takes", *(told(*each) for each in inputs)]
        lines += ["and gives", *(told(*each) for each in outputs)]
    return "\n".join(lines)
