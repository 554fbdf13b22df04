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

/// Declares a peer: its messages, and how it reads and writes either. What is looked at in them has the same names in all.
macro_rules! peer {
    (
        $(#[$doc:meta])* $peer:ident, $name:literal, $configs:ty, $names:ty,
        |$input:ident, $version:ident| $decode:expr,
        |$message:ident, $out:ident, $at:ident| $encode:expr $(,)?
    ) => {
        $(#[$doc])*
        pub struct $peer;

        impl Peer for $peer {
            const NAME: &'static str = $name;
            type Configs<'a> = $configs;
            type Names<'a> = $names;

            fn decode_configs($input: &Input, $version: i16) -> Self::Configs<'_> {
                $decode.expect("a message")
            }

            fn encode_configs($message: &Self::Configs<'_>, $at: i16, $out: &mut Vec<u8>) {
                $encode.expect("a value that was read");
            }

            fn sum(message: &Self::Configs<'_>) -> i64 {
                sum_of_fields!(message)
            }

            fn response<'m>(message: &'m Self::Configs<'_>) -> Response<'m> {
                response_of!(message)
            }

            fn decode_names($input: &Input) -> Self::Names<'_> {
                let $version = 4;
                $decode.expect("a message")
            }

            fn encode_names($message: &Self::Names<'_>, $out: &mut Vec<u8>) {
                let $at = 4;
                $encode.expect("a value that was read");
            }

            fn names(message: &Self::Names<'_>) -> Vec<String> {
                message.topic_names.iter().map(|name| name.to_string()).collect()
            }
        }
    };
}

peer!(
    /// krabka-protocol, in its zero-copy flavour.
    Krabka,
    "krabka",
    krabka_protocol::borrowed::describe_configs_response::DescribeConfigsResponse<'a>,
    krabka_protocol::borrowed::delete_topics_request::DeleteTopicsRequest<'a>,
    |input, version| krabka_protocol::DecodeBorrow::decode_borrow(&mut &*input.0, version),
    |message, out, version| krabka_protocol::Encode::encode(message, out, version),
);

peer!(
    /// kafka-protocol.
    KafkaProtocol,
    "kafka-protocol",
    kafka_protocol::messages::DescribeConfigsResponse,
    kafka_protocol::messages::DeleteTopicsRequest,
    |input, version| kafka_protocol::protocol::Decodable::decode(&mut input.0.clone(), version),
    |message, out, version| kafka_protocol::protocol::Encodable::encode(message, out, version),
);

peer!(
    /// odradek-protocol.
    Odradek,
    "odradek",
    odradek_protocol::messages::describe_configs_response::DescribeConfigsResponse,
    odradek_protocol::messages::delete_topics_request::DeleteTopicsRequest,
    |input, version| odradek_protocol::Message::decode(&mut input.0.clone(), version),
    |message, out, version| message.encode(out, version),
);

/// The same for each of the peers: in the block, the name that is given stands for the peer's type.
#[macro_export]
macro_rules! for_each_peer {
    ($peer:ident $block:block) => {{
        {
            type $peer = $crate::peers::Krabka;
            $block
        }
        {
            type $peer = $crate::peers::KafkaProtocol;
            $block
        }
        {
            type $peer = $crate::peers::Odradek;
            $block
        }
    }};
}
