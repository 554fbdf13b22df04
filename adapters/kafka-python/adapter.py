"""Speaks the adapter protocol for kafka-python: one JSON line in, one out.

The library keeps the definition's name of each field beside its own snake_case name; the values here go by the former.
"""

import base64
import importlib.metadata
import io
import json
import sys
import uuid

from kafka.protocol import admin, metadata, sasl
from kafka.protocol.api_header import RequestHeader, ResponseHeader

MESSAGES = {
    api + kind: getattr(module, api + kind)
    for module, apis in (
        (metadata, ("ApiVersions", "Metadata")),
        (sasl, ("SaslHandshake", "SaslAuthenticate")),
        (admin, ("CreateTopics", "DeleteTopics", "DescribeConfigs", "AlterConfigs", "IncrementalAlterConfigs")),
    )
    for api in apis
    for kind in ("Request", "Response")
}

# Headers have two versions in the library, asked for as plain and flexible. It has no version 0 of RequestHeader.
HEADERS = {"RequestHeader": (RequestHeader, 1, 2), "ResponseHeader": (ResponseHeader, 0, 1)}

# Fields that the library renames when it loads a definition, by structure and its own name.
RENAMED = {
    ("MetadataResponse", "authorized_operations"): "ClusterAuthorizedOperations",
    ("MetadataResponseTopic", "authorized_operations"): "TopicAuthorizedOperations",
}

# The largest integer that every JSON reader keeps.
EXACT = 1 << 53


class Unsupported(Exception):
    """What the library has no way to do. Any other exception is its refusal."""


def versions(name):
    """First and last version of a message that the library has."""
    if name in HEADERS:
        return HEADERS[name][1:]
    return MESSAGES[name].min_version, MESSAGES[name].max_version


# Names and values


def name_of(structure, field):
    """The definition's name of a field."""
    return RENAMED.get((structure.__name__, field.name), field._name)


def to_json(field, value):
    """The suite's form of what the library holds for a field."""
    kind = field.type_str
    # To the library, None is its way to say these two values, and it writes them for None.
    if value is None and kind == "uuid":
        return str(uuid.UUID(int=0))
    if value is None and kind == "bitfield":
        return -(1 << 31)
    if value is None:
        return None
    if field.is_struct_array():
        return [struct_to_json(one) for one in value]
    if field.is_array():
        return [to_json(field.array_of, one) for one in value]
    if field.is_struct():
        return struct_to_json(value)
    if kind == "uuid":
        return str(value)
    if kind == "bitfield":
        return sum(-(1 << 31) if bit == 31 else 1 << bit for bit in value)
    if kind in ("bytes", "records"):
        return {"hex": bytes(value).hex()}
    if kind == "float64":
        return value if value - value == 0 else {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)]
    if type(value) is int and abs(value) > EXACT:
        return str(value)
    return value


def struct_to_json(value):
    """A structure's fields of its version, and the unknown tagged fields that it keeps."""
    shown = {
        name_of(type(value), field): to_json(field, getattr(value, field.name))
        for field in value.fields.values()
        if field.for_version_q(value.version)
    }
    if value.unknown_tags:
        shown["_tags"] = [{"tag": int(name[1:]), "hex": payload.hex()} for name, payload in value.unknown_tags.items()]
    return shown


def from_json(field, value, version):
    """What the library is given for a field. Only forms are changed: what a value may be is for the library to say."""
    kind = field.type_str
    if value is None:
        return None
    if field.is_struct_array():
        return [None if one is None else struct_from_json(field.data_class, one, version) for one in value]
    if field.is_array():
        return [from_json(field.array_of, one, version) for one in value]
    if field.is_struct():
        return struct_from_json(field.data_class, value, version)
    if kind in ("bytes", "records"):
        return bytes.fromhex(value["hex"])
    if kind == "string" and isinstance(value, dict):
        raise Unsupported("kafka-python takes text as str, which is always Unicode")
    if kind == "uuid":
        return uuid.UUID(bytes=base64.urlsafe_b64decode(value + "==")) if len(value) == 22 else uuid.UUID(value)
    if kind == "bitfield":
        return {bit for bit in range(32) if int(value) >> bit & 1}
    if kind == "float64":
        return float(value)
    if isinstance(value, str) and kind != "string":
        return int(value)
    return value


def arguments(structure, value, version):
    """The arguments by which the library's class of a structure is given a value."""
    known = {name_of(structure, field): field for field in structure.fields.values()}
    given = {}
    for name, one in value.items():
        if name == "_tags":
            given.update(("_%d" % tag["tag"], bytes.fromhex(tag["hex"])) for tag in one)
        elif name in known:
            given[known[name].name] = from_json(known[name], one, version)
        else:
            raise ValueError("%s has no field %s" % (structure.__name__, name))
    return given


def struct_from_json(structure, value, version):
    return structure(version=version, **arguments(structure, value, version))


# Reading and writing


