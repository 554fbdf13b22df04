"""Shows the faults of kafka-python by itself, one a name on the command line."""

import sys

from kafka.protocol.admin import AlterConfigsResponse, DeleteTopicsRequest, DescribeConfigsRequest
from kafka.protocol.metadata import ApiVersionsResponse, MetadataRequest
from kafka.protocol.sasl import SaslAuthenticateRequest


def cut():
    # One topic whose name says that it has five bytes, and two are there. Then bytes in the same way.
    request = MetadataRequest.decode(bytes.fromhex("00000001 0005 6162"), version=1)
    print("a name of 5 bytes cut to 2 is read as %r" % request.topics[0].name)
    request = SaslAuthenticateRequest.decode(bytes.fromhex("00000005 6162"), version=0)
    print("bytes of 5 cut to 2 are read as %r" % request.auth_bytes)


def tag():
    # No resources, two flags, and the tagged field 99 that says it has five bytes, and two are there.
    request = DescribeConfigsRequest.decode(bytes.fromhex("01 00 00 01 63 05 6162"), version=4)
    print("a tagged field of 5 bytes cut to 2 is read as %r" % request.unknown_tags["_99"])


def bit_32():
    # No resources, two flags, and the tagged field 99 of one byte, its number in five bytes, the last of which has bit 32.
    request = DescribeConfigsRequest.decode(bytes.fromhex("01 00 00 01 e380808010 01 aa"), version=4)
    print("the tag 99 with bit 32 is read as %s" % ", ".join(request.unknown_tags))


def frame():
    request = DescribeConfigsRequest(version=4, resources=[])
    request.with_header(correlation_id=7, client_id="lab")
    frame = bytearray(request.encode(header=True, framed=True))
    frame[:4] = (1000).to_bytes(4, "big")
    DescribeConfigsRequest.decode(bytes(frame), version=4, header=True, framed=True)
    print("a frame that says 1000 bytes and has %d is read" % (len(frame) - 4))


def api_versions():
    # Error 42, no APIs, throttle time 7, in version 1 and in version 3; and a count in version 3 that is far too large.
    plain, flexible, past = bytes.fromhex("002a 00000000 00000007"), bytes.fromhex("002a 01 00000007 00"), "002a feffffff0f"
    answer = ApiVersionsResponse.decode(plain, version=1)
    print("version 1 is read as version %d, its throttle time 7 as %d" % (answer.version, answer.throttle_time_ms))
    print("written again, %s is %s" % (plain.hex(), answer.encode().hex()))
    answer = ApiVersionsResponse.decode(bytes.fromhex(past), version=3)
    print("a count past the end in version 3 is read as %r" % answer.api_keys)
    ApiVersionsResponse.decode(flexible, version=3)


def delete_topics():
    request = DeleteTopicsRequest.decode(bytes.fromhex("00000001 0001 61 00000000"), version=1)
    print("decoded: %r" % request)
    request.encode()


def nested():
    # Version 3, no APIs, throttle time 0, and the tagged field 0: one feature without a name, of versions 0 to 0, which has
    # an unknown tagged field of its own, 9 of one byte.
    ApiVersionsResponse.decode(bytes.fromhex("0000 01 00000000 01 00 0a 02 01 0000 0000 01 09 01 aa"), version=3)


def null():
    response = AlterConfigsResponse.AlterConfigsResourceResponse
    one = response(version=0, error_code=0, error_message=None, resource_type=2, resource_name=None)
    name = AlterConfigsResponse(version=0, responses=[one]).encode().hex()[-4:]
    token = SaslAuthenticateRequest(version=0, auth_bytes=None).encode().hex()
    resources = DescribeConfigsRequest(version=3, resources=None).encode().hex()[:8]
    print("null where it is not allowed: a name is written as %s, bytes as %s, resources as %s" % (name, token, resources))


def negative():
    # One topic "a" and a count of -2 where null, -1, means every configuration and an empty array none.
    request = DescribeConfigsRequest.decode(bytes.fromhex("00000001 02 0001 61 fffffffe 00"), version=1)
    print("a count of -2 where null may stand is read as %r" % request.resources[0].configuration_keys)


for fault in (cut, tag, bit_32, frame, api_versions, delete_topics, nested, null, negative):
    if fault.__name__ == sys.argv[1]:
        fault()
