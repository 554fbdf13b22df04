//! Layout mutants: a layout wrong in one thing, which an implementation may be wrong in too. What no case tells from the
//! right layout is an untested rule.

use crate::layout::{Element, Fixed, Layout, WireType};
use crate::tree::Value;
use std::collections::BTreeSet;
use std::fmt;

/// What is wrong in a mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mutation {
    /// A compact length or count for a plain one, or the other way round.
    Compact,
    /// Null allowed where it is not, or the other way round.
    Nullable,
    /// A field before its neighbour.
    Swapped,
    /// A number of another size.
    Width,
    /// A struct without its tag section.
    TagSection,
    /// A tagged field of another default.
    Default,
    /// A tagged field of another number.
    Tag,
    /// A length or count that is believed: no layout is wrong, the reader is.
    Unchecked,
}

impl fmt::Display for Mutation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Mutation::Compact => "compact for plain or plain for compact",
            Mutation::Nullable => "null allowed or forbidden wrongly",
            Mutation::Swapped => "swapped with its neighbour",
            Mutation::Width => "a number of another size",
            Mutation::TagSection => "no tag section",
            Mutation::Default => "another default",
            Mutation::Tag => "another tag",
            Mutation::Unchecked => "a length or count that is believed",
        })
    }
}

/// One mutant.
#[derive(Clone, Debug)]
pub struct Mutant {
    /// What is wrong.
    pub mutation: Mutation,
    /// The struct it is wrong in, and the field, where it is a field; `Struct.Field[]` for its elements.
    pub place: String,
    /// Number of the field in the layout.
    pub field: Option<u16>,
    /// Whether it is the elements of that field that are wrong.
    pub element: bool,
    /// The wrong layout; none for [`Mutation::Unchecked`], and for elements that may be null: a layout has no such thing.
    pub layout: Option<Layout>,
}

/// Every mutant of a layout.
pub fn mutants(layout: &Layout) -> Vec<Mutant> {
    let mut mutants = Vec::new();
    let reached = reached(layout);
    for &id in &reached {
        let structure = layout.structure(id);
        let mut add = |mutation, field: Option<u16>, wrong: Option<Layout>| {
            let name = field.map(|number| format!(".{}", layout.field(number).name)).unwrap_or_default();
            let place = format!("{}{name}", structure.name);
            if wrong.is_some() || mutation == Mutation::Unchecked {
                mutants.push(Mutant { mutation, place, field, element: false, layout: wrong });
            }
        };
        if structure.flexible {
            let without = layout.altered(|_, structs| {
                structs.iter_mut().skip(id.into()).take(1).for_each(|structure| structure.flexible = false);
            });
            add(Mutation::TagSection, None, without);
        }
        for &one in structure.fields.iter().rev().skip(1).rev() {
            let swapped = layout.altered(|_, structs| {
                for structure in structs.iter_mut().skip(id.into()).take(1) {
                    if let Some(place) = structure.fields.iter().position(|&field| field == one) {
                        structure.fields.swap(place, place + 1);
                    }
                }
            });
            add(Mutation::Swapped, Some(one), swapped);
        }
        for &number in structure.fields.iter().chain(&structure.tagged) {
            let field = layout.field(number);
            let with_wire = |wire: WireType| {
                layout.altered(|fields, _| {
                    fields.iter_mut().skip(number.into()).take(1).for_each(|field| field.wire = wire);
                })
            };
            if let Some(wire) = flip_compact(field.wire) {
                add(Mutation::Compact, Some(number), with_wire(wire));
                add(Mutation::Unchecked, Some(number), None);
            }
            if let Some(wire) = flip_nullable(field.wire) {
                add(Mutation::Nullable, Some(number), with_wire(wire));
            }
            if let Some(wire) = other_width(field.wire) {
                add(Mutation::Width, Some(number), with_wire(wire));
            }
            if field.tag.is_some() {
                let renumbered = layout.altered(|fields, _| {
                    for field in fields.iter_mut().skip(number.into()).take(1) {
                        field.tag = field.tag.map(|tag| tag + 100);
                    }
                });
                add(Mutation::Tag, Some(number), renumbered);
                let Some(default) = other_default(&field.default) else { continue };
                let changed = layout.altered(|fields, _| {
                    fields.iter_mut().skip(number.into()).take(1).for_each(|field| field.default = default.clone());
                });
                add(Mutation::Default, Some(number), changed);
            }
        }
        for &number in structure.fields.iter().chain(&structure.tagged) {
            let field = layout.field(number);
            let WireType::Array { compact, nullable, element } = field.wire else { continue };
            let mut add = |mutation, layout| {
                let place = format!("{}.{}[]", structure.name, field.name);
                mutants.push(Mutant { mutation, place, field: Some(number), element: true, layout });
            };
            match element {
                Element::Struct(_) => {}
                Element::Fixed(fixed) => {
                    let wire = WireType::Array { compact, nullable, element: Element::Fixed(wider(fixed)) };
                    let wider = layout.altered(|fields, _| {
                        fields.iter_mut().skip(number.into()).take(1).for_each(|field| field.wire = wire);
                    });
                    if wider.is_some() {
                        add(Mutation::Width, wider);
                    }
                }
                Element::String | Element::Bytes => {
                    add(Mutation::Nullable, None);
                    add(Mutation::Unchecked, None);
                }
            }
        }
    }
    mutants
}

