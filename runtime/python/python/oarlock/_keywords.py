"""Keywords of other libraries, under their names here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

KEYWORDS = {
    "A": ("x",),
    "M": ("n_cols",),
    "N": ("n_rows", "n"),
    "a": ("x", "x1"),
    "a1": ("x1",),
    "a2": ("x2",),
    "a_max": ("max",),
    "a_min": ("min",),
    "ar": ("x",),
    "ar1": ("x1",),
    "ar2": ("x2",),
    "arr": ("x",),
    "array": ("x",),
    "ary": ("x",),
    "axis": ("dim",),
    "b": ("x2",),
    "ddof": ("correction",),
    "diagonal": ("k",),
    "dim": ("axis",),
    "dims": ("axes", "axis"),
    "element": ("x1",),
    "end": ("stop",),
    "f": ("x",),
    "func1d": ("function",),
    "input": ("x", "x1"),
    "keepdim": ("keepdims",),
    "keepdims": ("keepdim",),
    "m": ("x",),
    "newshape": ("shape",),
    "object": ("obj",),
    "other": ("x2",),
    "p": ("ord", "x"),
    "rcond": ("rtol",),
    "perm": ("axes",),
    "repeat_times": ("repetitions",),
    "reps": ("repetitions",),
    "shifts": ("shift",),
    "start_axis": ("start_dim",),
    "steps": ("num",),
    "stop_axis": ("end_dim",),
    "tensors": ("arrays",),
    "test_elements": ("x2",),
    "tup": ("arrays",),
    "unbiased": ("correction",),
    "v": ("x", "x2"),
    "z": ("x",),
}
"""Names of arguments in NumPy, PyTorch and Paddle, and those here, of which a function has one."""

class Ignored(NamedTuple):
    """A keyword of NumPy that a function here has not."""

    functions: str
    """The functions that have it there."""
    harmless: tuple[Any, ...] | None
    """The values that are ignored, beside `None`, which is NumPy's default; `None` for any."""
    instead: str = ""
    """What to do about other values."""


_LIKE = "empty_like full_like ones_like zeros_like"
_MADE = f"array copy eye full {_LIKE}"
_QUANTILES = "median nanmedian nanpercentile nanquantile percentile quantile"
_SETS = "in1d intersect1d isin setdiff1d setxor1d"
_SORTS = "argpartition argsort partition sort"

WITHOUT_EFFECT = {
    "assume_unique": Ignored(_SETS, None),
    "autostrip": Ignored("genfromtxt", None),
    "axisa": Ignored("cross", (-1,), "move the axes of vectors by `oarlock.moveaxis` first"),
    "axisb": Ignored("cross", (-1,), "move the axes of vectors by `oarlock.moveaxis` first"),
    "axisc": Ignored("cross", (-1,), "move the axis of the result by `oarlock.moveaxis`"),
    "case_sensitive": Ignored("genfromtxt", None),
    "casting": Ignored("concat copyto hstack stack vstack", ("same_kind", "safe", "unsafe"), "convert the arrays with `astype` first"),
    "check_valid": Ignored(
        "multivariate_normal", ("warn", "ignore"), "look at the eigenvalues of the covariances, as `oarlock.linalg.eigvalsh` gives them"
    ),
    "compute_uv": Ignored("svd", (True,), "`oarlock.linalg.svdvals` computes the singular values alone"),
    "copy": Ignored("nan_to_num", (True,), "assign the result instead: `x[...] = …`"),
    "cov": Ignored("polyfit", (False,), "compute the covariances by NumPy"),
    "defaultfmt": Ignored("genfromtxt", None),
    "deletechars": Ignored("genfromtxt", None),
    "excludelist": Ignored("genfromtxt", None),
    "full": Ignored("polyfit", (False,), "`oarlock.linalg.lstsq` has the residuals, too"),
    "hermitian": Ignored("matrix_rank pinv svd", None),
    "invalid_raise": Ignored("genfromtxt", (True,), "make all lines as long as the first"),
    "kind": Ignored(f"in1d isin {_SORTS}", None),
    "like": Ignored("arange array ascontiguousarray eye fromfunction full genfromtxt identity loadtxt tri", None),
    "loose": Ignored("genfromtxt", (True,), "`oarlock.loadtxt` refuses what is no number"),
    "mean": Ignored("nanstd nanvar std var", (), "leave it out, as the mean is computed from the elements"),
    "method": Ignored("multivariate_normal standard_exponential", None),
    "names": Ignored("genfromtxt", (), "leave it out, as arrays have no fields; `skip_header=1` skips a line of names"),
    "optimize": Ignored("einsum", None),
    "order": Ignored(
        f"tobytes {_MADE} {_SORTS}", ("C", "K", "A"), "leave it out, as elements lie in memory row by row; `x.T` has the axes reversed"
    ),
    "out": Ignored("", ()),
    "overwrite_input": Ignored(_QUANTILES, None),
    "quotechar": Ignored("loadtxt", (), "read lines by the module `csv` of Python first"),
    "replace_space": Ignored("genfromtxt", None),
    "shuffle": Ignored("choice", None),
    "sorted": Ignored("unique", None),
    "stable": Ignored("sort", None),
    "subok": Ignored(f"broadcast_arrays broadcast_to {_MADE}", None),
    "tol": Ignored("matrix_rank", (), "give `rtol`, a share of the largest singular value"),
    "usemask": Ignored("genfromtxt", (False,), "give what stands for missing numbers as `filling_values`"),
    "weights": Ignored(_QUANTILES, (), "repeat the elements with `oarlock.repeat`, if the weights are whole numbers"),
    "wrap": Ignored("fill_diagonal", (False,), "write the diagonals of the rows below, too: `x[i + n + 1, i] = …`"),
}
"""What NumPy's functions have beside the keywords of those here; an `out` of `None` is for all."""


