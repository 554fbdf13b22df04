//! What is generated is held to the interpreter: the same bytes, and an error where there is one.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use codec::{
    ApiVersion, EncodeErrorKind, Layout, MessageSpec, decode, deserialize, encode, hex, properties, serialize,
};
use messages::{Message, elements, payload};
use proptest::prelude::*;
use std::sync::{Arc, LazyLock};

// What the definitions of the product lack.
mod odd {
    use super::{Message, elements, payload};
    include!(concat!(env!("OUT_DIR"), "/tests.rs"));
}

/// The layouts of a message at each of its versions.
struct Layouts {
    name: &'static str,
    layouts: Vec<Layout>,
}

impl Layouts {
    fn of<M: Message>() -> Layouts {
        let spec = Arc::new(MessageSpec::parse(M::DEFINITION).unwrap());
        assert_eq!((&*spec.name, spec.api_key), (M::NAME, M::API_KEY));
        let layouts = spec.valid_versions.iter().map(|version| Layout::new(&spec, version).unwrap());
        let layouts: Vec<Layout> = layouts.collect();
        assert!(layouts.iter().map(|layout| layout.version().0).eq(M::VERSIONS), "{}", M::NAME);
        Layouts { name: M::NAME, layouts }
    }
}

macro_rules! all_layouts {
    ($($message:ident),*) => { vec![Layouts::of::<odd::Odd>(), $(Layouts::of::<messages::$message>()),*] };
}

static MESSAGES: LazyLock<Vec<Layouts>> = LazyLock::new(|| messages::for_each_message!(all_layouts));

/// Reads a value as the message, and writes that at every version: by the code that was generated and by the interpreter.
fn check<'a, M: Message + serde::Serialize + serde::Deserialize<'a>>(
    layout: &'a Layout,
    others: &[Layout],
    view: codec::View<'a>,
    bytes: &[u8],
) -> Result<(), TestCaseError> {
    let message: M = deserialize(view).map_err(|error| TestCaseError::fail(format!("{layout}: {error}")))?;
    let encoded =
        message.encode(layout.version()).map_err(|error| TestCaseError::fail(format!("{layout}: {error}")))?;
    prop_assert_eq!(hex(&encoded), hex(bytes), "{}", layout);
    for other in others {
        // Which error it is depends on what is looked at first, where there are several.
        let text = |result: Result<Vec<u8>, codec::EncodeError>| result.map(|bytes| hex(&bytes)).map_err(|_| ());
        let (compiled, interpreted) = (text(message.encode(other.version())), text(serialize(other, &message)));
        prop_assert_eq!(compiled, interpreted, "{} as {}", layout, other);
    }
    Ok(())
}

macro_rules! check_by_name {
    ($($message:ident),*) => {
        fn check_by_name(
            name: &str,
            layout: &Layout,
            others: &[Layout],
            view: codec::View<'_>,
            bytes: &[u8],
        ) -> Result<(), TestCaseError> {
            match name {
                $(stringify!($message) => check::<messages::$message>(layout, others, view, bytes),)*
                "Odd" => check::<odd::Odd>(layout, others, view, bytes),
                name => panic!("{name}"),
            }
        }
    };
}

messages::for_each_message!(check_by_name);

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn any_value_is_written_as_the_interpreter_writes_it(
        is_odd in prop::bool::weighted(0.3),
        message: prop::sample::Index,
        version: prop::sample::Index,
        seed: u64,
    ) {
        let messages = if is_odd { &MESSAGES[..1] } else { &MESSAGES };
        let Layouts { name, layouts } = message.get(messages);
        let layout = version.get(layouts.as_slice());
        let mut value = properties::seeded_value(layout, seed);
        properties::clear_unknown_tags(&mut value);
        let bytes = encode(layout, &value).map_err(|error| TestCaseError::fail(error.to_string()))?;
        let decoded = decode(layout, &bytes).map_err(|error| TestCaseError::fail(error.to_string()))?;
        check_by_name(name, layout, layouts, decoded.view(), &bytes)?;
    }
}

fn defaults_of<M: Message + Default>() {
    let spec = Arc::new(MessageSpec::parse(M::DEFINITION).unwrap());
    for version in spec.valid_versions.iter() {
        let layout = Layout::new(&spec, version).unwrap();
        let default = encode(&layout, &layout.default_value());
        assert_eq!(M::default().encode(version), default, "{layout}");
    }
}

macro_rules! defaults {
    ($($message:ident),*) => { $(defaults_of::<messages::$message>();)* };
}

#[test]
fn defaults_are_those_of_the_definitions() {
    messages::for_each_message!(defaults);
    defaults_of::<odd::Odd>();
}

