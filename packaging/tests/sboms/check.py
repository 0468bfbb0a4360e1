"""Validates the SBOMs and the provenance of a release with the reference libraries of their formats: `check.py RELEASE`."""

import json
import pathlib
import sys

from cryptography.hazmat.primitives.serialization import load_pem_public_key
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from google.protobuf.json_format import Parse
from in_toto_attestation.predicates.provenance.v1.provenance_pb2 import Provenance
from in_toto_attestation.v1.statement import Statement
from in_toto_attestation.v1.statement_pb2 import Statement as StatementMessage
from securesystemslib.dsse import Envelope
from securesystemslib.signer import SSlibKey
from spdx_tools.spdx.parser.parse_anything import parse_file
from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document

release = pathlib.Path(sys.argv[1])
wrong = []

spdx = sorted(release.glob("sboms/*.spdx.json"))
for file in spdx:
    wrong += [f"{file.name}: {it.validation_message}" for it in validate_full_spdx_document(parse_file(str(file)))]

cyclonedx = sorted(release.glob("sboms/*.cdx.json"))
validator = JsonStrictValidator(SchemaVersion.V1_5)
for file in cyclonedx:
    error = validator.validate_str(file.read_text())
    if error is not None:
        wrong.append(f"{file.name}: {error}")

envelope = json.loads((release / "provenance.json").read_text())
public = load_pem_public_key((release / "release-key.pem").read_bytes())
key = SSlibKey.from_crypto(public, keyid=envelope["signatures"][0]["keyid"])
signed = Envelope.from_dict(envelope)
signed.verify([key], 1)
statement = Statement.copy_from_pb(Parse(signed.payload, StatementMessage()))
statement.validate()
# The parser rejects any field that SLSA does not define.
Parse(json.dumps(json.loads(signed.payload)["predicate"]), Provenance())

if wrong:
    sys.exit("\n".join(wrong))
print(len(spdx), len(cyclonedx), len(statement.pb.subject))