class Watch:
    """How many bytes the library did not read: its decoder of bodies knows, and its decode() does not pass it on."""

    def __init__(self):
        self.left = 0

    def over(self, struct):
        compile_decoder = struct.compiled_decode_from

        def watched(*args, **kwargs):
            decoder = compile_decoder(*args, **kwargs)

            def decode(data, pos):
                value, end = decoder(data, pos)
                self.left = max(len(data) - end, 0)
                return value, end

            return decode

        struct.compiled_decode_from = watched


WATCH = Watch()
for message in MESSAGES.values():
    WATCH.over(message._struct)


def decode(name, version, part, raw):
    """The library's object of these bytes, and how many bytes it left."""
    if part != "header" and name in MESSAGES:
        framed = part == "frame"
        return MESSAGES[name].decode(raw, version=version, header=framed, framed=framed), WATCH.left
    stream = io.BytesIO(raw)
    if part == "header":
        value = MESSAGES[name].parse_header(stream, version=version)
    else:
        header, _, flexible = HEADERS[name]
        value = header.decode(stream, flexible=version == flexible)
    return value, len(raw) - stream.tell()


def show(part, value):
    if part == "frame":
        return {"header": struct_to_json(value.header), "body": struct_to_json(value)}
    return struct_to_json(value)


def build(name, version, part, value):
    """The library's object of a value of the suite's form."""
    if name in HEADERS:
        # As the library makes them itself: without a version, which encode() is told.
        return HEADERS[name][0](**arguments(HEADERS[name][0], value, version))
    if part == "body":
        return struct_from_json(MESSAGES[name], value, version)
    parts = value if part == "frame" else {"header": value}
    message = struct_from_json(MESSAGES[name], parts.get("body", {}), version)
    head = arguments(message.header_class, parts.get("header", {}), version)
    if message.is_request():
        own = {"request_api_key": message.API_KEY, "request_api_version": version}
        if any(head.pop(field, 0) != own[field] for field in own):
            raise Unsupported("kafka-python writes the message's own key and version")
        head.setdefault("client_id", message.header_class.fields["client_id"].default)
    if any(field.startswith("_") for field in head):
        raise Unsupported("kafka-python takes no tagged fields for the header of a message")
    message.with_header(**head)
    return message


def encode(name, version, part, value):
    """The library's bytes of what decode() or build() gave."""
    if name in HEADERS or isinstance(value, (RequestHeader, ResponseHeader)):
        flexible = HEADERS[type(value).__name__][2]
        return value.encode(flexible=flexible == (value.version if value.version is not None else version))
    if part == "header":
        return value.encode_header(flexible=value.flexible_version_q(version))
    return value.encode(header=part == "frame", framed=part == "frame")


# The protocol


def handshake():
    ranges = {name: "%d-%d" % versions(name) for name in [*MESSAGES, *HEADERS]}
    return {
        "protocol": 1,
        "peer": "kafka-python",
        "version": importlib.metadata.version("kafka-python"),
        "language": "python",
        "supports": {name: {"decode": both, "encode": both} for name, both in ranges.items()},
        "operations": {},
    }


def perform(asked):
    op, name, version, part = asked["op"], asked.get("message"), asked.get("version"), asked.get("part") or "body"
    if op not in ("decode", "encode", "recode"):
        raise Unsupported("no operation %s" % op)
    if name not in MESSAGES and name not in HEADERS:
        raise Unsupported("no message %s" % name)
    first, last = versions(name)
    if not first <= version <= last:
        raise Unsupported("%s has versions %d-%d" % (name, first, last))
    if part not in (("body",) if name in HEADERS else ("body", "header", "frame")):
        raise Unsupported("%s has no part %s" % (name, part))
    if op == "encode":
        return {"bytes": encode(name, version, part, build(name, version, part, asked["value"])).hex()}
    value, left = decode(name, version, part, bytes.fromhex(asked["bytes"]))
    if op == "decode":
        return {"value": show(part, value), "left": left}
    return {"bytes": encode(name, version, part, value).hex(), "left": left}


def answer(asked):
    try:
        said = perform(asked)
    except Unsupported as lacks:
        said = {"unsupported": str(lacks)}
    except (MemoryError, RecursionError) as failure:
        said = {"panic": repr(failure)}
    except Exception as refusal:
        said = {"error": "%s: %s" % (type(refusal).__name__, str(refusal)[:1000])}
    if "id" in asked:
        said["id"] = asked["id"]
    return said


def quit(what):
    print("kafka-python adapter: %s" % what, file=sys.stderr)
    sys.exit(2)


def main():
    for line in sys.stdin.buffer:
        if not line.strip():
            continue
        try:
            asked = json.loads(line)
        except ValueError as error:
            quit("not a JSON line: %s" % error)
        if not isinstance(asked, dict):
            quit("not a JSON object")
        if asked.get("op") == "stop":
            return
        if asked.get("op") == "start":
            if asked.get("protocol") != 1:
                quit("speaks adapter protocol 1, asked for %s" % asked.get("protocol"))
            said = handshake()
        else:
            said = answer(asked)
        sys.stdout.write(json.dumps(said) + "\n")
        sys.stdout.flush()


main()
