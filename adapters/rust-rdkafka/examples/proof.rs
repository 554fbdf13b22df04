//! Shows faults of the crate `rdkafka` by itself: its AdminClient against a broker of fixed bytes. Prints what an
//! application sees.
//!
//! `cargo run --release --locked --example proof -- FAULT` from this folder, where FAULT is one of
//! `describe-error`, `alter-error`, `empty-topic-name`, `group-config`.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use futures_executor::block_on;
use rdkafka::admin::{AdminClient, AdminOptions, AlterConfig, ResourceSpecifier};
use rdkafka::client::DefaultClientContext;
use rdkafka::config::ClientConfig;

fn main() {
    let fault = std::env::args().nth(1).unwrap_or_default();
    // Bodies of DescribeConfigs v1 and AlterConfigs v1 responses.
    let (body, resources): (&[u8], &[ResourceSpecifier<'_>]) = match fault.as_str() {
        // Error 3, UNKNOWN_TOPIC_OR_PARTITION: `Ok` with no entries.
        "describe-error" => (b"\0\0\0\0\0\0\0\x01\0\x03\xff\xff\x02\0\x01a\0\0\0\0", &[ResourceSpecifier::Topic("a")]),
        // Error 44, POLICY_VIOLATION: `Ok`.
        "alter-error" => (b"\0\0\0\0\0\0\0\x01\0\x2c\0\x02no\x02\0\x01a", &[ResourceSpecifier::Topic("a")]),
        // A name that an application may well pass: a panic where a KafkaError is due.
        "empty-topic-name" => (b"", &[ResourceSpecifier::Topic("")]),
        // Config source 8, GROUP_CONFIG, which a group's own configs have: the whole call fails.
        "group-config" => (
            b"\0\0\0\0\0\0\0\x01\0\0\xff\xff\x20\0\x01g\0\0\0\x01\0\x01k\0\x01v\0\x08\0\0\0\0\0",
            &[ResourceSpecifier::Group("g")],
        ),
        other => panic!("no such fault: {other:?}"),
    };
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("a bound port").port();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            std::thread::spawn(move || answer(client, port, body));
        }
    });
    let client: AdminClient<DefaultClientContext> =
        ClientConfig::new().set("bootstrap.servers", format!("127.0.0.1:{port}")).create().expect("a client");
    let options = AdminOptions::new().request_timeout(Some(Duration::from_secs(5)));
    if fault == "alter-error" {
        let alterations = [AlterConfig::new(resources[0]).set("k", "v")];
        println!("{:?}", block_on(client.alter_configs(&alterations, &options)));
    } else {
        println!("{:?}", block_on(client.describe_configs(resources, &options)));
    }
}

/// Answers ApiVersions, Metadata and then the request in question, until the client hangs up.
fn answer(mut client: TcpStream, port: u16, body: &[u8]) -> Option<()> {
    loop {
        let mut size = [0; 4];
        client.read_exact(&mut size).ok()?;
        let mut request = vec![0; u32::from_be_bytes(size) as usize];
        client.read_exact(&mut request).ok()?;
        let body = match request[1] {
            // ApiVersions v3: Metadata 0-1, ApiVersions 0-3, DescribeConfigs and AlterConfigs 0-1.
            18 => {
                b"\0\0\x05\0\x03\0\0\0\x01\0\0\x12\0\0\0\x03\0\0\x20\0\0\0\x01\0\0\x21\0\0\0\x01\0\0\0\0\0\0".to_vec()
            }
            // Metadata v1: this broker as node 1 and controller, no topics.
            3 => {
                let node = b"\0\0\0\x01\0\0\0\x01\0\x09127.0.0.1\0\0";
                [&node[..], &port.to_be_bytes(), b"\xff\xff\0\0\0\x01\0\0\0\0"].concat()
            }
            _ => body.to_vec(),
        };
        let size = u32::try_from(4 + body.len()).ok()?.to_be_bytes();
        client.write_all(&[&size[..], &request[4..8], &body].concat()).ok()?;
    }
}
