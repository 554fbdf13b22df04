//! Citations: where the right answer of a case comes from.

use crate::bundled;
use crate::expect::Path;
use codec::{ApiVersion, MessageKind, MessageSpec, Protocol, VersionRange};
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

/// What a case has to do with a message that it cites.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum About {
    /// Nothing.
    Nothing,
    /// It holds the message at these versions, each of which has the field.
    Each(Vec<ApiVersion>),
    /// It may hold the message at these versions: one of them has the field, and where it is missing it is not looked at.
    Any(Vec<ApiVersion>),
    /// It may be about a field that its version lacks, or hold the message at any version.
    Message,
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
static LISTED: LazyLock<BTreeSet<&str>> =
    LazyLock::new(|| lines(bundled::text("citations.txt")).map(|(_, line)| line).collect());

/// Number and text of the lines that are no remarks.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().filter(|(_, line)| !line.starts_with('#')).map(|(number, line)| (number + 1, line))
}

/// What is wrong with a text such as `vectors/citations.txt`: each line is a KIP, an issue or a report that one of `cited`
/// is, and stands there once.
pub fn lints(text: &str, cited: &BTreeSet<&str>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let wrong = lines(text).filter_map(|(number, line)| {
        let what = if listable(line).is_none() {
            "not KIP-n, KAFKA-n or owner/repository#n"
        } else if !seen.insert(line) {
            "it is there twice"
        } else if !cited.contains(line) {
            "no case cites it"
        } else {
            return None;
        };
        Some(format!("citations.txt: line {number}: {line:?}: {what}"))
    });
    wrong.collect()
}

/// How far a KIP, an issue or a report carries; `None` for anything else.
fn listable(cite: &str) -> Option<Authority> {
    let is_number = |number: &str| {
        number.bytes().all(|digit| digit.is_ascii_digit()) && !number.starts_with('0') && number.parse::<u32>().is_ok()
    };
    let numbered = |prefix: &str| cite.strip_prefix(prefix).is_some_and(is_number);
    let is_name = |name: &str| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
    };
    let is_report = cite.split_once('#').is_some_and(|(repository, number)| {
        repository.split_once('/').is_some_and(|(owner, name)| is_name(owner) && is_name(name)) && is_number(number)
    });
    if numbered("KIP-") {
        Some(Authority::Binding)
    } else {
        (numbered("KAFKA-") || is_report).then_some(Authority::Report)
    }
}

/// Checks one citation: a message or a field of a definition (`DescribeConfigsRequest.Resources.ResourceName`), `KIP-n`,
/// `guide:section` with one of `GUIDE_SECTIONS`, `KAFKA-n` or `owner/repository#n`; KIPs and reports are listed ones.
/// `about` says what the case has to do with a message.
pub fn check(protocol: &Protocol, cite: &str, about: &dyn Fn(&MessageSpec) -> About) -> Result<Authority, String> {
    let (message, path) = cite.split_once('.').unwrap_or((cite, ""));
    if let Some(spec) = protocol.message(message) {
        let about = about(spec);
        if about == About::Nothing {
            return Err(format!("{cite:?}: the case has nothing to do with {message}"));
        }
        if !path.is_empty() {
            let of_field = Path::parse(path).and_then(|path| path.versions(spec));
            let of_field = of_field.map_err(|what| format!("{cite:?}: {what}"))?;
            let has = |version: &ApiVersion| of_field.contains(*version);
            let lacking = match &about {
                About::Each(versions) => versions.iter().find(|version| !has(version)),
                About::Any(versions) if !versions.iter().any(has) => versions.first(),
                _ => None,
            };
            if let Some(version) = lacking {
                return Err(format!("{cite:?}: version {version} of {message}, which the case has, lacks this field"));
            }
        }
        return Ok(Authority::Binding);
    }
    if let Some(section) = cite.strip_prefix("guide:") {
        let known = GUIDE_SECTIONS.contains(&section).then_some(Authority::Binding);
        return known.ok_or_else(|| format!("{cite:?}: the guide's sections are {}", GUIDE_SECTIONS.join(", ")));
    }
    match listable(cite) {
        Some(authority) if LISTED.contains(cite) => Ok(authority),
        Some(_) => {
            Err(format!("{cite:?} is not in vectors/citations.txt: add it there once you have seen that it exists"))
        }
        None => {
            Err(format!("{cite:?}: not a field of a definition, KIP-n, guide:section, KAFKA-n or owner/repository#n"))
        }
    }
}

/// What a conversation over some APIs has to do with a message, `own` the API it is about and its versions: it begins with
/// ApiVersions, and everything has a header.
pub fn in_conversation(spec: &MessageSpec, apis: &BTreeSet<&str>, own: Option<(&str, VersionRange)>) -> About {
    let api = spec.api_name();
    match own {
        Some((own, versions)) if own == api => About::Any(versions.iter().collect()),
        _ if spec.kind == MessageKind::Header || api == "ApiVersions" || apis.contains(api) => About::Message,
        _ => About::Nothing,
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
            assert_eq!(check(definitions::bundled(), cite, &|_| About::Message), Ok(authority), "{cite}");
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
            assert!(check(definitions::bundled(), cite, &|_| About::Message).is_err(), "{cite}");
        }
    }

    #[test]
    fn what_is_cited_is_a_message_of_the_case_and_a_field_of_its_versions() {
        let versions = |numbers: &[i16]| numbers.iter().copied().map(ApiVersion).collect();
        let check = |cite: &str, about: About| {
            check(definitions::bundled(), cite, &|spec| match &*spec.name {
                "DescribeConfigsResponse" => about.clone(),
                _ => About::Nothing,
            })
        };
        let config_type = "DescribeConfigsResponse.Results.Configs.ConfigType";
        for about in [About::Each(versions(&[3, 4])), About::Any(versions(&[2, 3])), About::Message] {
            assert_eq!(check(config_type, about), Ok(Authority::Binding));
        }
        for about in [About::Each(versions(&[3, 2])), About::Any(versions(&[2, 1]))] {
            let lacking = check(config_type, about).unwrap_err();
            assert!(lacking.contains("version 2 of DescribeConfigsResponse, which the case has, lacks"), "{lacking}");
        }
        let other = check("DescribeConfigsRequest", About::Message).unwrap_err();
        assert!(other.contains("nothing to do with DescribeConfigsRequest"), "{other}");
    }

    #[test]
    fn lines_that_are_no_citations_or_cited_by_nobody_are_found() {
        let cited = BTreeSet::from(["KIP-35", "KAFKA-14935", "apache/kafka#577"]);
        assert_eq!(lints("# Remarks.\nKIP-35\nKAFKA-14935\napache/kafka#577\n", &cited), [""; 0]);
        let text = "KIP-35\n\nKIP-+35\nKIP-035\n KAFKA-14935\napache/kafka#577 \na/b/c#1\nhearsay\nKIP-35\nKIP-43\n";
        let lints = lints(text, &cited);
        let lines: Vec<(&str, &str)> = lints
            .iter()
            .map(|lint| (lint.split(": ").nth(1).unwrap_or_default(), lint.rsplit(": ").next().unwrap_or_default()))
            .collect();
        let garbage = ["line 2", "line 3", "line 4", "line 5", "line 6", "line 7", "line 8"];
        let garbage = garbage.map(|line| (line, "not KIP-n, KAFKA-n or owner/repository#n"));
        assert_eq!(lines[..7], garbage);
        assert_eq!(lines[7..], [("line 9", "it is there twice"), ("line 10", "no case cites it")]);
    }
}
