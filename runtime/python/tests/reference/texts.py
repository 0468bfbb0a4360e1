"""Docstrings as Markdown."""

import ast
import inspect

from . import sources


def described(obj):
    """The docstring without examples, as lines."""
    return [line for is_example, block in blocks(obj) if not is_example for line in ["", *block]][1:]


def exemplified(obj):
    """The examples of the docstring, as lines of sessions at the prompt."""
    return [line for is_example, block in blocks(obj) if is_example for line in block]


def blocks(obj):
    """The paragraphs of a docstring, each with whether it is an example. Indented ones are code in Markdown as they are."""
    if inspect.ismodule(obj):
        # From the source, because Python from 3.13 on removes indentation, even if all that is indented is code.
        text = ast.get_docstring(sources.tree(obj.__name__), clean=False).strip()
    else:
        text = inspect.cleandoc(obj.__doc__ or "")
    paragraphs = [each.splitlines() for each in text.split("\n\n")]
    return [(each[0].startswith(">>>"), each) for each in paragraphs if each]


def sentence(obj):
    """The first sentence of the docstring, in one line."""
    text = " ".join((obj.__doc__ or "").strip().split("\n\n")[0].split())
    end = text.find(". ")
    return text if end < 0 else text[: end + 1]


def anchor(heading):
    """The name that mdBook gives a heading in links."""
    return "".join(sign.lower() for sign in heading if sign.isalnum() or sign in "_-")


def heading(level, name):
    """A heading that shows a name as code."""
    return f"{'#' * level} `{name}`"


def cell(text):
    """A text that does not end a cell of a table."""
    return text.replace("|", "\\|")


def fenced(lines):
    """Lines of Python in a block of code."""
    return ["```python", *lines, "```"] if lines else []
