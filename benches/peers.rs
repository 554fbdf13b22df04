//! The peers that read and write whole messages, each behind the same few calls. All are compiled code generated from the
//! definitions, at the versions of Apache Kafka 4: none of them has DescribeConfigs version 0.

use crate::describe_configs::Response;
use crate::{response_of, sum_of_fields};
use bytes::Bytes;

/// Bytes in the forms that decoders take them in.
pub struct Input(Bytes);

impl Input {
    /// A copy of the bytes.
    pub fn new(bytes: &[u8]) -> Input {
        Input(Bytes::copy_from_slice(bytes))
    }
}

/// A codec that is compared with ours. It panics where it fails: all is checked before anything is timed.
pub trait Peer {
    /// As it is called in the rows.
    const NAME: &'static str;
    /// Its DescribeConfigsResponse.
    type Configs<'a>;
    /// Its DeleteTopicsRequest.
    type Names<'a>;

    /// Decodes a DescribeConfigsResponse.
    fn decode_configs(input: &Input, version: i16) -> Self::Configs<'_>;
    /// Encodes it after what `out` holds.
    fn encode_configs(message: &Self::Configs<'_>, version: i16, out: &mut Vec<u8>);
    /// Looks at every field.
    fn sum(message: &Self::Configs<'_>) -> i64;
    /// What it read.
    fn response<'m>(message: &'m Self::Configs<'_>) -> Response<'m>;
    /// Decodes a DeleteTopicsRequest v4.
    fn decode_names(input: &Input) -> Self::Names<'_>;
    /// Encodes it after what `out` holds.
    fn encode_names(message: &Self::Names<'_>, out: &mut Vec<u8>);
    /// The names it read.
    fn names(message: &Self::Names<'_>) -> Vec<String>;
}

/// krabka-protocol, in its zero-copy flavour.
pub struct Krabka;

impl Peer for Krabka {
    const NAME: &'static str = "krabka";
    type Configs<'a> = krabka_protocol::borrowed::describe_configs_response::DescribeConfigsResponse<'a>;
    type Names<'a> = krabka_protocol::borrowed::delete_topics_request::DeleteTopicsRequest<'a>;

    fn decode_configs(input: &Input, version: i16) -> Self::Configs<'_> {
        krabka_protocol::DecodeBorrow::decode_borrow(&mut &*input.0, version).expect("a message")
    }

    fn encode_configs(message: &Self::Configs<'_>, version: i16, out: &mut Vec<u8>) {
        krabka_protocol::Encode::encode(message, out, version).expect("a value that was read");
    }

    fn sum(message: &Self::Configs<'_>) -> i64 {
        sum_of_fields!(message)
    }

    fn response<'m>(message: &'m Self::Configs<'_>) -> Response<'m> {
        response_of!(message)
    }

    fn decode_names(input: &Input) -> Self::Names<'_> {
        krabka_protocol::DecodeBorrow::decode_borrow(&mut &*input.0, 4).expect("a message")
    }

    fn encode_names(message: &Self::Names<'_>, out: &mut Vec<u8>) {
        krabka_protocol::Encode::encode(message, out, 4).expect("a value that was read");
    }

    fn names(message: &Self::Names<'_>) -> Vec<String> {
        message.topic_names.iter().map(|name| name.to_string()).collect()
    }
}

/// kafka-protocol.
pub struct KafkaProtocol;

impl Peer for KafkaProtocol {
    const NAME: &'static str = "kafka-protocol";
    type Configs<'a> = kafka_protocol::messages::DescribeConfigsResponse;
    type Names<'a> = kafka_protocol::messages::DeleteTopicsRequest;

    fn decode_configs(input: &Input, version: i16) -> Self::Configs<'_> {
        kafka_protocol::protocol::Decodable::decode(&mut input.0.clone(), version).expect("a message")
    }

    fn encode_configs(message: &Self::Configs<'_>, version: i16, out: &mut Vec<u8>) {
        kafka_protocol::protocol::Encodable::encode(message, out, version).expect("a value that was read");
    }

    fn sum(message: &Self::Configs<'_>) -> i64 {
        sum_of_fields!(message)
    }

    fn response<'m>(message: &'m Self::Configs<'_>) -> Response<'m> {
        response_of!(message)
    }

    fn decode_names(input: &Input) -> Self::Names<'_> {
        kafka_protocol::protocol::Decodable::decode(&mut input.0.clone(), 4).expect("a message")
    }

    fn encode_names(message: &Self::Names<'_>, out: &mut Vec<u8>) {
        kafka_protocol::protocol::Encodable::encode(message, out, 4).expect("a value that was read");
    }

    fn names(message: &Self::Names<'_>) -> Vec<String> {
        message.topic_names.iter().map(|name| name.to_string()).collect()
    }
}

/// odradek-protocol.
pub struct Odradek;

impl Peer for Odradek {
    const NAME: &'static str = "odradek";
    type Configs<'a> = odradek_protocol::messages::describe_configs_response::DescribeConfigsResponse;
    type Names<'a> = odradek_protocol::messages::delete_topics_request::DeleteTopicsRequest;

    fn decode_configs(input: &Input, version: i16) -> Self::Configs<'_> {
        Self::Configs::decode(&mut input.0.clone(), version).expect("a message")
    }

    fn encode_configs(message: &Self::Configs<'_>, version: i16, out: &mut Vec<u8>) {
        message.encode(out, version).expect("a value that was read");
    }

    fn sum(message: &Self::Configs<'_>) -> i64 {
        sum_of_fields!(message)
    }

    fn response<'m>(message: &'m Self::Configs<'_>) -> Response<'m> {
        response_of!(message)
    }

    fn decode_names(input: &Input) -> Self::Names<'_> {
        Self::Names::decode(&mut input.0.clone(), 4).expect("a message")
    }

    fn encode_names(message: &Self::Names<'_>, out: &mut Vec<u8>) {
        message.encode(out, 4).expect("a value that was read");
    }

    fn names(message: &Self::Names<'_>) -> Vec<String> {
        message.topic_names.clone()
    }
}
