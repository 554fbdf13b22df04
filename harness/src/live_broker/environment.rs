//! Error codes that say where a broker runs and for whom, and nothing about whether it is right: an authoriser that does not
//! know us, a policy, a quota, another controller. A case that is answered with one is not judged.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use crate::dump::error_name;
use crate::expect::{Expect, Matcher, Path};
use crate::results::Outcome;

/// An error code of the environment's.
pub(super) struct Refusal {
    pub code: i16,
    /// The APIs that say so; any may where there are none.
    apis: &'static [&'static str],
    /// What is the matter, and what to do about it.
    why: &'static str,
}

const DENIED: &str = "the broker denies it to us: give the suite's user ACLs (without SASL it is User:ANONYMOUS)";
const FORBIDDEN: &str = "a policy of the broker's forbids it: judge a broker without one";

#[rustfmt::skip]
const REFUSALS: [Refusal; 8] = [
    Refusal { code: 29, apis: &[], why: DENIED },
    Refusal { code: 30, apis: &[], why: DENIED },
    Refusal { code: 31, apis: &[], why: DENIED },
    Refusal { code: 38, apis: &["CreateTopics"],
              why: "the broker takes no topic with one replica: judge one that does" },
    Refusal { code: 41, apis: &["CreateTopics", "DeleteTopics"],
              why: "the broker is not the cluster's controller: judge that one" },
    Refusal { code: 44, apis: &[], why: FORBIDDEN },
    Refusal { code: 73, apis: &["DeleteTopics"],
              why: "the broker deletes no topics: judge one that does" },
    Refusal { code: 89, apis: &[],
              why: "a quota of the broker's is used up: judge it without one" },
];

impl Refusal {
    /// The one that an error code of an API is, if it is one.
    pub fn of(api: &str, code: i64) -> Option<&'static Refusal> {
        let by_api = |refusal: &&Refusal| refusal.apis.is_empty() || refusal.apis.contains(&api);
        REFUSALS.iter().filter(by_api).find(|refusal| i64::from(refusal.code) == code)
    }

    /// As reports name it: `error 29 TOPIC_AUTHORIZATION_FAILED: ` and what to do.
    pub fn text(&self) -> String {
        format!("error {} {}: {}", self.code, error_name(self.code.into()).unwrap_or_default(), self.why)
    }
}

/// Why an answer to `api` says nothing about the broker, for a case that does not expect just that code of any of
/// `expected`; `None` where it does say something.
pub(super) fn refusal(api: &str, body: &Json, expected: &[&Expect]) -> Option<&'static Refusal> {
    let results = ["Results", "Responses", "Topics"].iter().filter_map(|name| body.get(*name)?.as_array()).flatten();
    let codes =
        std::iter::once(body).chain(results).flat_map(|part| [&part["ErrorCode"], &part["TopicConfigErrorCode"]]);
    let mut refusals = codes.filter_map(Json::as_i64).filter_map(|code| Refusal::of(api, code));
    let expects = |code: i16| expected.iter().any(|expect| names(expect, code.into()));
    refusals.find(|refusal| !expects(refusal.code))
}

/// Whether an expectation is met by this very code.
fn names(expect: &Expect, code: i64) -> bool {
    match expect {
        Expect::Error(due) => i64::from(*due) == code,
        Expect::Values(values) => values.iter().any(|(path, matcher)| {
            let of_errors = Path::parse(path).is_ok_and(|path| path.last_field().ends_with("ErrorCode"));
            of_errors && names_code(matcher, code)
        }),
        Expect::Closed | Expect::Silent => false,
    }
}

fn names_code(matcher: &Matcher, code: i64) -> bool {
    match matcher {
        Matcher::Is(Json::Array(codes)) | Matcher::OneOf(codes) | Matcher::Includes(codes) => {
            codes.iter().any(|due| *due == code)
        }
        Matcher::Is(due) => *due == code,
        Matcher::All(inner) => names_code(inner, code),
        _ => false,
    }
}

/// What kept cases from being judged and what to do about it, and how many cases each.
pub fn refused(outcomes: &[Outcome]) -> BTreeMap<&'static str, usize> {
    let mut refused = BTreeMap::new();
    for code in outcomes.iter().filter_map(|outcome| outcome.refused) {
        for refusal in REFUSALS.iter().filter(|refusal| refusal.code == code) {
            *refused.entry(refusal.why).or_default() += 1;
        }
    }
    refused
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn refusal_of(api: &str, body: Json, expect: Json) -> bool {
        let expect = Expect::parse(&expect).unwrap();
        refusal(api, &body, &[&expect]).is_some()
    }

    #[test]
    fn a_code_of_the_environment_refuses_unless_it_is_expected() {
        let denied = |name: &str| json!({ name: [{ "ErrorCode": 0 }, { "ErrorCode": 29 }] });
        assert!(refusal_of("DescribeConfigs", denied("Results"), json!({ "Results[0].ErrorCode": 0 })));
        assert!(refusal_of("AlterConfigs", denied("Responses"), json!({ "Responses[0].ErrorCode": { "not": 0 } })));
        assert!(refusal_of("Metadata", json!({ "ErrorCode": 31 }), json!(0)));
        assert!(!refusal_of("Metadata", json!({ "ErrorCode": 31 }), json!(31)));
        assert!(!refusal_of("DescribeConfigs", denied("Results"), json!({ "Results[].ErrorCode": [0, 29] })));
        assert!(!refusal_of("AlterConfigs", json!({ "Responses": [{ "ErrorCode": 42 }] }), json!(0)));
    }

    #[test]
    fn codes_that_only_some_apis_have_are_faults_of_others() {
        let not_controller = json!({ "Topics": [{ "ErrorCode": 41 }], "Responses": [{ "ErrorCode": 41 }] });
        assert!(refusal_of("CreateTopics", not_controller.clone(), json!(0)));
        assert!(!refusal_of("IncrementalAlterConfigs", not_controller, json!(0)));
    }
}
