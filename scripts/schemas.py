"""Prints the schemas of all ops in the installed package onnx, in the format that HEADER describes.

Anything that the format cannot express is an error: no schema is written incompletely.
"""

import collections
import textwrap

import numpy
import onnx
from onnx.defs import OpSchema

HEADER = """\
# The schemas of all ops of ONNX in every version, of the Python package onnx {version}.
# Written by `scripts/generate-schemas`; do not edit.
#
# Paragraphs are separated by blank lines, and their first word says what they are:
#
#   domain NAME newest OPSET schemas COUNT
#
#   set @NAME          a set of types to which `type` lines refer, named after the oldest op and type that has it
#     TYPE...
#
#   op DOMAIN NAME SINCE_VERSION [deprecated]
#     input NAME: TYPE [optional | variadic [mixed] [from 0]]
#     output NAME: TYPE [optional | variadic [mixed] [from 0]]
#     type NAME: TYPE... or @SET
#     attribute NAME: KIND [required | = DEFAULT]
#
# The TYPE of an operand is the name of a `type` line, or a type of its own such as `tensor(int64)`. Operands with the
# same `type` have the same type; a mixed variadic's operands may differ. A variadic takes 1 operand or more, or 0 or
# more. Numbers are those of an `f32` where the kind is float; texts are quoted, and the values of a list separated by
# blanks. Everything is sorted by domain, name and version; operands have the order of the op.
"""

ARITIES = {
    OpSchema.FormalParameterOption.Single: "",
    OpSchema.FormalParameterOption.Optional: " optional",
    OpSchema.FormalParameterOption.Variadic: " variadic",
}
NO_LIMIT = 2**31 - 1


def expect(condition, schema, what):
    """Exits with an error if the format cannot express a schema."""
    if not condition:
        raise SystemExit(f"error: `{schema.name}` {schema.since_version}: the format has no place for {what}")


def domain_of(schema):
    return schema.domain or "ai.onnx"


def key_of(schema):
    return domain_of(schema), schema.name, schema.since_version


def types_of(constraint):
    return tuple(sorted(text.replace(" ", "") for text in constraint.allowed_type_strs))


def names_of_sets(schemas):
    """Names the sets of more than three types after their oldest use, so that names stay the same in later versions of ONNX."""
    names = {}
    for schema in sorted(schemas, key=lambda schema: (schema.since_version, *key_of(schema))):
        for constraint in schema.type_constraints:
            if len(types := types_of(constraint)) > 3:
                names.setdefault(types, f"@{schema.name}-{schema.since_version}.{constraint.type_param_str}")
    assert len(set(names.values())) == len(names), "two sets have one name"
    return names


def limits(formals):
    """The minimum and maximum number of operands, which readers of the file derive in the same way."""
    fewest = 0
    for index, formal in enumerate(formals):
        if formal.option == OpSchema.FormalParameterOption.Variadic:
            return index + formal.min_arity, NO_LIMIT
        if formal.option == OpSchema.FormalParameterOption.Single:
            fewest = index + 1
    return fewest, len(formals)


def operand(word, schema, formal):
    is_variadic = formal.option == OpSchema.FormalParameterOption.Variadic
    expect(is_variadic or formal.is_homogeneous, schema, f"a mixed `{formal.name}` that is not variadic")
    expect(not is_variadic or formal.min_arity in (0, 1), schema, f"the least number of `{formal.name}`")
    expect(" " not in formal.name + formal.type_str, schema, f"a blank in `{formal.name}` or its type")
    arity = ARITIES[formal.option]
    if is_variadic:
        arity += ("" if formal.is_homogeneous else " mixed") + ("" if formal.min_arity else " from 0")
    return f"  {word} {formal.name}: {formal.type_str}{arity}"


def quoted(schema, value):
    text = value.decode()
    expect(text.replace("_", "").isalnum(), schema, f"the text `{text}`")
    return f'"{text}"'


def default_of(schema, attribute):
    """The default value as text, or `None`."""
    value = attribute.default_value
    kind = onnx.AttributeProto
    match value.type:
        case kind.UNDEFINED:
            return None
        case kind.INT:
            return str(value.i)
        case kind.FLOAT:
            return str(numpy.float32(value.f))
        case kind.STRING:
            return quoted(schema, value.s)
        case kind.INTS:
            return " ".join(map(str, value.ints))
        case kind.STRINGS:
            return " ".join(quoted(schema, text) for text in value.strings)
    expect(False, schema, f"the default of `{attribute.name}`")


def attribute_line(schema, attribute):
    line = f"  attribute {attribute.name}: {attribute.type.name.lower()}"
    default = default_of(schema, attribute)
    expect(default is None or not attribute.required, schema, f"a default of `{attribute.name}`, which is required")
    if attribute.required:
        return f"{line} required"
    return line if default is None else f"{line} = {default}"


def op(schema, sets):
    yield " ".join(map(str, ("op", *key_of(schema)))) + (" deprecated" if schema.deprecated else "")
    for word, formals, least, most in (
        ("input", schema.inputs, schema.min_input, schema.max_input),
        ("output", schema.outputs, schema.min_output, schema.max_output),
    ):
        expect(limits(formals) == (least, most), schema, f"from {least} to {most} operands")
        for formal in formals:
            yield operand(word, schema, formal)
    for constraint in schema.type_constraints:
        types = types_of(constraint)
        yield f"  type {constraint.type_param_str}: {sets.get(types) or ' '.join(types)}"
    for _, attribute in sorted(schema.attributes.items()):
        yield attribute_line(schema, attribute)


def main():
    schemas = sorted(onnx.defs.get_all_schemas_with_history(), key=key_of)
    print(HEADER.format(version=onnx.__version__))

    newest = {"ai.onnx": onnx.defs.onnx_opset_version()}
    counts = collections.Counter(map(domain_of, schemas))
    for schema in schemas:
        newest[domain_of(schema)] = max(newest.get(domain_of(schema), 0), schema.since_version)
    for domain in sorted(counts):
        print(f"domain {domain} newest {newest[domain]} schemas {counts[domain]}\n")

    sets = names_of_sets(schemas)
    indent = {"width": 118, "initial_indent": "  ", "subsequent_indent": "  "}
    for types, name in sorted(sets.items(), key=lambda entry: entry[1]):
        print(f"set {name}\n{textwrap.fill(' '.join(types), break_long_words=False, **indent)}\n")

    print("\n\n".join("\n".join(op(schema, sets)) for schema in schemas))


main()
