//! Citations: where the right answer of a case comes from.

use crate::bundled;
use crate::expect::Path;
use codec::Protocol;
use std::collections::BTreeSet;
use std::sync::LazyLock;

/// How far a citation carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Authority {
    /// A definition, the protocol guide or a KIP: what a `must` rests on.
    Binding,
    /// An issue or a pull request: where a fault was seen.
    Report,
}

/// The sections of Kafka's protocol guide that may be cited, by their headings: one spelling each.
pub const GUIDE_SECTIONS: [&str; 6] = [
    "error-codes",
    "network",
    "partitioning-and-bootstrapping",
    "protocol-primitive-types",
    "request-header",
    "response-header",
];

/// What else may be cited, from `vectors/citations.txt`: somebody has seen that it exists.
static LISTED: LazyLock<BTreeSet<&str>> = LazyLock::new(|| listed().collect());

/// KIPs, JIRA issues and reports of `vectors/citations.txt`, in the file's order.
pub fn listed() -> impl Iterator<Item = &'static str> {
    bundled::text("citations.txt").lines().filter(|line| !line.starts_with('#'))
}

/// Checks one citation: a message or a field of a definition (`DescribeConfigsRequest.Resources.ResourceName`), `KIP-n`,
/// `guide:section` with one of `GUIDE_SECTIONS`, `KAFKA-n` or `owner/repository#n`; KIPs and reports are listed ones.
pub fn check(protocol: &Protocol, cite: &str) -> Result<Authority, String> {
    let (message, path) = cite.split_once('.').unwrap_or((cite, ""));
    if let Some(spec) = protocol.message(message) {
        if !path.is_empty() {
            Path::parse(path).and_then(|path| path.versions(spec)).map_err(|what| format!("{cite:?}: {what}"))?;
        }
        return Ok(Authority::Binding);
    }
    let numbered = |prefix: &str| cite.strip_prefix(prefix).is_some_and(|number| number.parse::<u32>().is_ok());
    let report = cite
        .split_once('#')
        .is_some_and(|(repository, number)| repository.contains('/') && number.parse::<u32>().is_ok());
    if let Some(section) = cite.strip_prefix("guide:") {
        let known = GUIDE_SECTIONS.contains(&section).then_some(Authority::Binding);
        known.ok_or_else(|| format!("{cite:?}: the guide's sections are {}", GUIDE_SECTIONS.join(", ")))
    } else if (numbered("KIP-") || numbered("KAFKA-") || report) && !LISTED.contains(cite) {
        Err(format!("{cite:?} is not in vectors/citations.txt: add it there once you have seen that it exists"))
    } else if numbered("KIP-") {
        Ok(Authority::Binding)
    } else if numbered("KAFKA-") || report {
        Ok(Authority::Report)
    } else {
        Err(format!("{cite:?}: not a field of a definition, KIP-n, guide:section, KAFKA-n or owner/repository#n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definitions;

    #[test]
    fn citations_are_definitions_kips_guide_sections_and_reports() {
        for (cite, authority) in [
            ("DescribeConfigsResponse", Authority::Binding),
            ("DescribeConfigsResponse.Results.Configs.Value", Authority::Binding),
            ("KIP-511", Authority::Binding),
            ("guide:request-header", Authority::Binding),
            ("KAFKA-18659", Authority::Report),
            ("apache/kafka#9046", Authority::Report),
        ] {
            assert_eq!(check(definitions::bundled(), cite), Ok(authority), "{cite}");
        }
        for cite in [
            "",
            "KIP-",
            "KIP-x",
            "guide:",
            "guide:primitive-types",
            "guide:Network",
            "DescribeConfigsResponse.Nothing",
            "hearsay",
            "#1",
            "a#1",
            "KIP-99999",
            "KAFKA-1",
            "owner/repository#1",
        ] {
            assert!(check(definitions::bundled(), cite).is_err(), "{cite}");
        }
    }
}