/// Structs that a message of this layout can hold; some are lowered only to know a default.
fn reached(layout: &Layout) -> BTreeSet<u16> {
    let mut reached = BTreeSet::from([0]);
    let mut open = vec![0];
    while let Some(id) = open.pop() {
        let structure = layout.structure(id);
        for &number in structure.fields.iter().chain(&structure.tagged) {
            let inner = match layout.field(number).wire {
                WireType::Struct { id, .. } | WireType::Array { element: Element::Struct(id), .. } => id,
                _ => continue,
            };
            if reached.insert(inner) {
                open.push(inner);
            }
        }
    }
    reached
}

fn flip_compact(wire: WireType) -> Option<WireType> {
    Some(match wire {
        WireType::String { compact, nullable } => WireType::String { compact: !compact, nullable },
        WireType::Bytes { compact, nullable, records } => WireType::Bytes { compact: !compact, nullable, records },
        WireType::Array { compact, nullable, element } => WireType::Array { compact: !compact, nullable, element },
        WireType::Fixed(_) | WireType::Struct { .. } => return None,
    })
}

fn flip_nullable(wire: WireType) -> Option<WireType> {
    Some(match wire {
        WireType::String { compact, nullable } => WireType::String { compact, nullable: !nullable },
        WireType::Bytes { compact, nullable, records } => WireType::Bytes { compact, nullable: !nullable, records },
        WireType::Array { compact, nullable, element } => WireType::Array { compact, nullable: !nullable, element },
        WireType::Struct { id, nullable } => WireType::Struct { id, nullable: !nullable },
        WireType::Fixed(_) => return None,
    })
}

/// A number one size up or, at the top, down.
fn other_width(wire: WireType) -> Option<WireType> {
    let WireType::Fixed(fixed) = wire else { return None };
    Some(WireType::Fixed(wider(fixed)))
}

/// The next size up or, at the top, down.
fn wider(fixed: Fixed) -> Fixed {
    match fixed {
        Fixed::Bool | Fixed::Int8 => Fixed::Int16,
        Fixed::Int16 | Fixed::Uint16 => Fixed::Int32,
        Fixed::Int32 | Fixed::Uint32 => Fixed::Int64,
        Fixed::Int64 => Fixed::Int32,
        Fixed::Float64 | Fixed::Uuid => Fixed::Int64,
    }
}

fn other_default(default: &Value) -> Option<Value> {
    Some(match default {
        Value::Bool(value) => Value::Bool(!value),
        Value::Integer(value) => Value::Integer(value ^ 1),
        Value::String(text) => Value::String(format!("{text}x")),
        Value::Null => return None,
        _ => return None,
    })
}