def translated(
    function: Callable[..., Any], given: tuple[Any, ...], named: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments under their names in other libraries as they are here."""
    # Importing it takes longer than importing the whole package.
    from inspect import Parameter, Signature, signature

    parameters = signature(function).parameters.values()
    # Other libraries have names for the first arguments, too.
    places = [each.name for each in parameters if each.kind is Parameter.POSITIONAL_ONLY][len(given) :]
    known = {each.name for each in parameters if each.kind in (Parameter.KEYWORD_ONLY, Parameter.POSITIONAL_OR_KEYWORD)} - {"self"}
    plain = Signature([each.replace(annotation=Parameter.empty) for each in parameters])
    call, hint = f"`{function.__name__}`", f"hint: call it as `{function.__name__}{plain}`"
    renamed: dict[str, Any] = {}
    is_each_once = True
    for name, value in named.items():
        ours = next((each for each in (name, *KEYWORDS.get(name, ())) if each in known or each in places), None)
        if ours is not None:
            is_each_once &= ours not in renamed
            # PyTorch's `unbiased` is a truth value.
            renamed[ours] = +value if ours == "correction" and isinstance(value, bool) else value
        elif name in WITHOUT_EFFECT and (name == "out" or function.__name__ in WITHOUT_EFFECT[name].functions.split()):
            _expect_no_effect(call, name, value)
        else:
            others = f"keyword but {', '.join(f'`{each}`' for each in sorted(known))}" if known else "keywords"
            raise TypeError(f"{call} expected no {others}, found `{name}`\n{hint}")
    moved = list(given)
    while places and places[0] in renamed:
        moved.append(renamed.pop(places.pop(0)))
    # What was given as it is here was refused already.
    if is_each_once and (len(moved) > len(given) or renamed.keys() != named.keys()):
        return tuple(moved), renamed
    names = "".join(f", `{name}`" for name in named)
    raise TypeError(f"{call} expected other arguments, found {len(given)} without a keyword{names}\n{hint}")


def _expect_no_effect(call: str, name: str, value: Any) -> None:
    """Refuses a keyword that would change something in NumPy."""
    _, harmless, instead = WITHOUT_EFFECT[name]
    is_simple = isinstance(value, (bool, int, float, str))
    if harmless is None or value is None or is_simple and value in harmless:
        return
    expected = f"{' or '.join(f'`{each}`' for each in harmless)} for `{name}`" if harmless else f"no `{name}`"
    raise TypeError(f"{call} expected {expected}, found {f'`{value}`' if is_simple else type(value).__name__}\nhint: {instead}")
