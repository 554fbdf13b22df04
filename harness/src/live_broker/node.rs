//! Which broker of its cluster is the one that is judged: it alone answers for the configs of its own node id.

use std::net::{IpAddr, ToSocketAddrs};

use serde_json::{Value as Json, json};

use super::conversation::BROKER;
use super::own_request::Refused;
use super::{LiveBroker, METADATA};

/// Node ids of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Nodes {
    /// That of the broker that is judged, or why it is not known.
    pub own: Result<i64, String>,
    /// One that no broker of the cluster has.
    pub other: i64,
}

/// How sure it is that a listed broker is the one that is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Own {
    /// It is.
    Sure(i64),
    /// Nothing but the port speaks for it.
    ByPort(i64),
    /// Any of several may be.
    Unknown,
}

impl LiveBroker<'_> {
    /// The node ids, once Metadata was answered. Asked until there is an answer: each case that stands on it has its own
    /// evidence where there is none.
    pub(super) fn nodes(&self) -> Result<&Nodes, Refused> {
        if let Some(nodes) = self.nodes.get() {
            return Ok(nodes);
        }
        let metadata = self.ask(METADATA, &json!({ "Topics": [] }))?;
        if let Some(error) = metadata.body["ErrorCode"].as_i64().filter(|&error| error != 0) {
            return Err(Refused::by_error(METADATA, error));
        }
        let brokers = metadata.body["Brokers"].as_array().map(Vec::as_slice).unwrap_or_default();
        let highest = brokers.iter().filter_map(|broker| broker["NodeId"].as_i64()).max();
        let Some(highest) = highest else { return Err(metadata.lacking(self, "lists no broker")) };
        let host = self.target.host.as_deref();
        let own = match own_node(brokers, host, self.address.ip(), self.address.port(), &resolved) {
            Own::Sure(node) => Ok(node),
            Own::ByPort(node) if self.owns_configs_of(node) => Ok(node),
            _ => {
                let address = host.map_or_else(|| self.address.to_string(), |h| format!("{h}:{}", self.address.port()));
                Err(format!(
                    "Metadata lists {} brokers, and none can be told to be the one at {address}: \
                     give the name and port under which the broker is listed",
                    brokers.len()
                ))
            }
        };
        // No listed broker has it, nor one that is down and has a number near theirs.
        let other = if highest <= i64::from(i32::MAX) - 98 { highest + 98 } else { free_below(brokers) };
        Ok(self.nodes.get_or_init(|| Nodes { own, other }))
    }

    /// Whether the broker answers for the configs of this node, as it alone does.
    fn owns_configs_of(&self, node: i64) -> bool {
        let resource = json!({ "ResourceType": BROKER, "ResourceName": node.to_string(), "ConfigurationKeys": [] });
        let described = self.ask("DescribeConfigs", &json!({ "Resources": [resource] }));
        described.is_ok_and(|described| described.body["Results"][0]["ErrorCode"] == 0)
    }
}

/// The highest id that no listed broker has.
fn free_below(brokers: &[Json]) -> i64 {
    let taken = |id: &i64| brokers.iter().any(|broker| broker["NodeId"].as_i64() == Some(*id));
    (0..i64::from(i32::MAX)).rev().find(|id| !taken(id)).unwrap_or_default()
}

/// The addresses of a name; none where it is not known here.
fn resolved(host: &str, port: u16) -> Vec<IpAddr> {
    (host, port).to_socket_addrs().map(|all| all.map(|address| address.ip()).collect()).unwrap_or_default()
}

/// Which of the listed brokers listens at `host` (as it was given) and `port`, connected to at `address`. Names are
/// compared first, then what they resolve to; a port that one broker alone has is a hint.
fn own_node(
    brokers: &[Json],
    host: Option<&str>,
    address: IpAddr,
    port: u16,
    resolve: &dyn Fn(&str, u16) -> Vec<IpAddr>,
) -> Own {
    let id = |broker: &Json| broker["NodeId"].as_i64();
    if let [only] = brokers {
        // Whatever it calls itself: its port may be mapped to another.
        return id(only).map_or(Own::Unknown, Own::Sure);
    }
    let name = |broker: &Json| broker["Host"].as_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
    let same_port: Vec<&Json> = brokers.iter().filter(|broker| broker["Port"].as_i64() == Some(port.into())).collect();
    let only = |is: &dyn Fn(&str) -> bool| match same_port.iter().filter(|b| is(&name(b))).collect::<Vec<_>>()[..] {
        [one] => id(one),
        _ => None,
    };
    let named = |listed: &str| {
        let given = host.is_some_and(|host| host.trim_matches(['[', ']']).eq_ignore_ascii_case(listed));
        given || listed.parse() == Ok(address)
    };
    let at_address = |listed: &str| resolve(listed, port).contains(&address);
    match (only(&named).or_else(|| only(&at_address)), same_port[..].len()) {
        (Some(node), _) => Own::Sure(node),
        (None, 1) => only(&|_| true).map_or(Own::Unknown, Own::ByPort),
        _ => Own::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn brokers(listed: &[(i64, &str, u16)]) -> Vec<Json> {
        listed.iter().map(|(id, host, port)| json!({ "NodeId": id, "Host": host, "Port": port })).collect()
    }

    fn found(listed: &[(i64, &str, u16)], host: &str, port: u16) -> Own {
        let address = "10.0.0.7".parse().unwrap();
        // What a name server would say: seven is where we are connected to, eight is not.
        let resolve = |host: &str, _| match host {
            "seven.example" | "seven" => vec![address],
            "eight.example" | "eight" => vec!["10.0.0.8".parse().unwrap()],
            _ => Vec::new(),
        };
        own_node(&brokers(listed), Some(host), address, port, &resolve)
    }

    #[test]
    fn the_name_that_was_given_tells_the_broker() {
        let listed = [(0, "broker0.internal", 9092), (1, "VM", 9092)];
        assert_eq!(found(&listed, "vm", 9092), Own::Sure(1));
        assert_eq!(found(&[(0, "10.0.0.8", 9092), (1, "10.0.0.7", 9092)], "vm", 9092), Own::Sure(1));
        assert_eq!(found(&[(0, "vm", 9093), (1, "vm", 9092)], "vm", 9092), Own::Sure(1));
    }

    #[test]
    fn advertised_names_are_resolved() {
        assert_eq!(found(&[(0, "eight", 9092), (1, "seven", 9092)], "seven.example", 9092), Own::Sure(1));
        assert_eq!(found(&[(0, "eight", 9092), (1, "other", 9092)], "seven.example", 9092), Own::Unknown);
    }

    #[test]
    fn a_port_of_its_own_is_a_hint_and_others_are_none() {
        assert_eq!(found(&[(0, "a.internal", 9092), (1, "b.internal", 9094)], "localhost", 9094), Own::ByPort(1));
        assert_eq!(found(&[(0, "a.internal", 9092), (1, "b.internal", 9092)], "localhost", 9092), Own::Unknown);
        assert_eq!(found(&[(0, "a.internal", 9092), (1, "b.internal", 9093)], "localhost", 19092), Own::Unknown);
    }

    #[test]
    fn the_only_broker_is_it_whatever_it_is_called() {
        assert_eq!(found(&[(5, "c.internal", 9092)], "localhost", 32768), Own::Sure(5));
    }
}
