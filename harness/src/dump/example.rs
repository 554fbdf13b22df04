//! A plausible value of any message: what a field holds in real traffic, guessed from entity type, name and type.

use codec::{Element, FieldSpec, Fixed, Float64, Layout, MessageSpec, StructLayout, StructValue, Value, WireType};

/// One value for each field, one element in each array, tagged fields too. The names are of a topic `orders` with a
/// retention of a week. It encodes at the layout's version.
pub fn example_value(layout: &Layout) -> Value {
    struct_example(layout, layout.root())
}

fn struct_example(layout: &Layout, structure: &StructLayout) -> Value {
    let fields = structure.fields.iter().chain(&structure.tagged).map(|&number| {
        let field = layout.field(number);
        let spec = field_spec(layout.spec(), &structure.name, &field.name);
        let entity = spec.and_then(|spec| spec.entity_type.as_deref()).unwrap_or_default();
        let guess = Guess { structure: &structure.name, name: &field.name, entity };
        let value = match field.wire {
            WireType::Struct { id, .. } => struct_example(layout, layout.structure(id)),
            WireType::Array { element, .. } => Value::Array(vec![match element {
                Element::Struct(id) => struct_example(layout, layout.structure(id)),
                Element::Fixed(fixed) => guess.fixed(fixed, None),
                Element::String => Value::String(guess.text()),
                Element::Bytes => Value::Bytes(b"x".to_vec()),
            }]),
            WireType::Fixed(fixed) => guess.fixed(fixed, Some(&field.default)),
            // Nothing went wrong, and that is said with null.
            WireType::String { nullable: true, .. } if *field.name == *"ErrorMessage" => Value::Null,
            WireType::String { .. } => Value::String(guess.text()),
            WireType::Bytes { records: true, .. } => Value::Bytes(codec::empty_record_batch()),
            WireType::Bytes { .. } => Value::Bytes(guess.octets()),
        };
        (field.name.clone(), value)
    });
    Value::Struct(StructValue { fields: fields.collect(), tags: Vec::new() })
}

fn field_spec<'s>(spec: &'s MessageSpec, structure: &str, name: &str) -> Option<&'s FieldSpec> {
    let fields = if *spec.name == *structure { &spec.fields } else { &spec.structs.get(structure)?.fields };
    fields.iter().find(|field| *field.name == *name)
}

struct Guess<'f> {
    structure: &'f str,
    name: &'f str,
    entity: &'f str,
}

impl Guess<'_> {
    fn text(&self) -> String {
        let of = |part: &str| self.structure.contains(part);
        let text = match (self.entity, self.name) {
            ("topicName", _) => "orders",
            ("groupId", _) | (_, "GroupId") => "billing",
            ("transactionalId", _) | (_, "TransactionalId") => "billing-1",
            (_, "ClientId") => "billing-client",
            (_, "ClientSoftwareName") => "kafka-conform",
            (_, "ClientSoftwareVersion") => "1.0.0",
            (_, "ConfigurationKeys") => "retention.ms",
            (_, "Value") => "604800000",
            (_, "Name") if of("Config") || of("Synonym") => "retention.ms",
            (_, "Name") if of("Feature") => "metadata.version",
            (_, "ResourceName" | "Name" | "TopicName") => "orders",
            (_, "Documentation") => "How long a record is kept before its segment may be deleted.",
            (_, "ErrorMessage") => "Nothing went wrong.",
            (_, "Host") => "broker-1.example.org",
            (_, "Rack") => "rack-a",
            (_, "ClusterId") => "4L6g3nShT-eMCtK--X86sw",
            (_, "Mechanism" | "Mechanisms") => "SCRAM-SHA-256",
            _ => "example",
        };
        text.to_owned()
    }

    fn octets(&self) -> Vec<u8> {
        let text: &[u8] = match self.name {
            "AuthBytes" => b"n,,n=alice,r=nonce",
            _ => b"example",
        };
        text.to_vec()
    }

    /// A number; `default` is the field's, where it has one.
    fn fixed(&self, fixed: Fixed, default: Option<&Value>) -> Value {
        let number = match (self.entity, self.name) {
            ("brokerId", _) | (_, "NodeId" | "ControllerId") => Some(1),
            ("producerId", _) | (_, "ProducerId") => Some(4000),
            (_, "ErrorCode") => Some(0),
            // A topic, the source and type of its retention.ms.
            (_, "ResourceType") => Some(2),
            (_, "ConfigSource" | "Source") => Some(1),
            (_, "ConfigType") => Some(5),
            (_, "ApiKey" | "RequestApiKey") => Some(32),
            (_, "MaxVersion" | "RequestApiVersion") => Some(4),
            (_, "MaxVersionLevel" | "MinVersionLevel") => Some(20),
            (_, "CorrelationId") => Some(7),
            (_, "Port") => Some(9092),
            (_, "NumPartitions") => Some(3),
            (_, "ReplicationFactor") => Some(1),
            (_, "TimeoutMs") => Some(30_000),
            (_, "SessionLifetimeMs") => Some(3_600_000),
            _ if self.name.ends_with("Epoch") => Some(5),
            _ => None,
        };
        match (fixed, number, default) {
            (Fixed::Uuid, ..) => Value::Uuid(*b"\x71\x4f\xd4\x0e\x2b\x6a\x4c\x0d\x9b\x2e\x5d\x33\x8a\x90\xc1\x7e"),
            (Fixed::Float64, ..) => Value::Float(Float64::from(0.5)),
            (Fixed::Bool, _, Some(default)) => default.clone(),
            (Fixed::Bool, ..) => Value::Bool(true),
            (_, Some(number), _) => Value::Integer(number),
            (_, None, Some(default)) => default.clone(),
            (_, None, None) => Value::Integer(1),
        }
    }
}
