//! The conformance suite: cases, judges, peers and reports. The binary `kafka-conform` is a thin shell around it.

pub mod adapter;
pub mod apache_kafka;
pub mod attest;
pub mod cases;
pub mod cite;
pub mod client_case;
pub mod cmd;
pub mod coverage;
pub mod definitions;
pub mod derive;
pub mod dump;
pub mod exchange;
pub mod expect;
pub mod fake_codec;
pub mod ids;
pub mod laws;
pub mod live_broker;
pub mod matrix;
pub mod process;
pub mod promote;
pub mod reference;
pub mod report;
pub mod results;
pub mod scripted_broker;
pub mod vector;
pub mod verdict;
