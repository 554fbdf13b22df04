//! The structs that are generated from the definitions write the golden bytes, which none of ours made.

use codec::{Layout, View, decode, deserialize, hex};
use kafka_conform::cases::Cases;
use kafka_conform::definitions;
use kafka_conform::vector::{Expected, PartLayout};
use messages::Message;

macro_rules! by_name {
    ($($message:ident),*) => {
        /// What the struct of this name writes of what it reads.
        fn written(layout: &Layout, view: View<'_>) -> Vec<u8> {
            match &*layout.spec().name {
                $(stringify!($message) => {
                    let message: messages::$message = deserialize(view).unwrap_or_else(|error| panic!("{error}"));
                    message.encode(layout.version()).unwrap_or_else(|error| panic!("{error}"))
                })*
                name => panic!("{name}"),
            }
        }
    };
}

messages::for_each_message!(by_name);

#[test]
fn golden_bytes_are_written_again() {
    let cases = Cases::bundled(definitions::bundled()).unwrap_or_else(|lints| panic!("{}", lints.join("\n")));
    let (mut written_again, mut with_unknown_tags) = (0, 0);
    for case in &cases.vectors.cases {
        let (Expected::Valid, PartLayout::Single(layout), Some(bytes)) = (case.rule.result, &case.layout, &case.bytes)
        else {
            continue;
        };
        let decoded = decode(layout, bytes).unwrap_or_else(|error| panic!("{}: {error}", case.id));
        // Which a struct has no place for, nor for a field that is sent at its default and told as such.
        if case.value.as_ref().is_some_and(|value| value.to_string().contains("\"_tags\""))
            || decoded.tree.anomaly_count() > 0
        {
            with_unknown_tags += 1;
            continue;
        }
        assert_eq!(hex(&written(layout, decoded.view())), hex(bytes), "{}", case.id);
        written_again += 1;
    }
    assert!(written_again > 2_500 && with_unknown_tags > 50, "{written_again} {with_unknown_tags}");
}