#[test]
fn what_has_no_encoding_is_refused_with_its_path_and_leaves_what_was_there() {
    use messages::describe_configs_response::{
        DescribeConfigsResourceResult, DescribeConfigsResponse, DescribeConfigsResult,
    };
    let long = "x".repeat(32_768);
    let of = |config| DescribeConfigsResponse {
        results: vec![DescribeConfigsResult {
            configs: vec![DescribeConfigsResourceResult::default(), config],
            ..Default::default()
        }],
        ..Default::default()
    };
    let encoded = |config, version| {
        let mut out = vec![1, 2, 3];
        let result = of(config).encode_into(ApiVersion(version), &mut out).map_err(|error| (error.path, error.kind));
        assert!(result.is_ok() || out == [1, 2, 3], "{out:?}");
        result
    };
    let default = DescribeConfigsResourceResult::default();
    let refused = |path: &str, kind| Err((path.to_owned(), kind));
    // IsDefault was replaced by ConfigSource in version 1.
    let was_default = DescribeConfigsResourceResult { is_default: true, ..default.clone() };
    let kind = EncodeErrorKind::FieldNotInVersion("IsDefault".to_owned());
    assert_eq!(encoded(was_default.clone(), 0), Ok(()));
    assert_eq!(encoded(was_default, 1), refused("Results[0].Configs[1]", kind));
    let long = DescribeConfigsResourceResult { value: Some(&long), ..default.clone() };
    let kind = EncodeErrorKind::StringTooLong(32_768);
    assert_eq!(encoded(long.clone(), 3), refused("Results[0].Configs[1].Value", kind));
    assert_eq!(encoded(long, 4), Ok(()), "a compact length can say it");
    for version in [-1, 5] {
        assert_eq!(encoded(default.clone(), version), refused("", EncodeErrorKind::NoSuchVersion(version)));
    }
}

#[test]
fn a_null_is_refused_where_the_version_has_none() {
    use messages::metadata_request::MetadataRequest;
    let all_topics = MetadataRequest { topics: None, ..Default::default() };
    let result = all_topics.encode(ApiVersion(0)).map_err(|error| (error.path, error.kind));
    assert_eq!(result, Err(("Topics".to_owned(), EncodeErrorKind::NullNotAllowed)));
    // -1 as the count; auto creation is not of this version.
    assert_eq!(all_topics.encode(ApiVersion(1)), Ok(vec![0xff; 4]));
}

#[test]
fn a_tagged_struct_is_left_out_by_what_the_version_has_of_it_bit_by_bit() {
    use odd::odd::{Bare, Default as Within, Odd, Option as For, Self_, Vec as Element};
    let layouts = Layouts::of::<Odd>().layouts;
    let plain = || Odd { bare: Bare::default(), second: Some(Bare::default()), ..Odd::default() };
    let tagged = |value: For| Odd { r#for: value, ..plain() };
    let late = || tagged(For { late: 9, ..For::default() });
    fn lists(within: Within<'_>) -> Odd<'_> {
        let second = Some(Bare::default());
        Odd { lists: vec![Element { string: within, writer: 1 }], second, ..Odd::default() }
    }
    let within = |real| Within { real, ..Within::default() };
    for (odd, what) in [
        (plain(), "default"),
        (late(), "late"),
        (tagged(For { self_: -0.0, ..For::default() }), "-0.0"),
        (tagged(For { r#in: Self_ { number: 1 }, ..For::default() }), "inner tag"),
        (lists(within(-0.5)), "at the default"),
        (lists(within(0.5)), "off the default"),
        (lists(Within { text: Some(""), ..within(-0.5) }), "empty text"),
    ] {
        for layout in &layouts {
            let text = |result: Result<Vec<u8>, codec::EncodeError>| result.map(|bytes| hex(&bytes)).map_err(|_| ());
            let (compiled, interpreted) = (odd.encode(layout.version()), serialize(layout, &odd));
            assert_eq!(text(compiled), text(interpreted), "{what}: {layout}");
        }
    }
    let encoded = |odd: Odd, version| odd.encode(ApiVersion(version)).unwrap();
    // Version 2 lacks Late; -0.0 is not 0.0.
    assert_eq!(encoded(late(), 2), encoded(plain(), 2));
    assert_ne!(encoded(late(), 3), encoded(plain(), 3));
    assert_ne!(encoded(tagged(For { self_: -0.0, ..For::default() }), 2), encoded(plain(), 2));
    // What only versions 1 and 2 have.
    assert!(lists(within(-0.5)).encode(ApiVersion(3)).is_ok());
    assert!(lists(within(0.5)).encode(ApiVersion(3)).is_err());
}
