//! The faults: what is wrong, where such a fault was reported in public, and which case must catch it.

use super::{Due, Fault};
use crate::results::Class;

/// A switch and its entry in [`FAULTS`] of each: `Name: what, [reports] => rule, cases, class`.
macro_rules! faults {
    ($($name:ident: $what:literal, [$($report:literal),*] => $due:expr;)*) => {
        /// One way to be wrong.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Switch {
            $(#[doc = $what] $name,)*
        }

        /// Every fault.
        pub const FAULTS: &[Fault] = &[$(Fault {
            name: stringify!($name),
            what: $what,
            reports: &[$($report),*],
            due: $due,
            switch: Some(Switch::$name),
        },)*];
    };
}

const fn by(rule: &'static str, cases: &'static str, class: Class) -> Due {
    Due::Case { rule, cases, class }
}

const VALID: &str = "well-formed";
const PAST_END: &str = "truncated";

faults! {
    // Adapters that do not keep to the protocol, die, or hang.
    Echo: "answers with what it was asked", [] => Due::Adapter;
    Flooder: "answers the third request without end", [] => Due::Adapter;
    BlankLines: "answers the third request with blank lines without end", [] => Due::Adapter;
    WrongIds: "answers with ids that were not asked with", [] => Due::Adapter;
    BadRanges: "declares a range of versions that is none", [] => Due::Adapter;
    ValueAndError: "gives a value and says that it has none, in one answer", [] => Due::Adapter;
    Bloated: "decodes to as much as a line may hold", []
        => by(VALID, "codec/describe-configs-response/*", Class::WrongValue);
    Crasher: "ends at the third request", [] => by(VALID, "*-response/v4/example", Class::Crash);
    Sleeper: "never answers the third request", [] => by(VALID, "*-response/v4/example", Class::Hang);
    Liar: "decodes everything to the value of all defaults and encodes that", []
        => by(VALID, "*/each-field*", Class::WrongValue);

    // Headers and frames.
    HeaderEndsAtNullClientId: "a request header ends at a null client id, its tag section unread",
        ["redpanda-data/redpanda#6570", "redpanda-data/redpanda#6585"]
        => by(VALID, "*/frame-null-client-id", Class::TooStrict);
    HeaderEndsAtEmptyClientId: "a request header ends at an empty client id, its tag section unread",
        ["redpanda-data/redpanda#6585"] => by(VALID, "*/frame-empty-client-id", Class::TooStrict);
    NullClientIdPanics: "panics when it writes a null client id",
        ["kafkaex/kayrock#48"] => by(VALID, "*null-client-id*", Class::Panic);
    ClientIdCompact: "the client id of request header 2 has a compact length",
        ["KAFKA-14935"] => by(VALID, "codec/request-header/*/client-id-v2", Class::WrongBytes);
    ApiVersionAsHeaderVersion: "the API's version is taken for the header's",
        ["kafka-protocol-rs/kafka-protocol-rs#22", "strimzi/topic-encryption#22"]
        => by(VALID, "*/frame*", Class::TooStrict);
    RequestHeaderStaysOld: "request headers have no tag section, flexible or not",
        ["kafka-protocol-rs/kafka-protocol-rs#4"] => by(VALID, "*-request/*/frame*", Class::WrongBytes);
    ResponseHeaderStaysOld: "response headers have no tag section, flexible or not",
        ["shotover/shotover-proxy#1056"] => by(VALID, "*-response/*/frame*", Class::WrongBytes);
    ApiVersionsHeaderFlexible: "the ApiVersions response has the flexible header",
        ["kafkaex/kayrock#48", "apache/kafka#7479"]
        => by(VALID, "codec/api-versions-response/v3/frame-v3", Class::WrongBytes);
    NegativeClientIdPanics: "slices with a client id's negative length",
        ["harmonycloud/kindling#47"] => by("negative-length-nullable", "*/client-id-minus-2", Class::Panic);
    ShortHeaderZeroFilled: "reads a header's numbers past the end of the frame",
        ["open-telemetry/opentelemetry-ebpf-instrumentation#2022"]
        => by(PAST_END, "*header/*/correlation-id-cut", Class::InventedValue);
    FrameSizeIgnored: "takes any four bytes for the size of what follows",
        ["quarkusio/quarkus-quickstarts#1088", "sitewhere/sitewhere#891"]
        => by(PAST_END, "*/frame-size-past-end", Class::InventedValue);
    FrameSizeCountsItself: "counts the four bytes of the frame's size in it", []
        => by(VALID, "*/frame*", Class::WrongBytes);
    RejectionInAskedVersion: "reads ApiVersions error 35 in the layout of the version it asked for",
        ["kafka-protocol-rs/kafka-protocol-rs#122", "kroxylicious/kroxylicious#2467", "platformatic/kafka#343"]
        => by(VALID, "*/unsupported-version-*", Class::TooStrict);

    // Tag sections.
    TagCountPlusOne: "the count of tags is written with one added",
        ["apache/kafka#14173"] => by("unknown-tags", "*", Class::WrongBytes);
    TagSizePlusOne: "the size of a tagged field is written with one added",
        ["dpkp/kafka-python#2725"] => by("unknown-tags", "*", Class::WrongBytes);
    TagsWrittenDescending: "writes tags in another order than ascending",
        ["dpkp/kafka-python#2725", "aio-libs/aiokafka#1139"]
        => by("unknown-tags", "*/unknown-tags-two", Class::WrongBytes);
    TagsWrittenAsGiven: "writes tags in the order they are given in", []
        => by("encode-tags-unordered", "*", Class::WrongBytes);
    TagSectionOneByte: "passes over one byte for a tag section, whatever it says", []
        => by("unknown-tags", "*", Class::WrongValue);
    InnerTagSectionForgotten: "only the message ends with a tag section, its inner structs do not", []
        => by(VALID, "*", Class::WrongBytes);
    UnknownTagsRefused: "refuses an unknown tag", [] => by("unknown-tags", "*", Class::TooStrict);
    UnknownTagEndsSection: "passes over one unknown tag and takes what follows for the next field", []
        => by("unknown-tags", "*/unknown-tags-two", Class::WrongValue);
    KnownTagsLostAfterUnknown: "does not know a declared tag that comes after an unknown one", []
        => by("tags-unordered", "*/unknown-tag-first", Class::WrongValue);
    AbsentEpochZero: "an absent tagged field is zero, not its default", []
        => by(VALID, "*/tags-left-out", Class::WrongValue);
    MissingTagSectionTaken: "takes the end for an empty tag section", []
        => by("missing-tag-section", "*", Class::TooLenient);
    TagSizeBelieved: "dies of a tagged field's size that is past the end",
        ["ydb-platform/ydb#50358"] => by(PAST_END, "*/tag-size-past-end", Class::Crash);
    TagPastEndCut: "reads a tagged field as far as the bytes go", []
        => by(PAST_END, "*/tag-size-past-end", Class::InventedValue);

    // Varints and lengths.
    VarintUnbounded: "goes on for as many bytes as a varint has continuation bits",
        ["tulios/kafkajs#1793"] => by("uvarint-overlong", "*", Class::TooLenient);
    VarintPastEnd: "takes the end of the bytes for the end of a varint",
        ["tulios/kafkajs#1793"] => by(PAST_END, "*/tag-count-cut", Class::InventedValue);
    VarintSigned: "takes a varint for a signed number and guards only its upper side",
        ["apache/kafka#23273"] => by("negative-length-nullable", "*/keys-minus-2-compact", Class::WrongValue);
    CompactLengthOneByte: "reserves one byte for a compact length",
        ["dpkp/kafka-python#3104"] => by(VALID, "*/two-bytes-of-*", Class::Panic);
    BytesLengthInt16: "the length of bytes is an int16",
        ["tisonkun/kafka-api#10"] => by(VALID, "*/sasl-authenticate-*", Class::WrongBytes);
    TextLengthWraps: "narrows the length of a long text to 16 bits",
        ["tisonkun/kafka-api#10"] => by("encode-not-encodable", "*-too-long", Class::WrongBytes);
    TextLengthWithoutPlusOne: "a compact length is the length itself", [] => by(VALID, "*", Class::WrongBytes);
    ArrayCountWithoutPlusOne: "a compact count is the count itself", [] => by(VALID, "*", Class::WrongBytes);
    InnerCountPlain: "counts of inner arrays are plain in flexible versions", [] => by(VALID, "*", Class::WrongBytes);
    LengthInCharacters: "a text's length is counted in characters", []
        => by(VALID, "*/text-in-bytes", Class::WrongBytes);
    OuterCountBelieved: "dies of a count that promises more than there is",
        ["apache/kafka#577", "ydb-platform/ydb#50358"] => by(PAST_END, "*/count-past-end-*", Class::Crash);
    InnerCountBelieved: "dies of an inner count that promises more than there is",
        ["apache/kafka#3359", "thomhurst/Dekaf#2386"] => by(PAST_END, "*/key-count-past-end-*", Class::Crash);
    LengthBelieved: "dies of a length that is past the end", [] => by(PAST_END, "*/name-past-end-*", Class::Crash);
    ArrayPastEndEmpty: "takes the end for an empty array", []
        => by(PAST_END, "*/results-missing", Class::InventedValue);
    CountPastEndCut: "reads as many elements as there are, whatever the count", []
        => by(PAST_END, "*past-end*", Class::InventedValue);
    TextPastEndCut: "reads a text as far as the bytes go", [] => by(PAST_END, "*past-end*", Class::InventedValue);
    MissingNumbersZero: "takes zeros for numbers that are not there", []
        => by(PAST_END, "*/last-byte-cut*", Class::InventedValue);
    LeftOverHidden: "does not say that bytes are left over", [] => by("left-over", "*", Class::WrongValue);

    // Null and empty.
    NullArrayCrashes: "dies of a null array where none is allowed",
        ["confluentinc/librdkafka#5577"] => by("null-array-not-nullable", "*", Class::Crash);
    NullArrayLoops: "never ends at a null array where none is allowed", []
        => by("null-array-not-nullable", "*", Class::Hang);
    NullArrayRefused: "refuses a null array where it is allowed",
        ["streamnative/kop#665"] => by(VALID, "*/keys-null-*", Class::TooStrict);
    NullArrayEmpty: "a null array is read as empty",
        ["apache/kafka#9046", "cilium/cilium#5125"] => by(VALID, "*/keys-null-*", Class::WrongValue);
    EmptyArrayNull: "an empty array is read as null", []
        => by(VALID, "*/keys-empty-*", Class::WrongValue);
    NullTextEmpty: "a null text is read as empty",
        ["oleksiyk/kafka#177"] => by(VALID, "*null*", Class::WrongValue);
    EmptyTextNull: "an empty text is read as null", [] => by(VALID, "*empty*", Class::WrongValue);
    EmptyTextWrittenNull: "an empty text is written as null", [] => by(VALID, "*empty*", Class::WrongBytes);
    ForbiddenNullArrayEmpty: "a null array where none is allowed is read as empty", []
        => by("null-array-not-nullable", "*", Class::TooLenient);
    ForbiddenNullTextEmpty: "a null text where none is allowed is read as empty", []
        => by("null-not-nullable", "*", Class::TooLenient);
    NullWrittenWhereForbidden: "writes null where the definition has none", []
        => by("encode-not-encodable", "*/encode-null-*", Class::WrongBytes);
    NullWrittenAsEmpty: "writes empty for null where the definition has no null", []
        => by("encode-not-encodable", "*/encode-null-*", Class::WrongBytes);
    NegativeLengthEmpty: "a length below -1 is read as empty", []
        => by("negative-length-nullable", "*", Class::WrongValue);
    NullKeysPanic: "panics at keys that are null, which ask for all",
        ["apache/kafka#8966"] => by(VALID, "*/keys-null-*", Class::Panic);
    SeveralKeysLost: "finds no key where two or more are asked for",
        ["apache/kafka#9990"] => by(VALID, "*/keys-listed-*", Class::WrongValue);
    NullValuePanics: "panics at a null value, such as that of a sensitive config",
        ["confluentinc/ksql#6885"] => by(VALID, "*/sensitive", Class::Panic);
    ErrorMessageNeverNull: "a null error message is read as empty", [] => by(VALID, "*null*", Class::WrongValue);

    // Numbers and text.
    OtherBoolsFalse: "a bool is true only where it is 1", [] => by("bool-other", "*", Class::WrongValue);
    OtherBoolsRefused: "refuses a bool other than 0 and 1", [] => by("bool-other", "*", Class::TooStrict);
    LittleEndian: "int32 has its low byte first", [] => by(VALID, "*", Class::WrongBytes);
    Int8Unsigned: "int8 has no sign", [] => by(VALID, "*/lowest-integers", Class::WrongValue);
    Int16Unsigned: "int16 has no sign", [] => by(VALID, "*/lowest-integers", Class::WrongValue);
    Int32Unsigned: "int32 has no sign", [] => by(VALID, "*/frame-lowest-correlation-id", Class::WrongValue);
    Int64AsDouble: "int64 goes through a double", [] => by(VALID, "*/epoch-beyond-53-bits", Class::WrongValue);
    UuidHalvesSwapped: "a uuid's halves stand in the other order", [] => by(VALID, "*topic*", Class::WrongBytes);
    BadTextPanics: "panics at text that is not UTF-8", [] => by("not-utf8", "*", Class::Panic);
    TextAsLatin: "reads text as Latin-1", [] => by(VALID, "*/text-in-bytes", Class::WrongValue);
    TextToAscii: "writes ? for what is not ASCII", [] => by(VALID, "*/text-in-bytes", Class::WrongBytes);
    TextEndsAtNul: "text ends at its first NUL", [] => by(VALID, "*/nul-in-text", Class::WrongValue);
    TextTrimmed: "drops blanks at both ends of text", [] => by(VALID, "*-untidy*", Class::WrongValue);
    AccentsComposed: "brings text to normal form C", [] => by(VALID, "*-untidy*", Class::WrongValue);
    LineEndsUnified: "makes CR LF in text LF", [] => by(VALID, "*-untidy*", Class::WrongValue);
    ByteOrderMarkDropped: "drops a byte order mark at the start of text", []
        => by(VALID, "*-byte-order-mark*", Class::WrongValue);

    // Lists.
    IntegerListsSorted: "sorts lists of integers", [] => by(VALID, "*-unordered*", Class::WrongValue);
    LongListsCut: "stops after a thousand elements", [] => by(VALID, "*-1025*", Class::WrongValue);

    VeryLongListsCut: "stops after ten thousand elements", [] => by(VALID, "*-1638*", Class::WrongValue);
    CompactCountTwoBytes: "has no more than two bytes for a compact count", []
        => by(VALID, "*-16383*", Class::WrongBytes);

    // Versions and fields.
    VersionTwoReadAsThree: "DescribeConfigs 2 is read and written as 3", []
        => by(VALID, "codec/describe-configs-response/v2/*", Class::WrongBytes);
    VersionThreeReadAsTwo: "DescribeConfigs 3 is read and written as 2",
        ["redpanda-data/redpanda#4170"] => by(VALID, "codec/describe-configs-response/v3/*", Class::WrongBytes);
    FlexibleVersionReadAsPlain: "the flexible version is read and written as the one before it", []
        => by(VALID, "*", Class::WrongBytes);
    LaterFieldWritten: "writes a field that only the next version has", []
        => by("encode-field-not-in-version", "*", Class::WrongBytes);
    DeclaredTagInEveryVersion: "reads and writes a tagged field in versions that lack it", []
        => by("encode-field-not-in-version", "*", Class::WrongBytes);
    ThrottleTimeForgotten: "has no throttle time", [] => by(VALID, "*-response/*", Class::WrongBytes);
    SynonymsMissing: "has no synonyms in version 1 and above",
        ["redpanda-data/redpanda#978"] => by(VALID, "*/synonyms-*", Class::WrongBytes);
    ConfigTypeMissing: "has no config type in version 3 and above", []
        => by(VALID, "codec/describe-configs-response/v3/*", Class::WrongBytes);
    DocumentationMissing: "has no documentation in version 3 and above", []
        => by(VALID, "codec/describe-configs-response/v3/*", Class::WrongBytes);
    ConfigTypeZero: "every config is of type 0, which is unknown",
        ["redpanda-data/redpanda#4170", "redpanda-data/redpanda#7543"]
        => by(VALID, "codec/describe-configs-response/v3/*", Class::WrongValue);
    DocumentationNeverNull: "writes empty for a null documentation",
        ["redpanda-data/redpanda#7543"] => by(VALID, "*/null-documentation", Class::WrongBytes);
    DefaultFlagUnset: "never says that a config is at its default",
        ["IBM/sarama#1594"] => by(VALID, "codec/describe-configs-response/v0/*", Class::WrongValue);
    SourceAsDefaultFlag: "the source of version 1 is read as the flag of version 0", []
        => by(VALID, "codec/describe-configs-response/*", Class::WrongValue);
    DefaultAsOverride: "a config at its default is written as set on the topic",
        ["redpanda-data/redpanda#17456"] => by(VALID, "codec/describe-configs-response/*", Class::WrongBytes);
    EmptyNameSpelledOut: "the empty name of the default broker is written out",
        ["apache/kafka#8675"] => by(VALID, "*/broker-default*", Class::WrongBytes);
    ValidateOnlyForgotten: "writes a dry run as a real one", [] => by(VALID, "*/validate-only", Class::WrongBytes);
    DuplicatesMerged: "of elements with one key it keeps the last",
        ["apache/kafka#6247"] => by(VALID, "*/one-*-twice", Class::WrongValue);
    ResultErrorsHidden: "shows every result as a success",
        ["redpanda-data/console#2026"] => by(VALID, "*/one-of-two-failed", Class::WrongValue);
    FlagsShifted: "shows the next flag in place of a flag", [] => by(VALID, "*-true*", Class::WrongValue);
    MinAndMaxSwapped: "the lowest version of an API is taken for the highest", []
        => by(VALID, "codec/api-versions-response/*", Class::WrongValue);
    ResourceTypesClosed: "refuses resource types other than topic and broker",
        ["apache/kafka#11657", "confluentinc/confluent-kafka-python#1678"]
        => by(VALID, "*/broker-logger", Class::TooStrict);
    OperationsClosed: "panics at an operation it does not know",
        ["apache/kafka#21005"] => by(VALID, "*/unknown-operation", Class::Panic);
    SourcesClosed: "panics at a config source it does not know", [] => by(VALID, "*/highest-integers", Class::Panic);
    ErrorCodesClosed: "refuses an error code it does not know", []
        => by(VALID, "*/highest-integers", Class::TooStrict);
}
