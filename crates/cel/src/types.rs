//! Types: what is known of a value before it is there.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The type of a value. Texts, lists and maps also know how large they can be: that is what a rule's cost depends on.
#[derive(Clone, Debug, PartialEq)]
pub enum Type {
    /// Known only when there is a value.
    Dyn,
    /// Only `null`.
    Null,
    /// `true` or `false`.
    Bool,
    /// 64 bits with a sign.
    Int,
    /// 64 bits without a sign.
    Uint,
    /// Floating point.
    Double,
    /// A text of at most so many characters.
    String(Size),
    /// At most so many bytes.
    Bytes(Size),
    /// A moment.
    Timestamp,
    /// A time between two moments.
    Duration,
    /// Elements in order.
    List(Arc<ListType>),
    /// Values by key.
    Map(Arc<MapType>),
    /// Named fields.
    Object(Arc<ObjectType>),
    /// An object that an expression builds, by the name of its type.
    Built(Arc<str>),
    /// A value that may be absent.
    Optional(Arc<Type>),
    /// A type itself.
    Type,
    /// One of Kubernetes' own.
    Opaque(Opaque),
}

/// How many characters, elements or entries a value has at most. All sizes are equal: they are no part of a type's identity.
#[derive(Clone, Copy, Debug)]
pub struct Size(pub u64);

impl Size {
    /// Nobody knows.
    pub const UNKNOWN: Size = Size(u64::MAX);
}

impl PartialEq for Size {
    fn eq(&self, _other: &Size) -> bool {
        true
    }
}

/// The type of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct ListType {
    /// Its elements.
    pub of: Type,
    /// How many of them there can be.
    pub size: Size,
    /// What two lists have to have in common to be equal.
    pub order: Order,
}

/// What two lists have to have in common to be equal, and what their sum is.
#[derive(Clone, Debug, Default)]
pub enum Order {
    /// The same elements in the same order; the sum has all of both.
    #[default]
    Sequence,
    /// The same elements; the sum has each once.
    Set,
    /// The same elements by these keys; in a sum, later ones replace earlier ones.
    Keyed(Vec<String>),
}

impl PartialEq for Order {
    /// No part of a type's identity: a set and a list may be compared.
    fn eq(&self, _other: &Order) -> bool {
        true
    }
}

/// The type of a map.
#[derive(Clone, Debug, PartialEq)]
pub struct MapType {
    /// Its keys.
    pub key: Type,
    /// Its values.
    pub value: Type,
    /// How many entries there can be.
    pub size: Size,
}

/// The type of an object.
#[derive(Clone, Debug)]
pub struct ObjectType {
    /// Its name in messages.
    pub name: String,
    /// Its fields, by the names that expressions use.
    pub fields: BTreeMap<String, FieldType>,
}

impl PartialEq for ObjectType {
    fn eq(&self, other: &ObjectType) -> bool {
        self.name == other.name
    }
}

/// A field of an object.
#[derive(Clone, Debug)]
pub struct FieldType {
    /// Its name in JSON, which need not be a name in expressions.
    pub json_name: String,
    /// What it holds.
    pub of: Type,
}

/// Values that only functions can look into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opaque {
    /// An amount of a resource.
    Quantity,
    /// The parts of a URL.
    Url,
    /// An IP address.
    Ip,
    /// A range of IP addresses.
    Cidr,
    /// A version as semver.org has it.
    Semver,
    /// A format that a text can have.
    Format,
}

impl Type {
    /// A text of unknown length.
    pub const TEXT: Type = Type::String(Size::UNKNOWN);

    /// A list of at most `size` elements.
    pub fn list(of: Type, size: Size) -> Type {
        Type::List(Arc::new(ListType { of, size, order: Order::Sequence }))
    }

    /// A map of at most `size` entries.
    pub fn map(key: Type, value: Type, size: Size) -> Type {
        Type::Map(Arc::new(MapType { key, value, size }))
    }

    /// How large a value can be; everything that cannot grow counts as one.
    pub(crate) fn size(&self) -> u64 {
        match self {
            Type::String(size) | Type::Bytes(size) => size.0,
            Type::List(list) => list.size.0,
            Type::Map(map) => map.size.0,
            Type::Dyn => Size::UNKNOWN.0,
            Type::Optional(of) => of.size(),
            _ => 1,
        }
    }

    /// The type of values that are of one of two types, if one can stand for the other.
    pub(crate) fn join(&self, other: &Type) -> Option<Type> {
        let larger = |left: Size, right: Size| Size(left.0.max(right.0));
        Some(match (self, other) {
            (Type::Dyn, _) | (_, Type::Dyn) => Type::Dyn,
            (Type::String(left), Type::String(right)) => Type::String(larger(*left, *right)),
            (Type::Bytes(left), Type::Bytes(right)) => Type::Bytes(larger(*left, *right)),
            (Type::List(left), Type::List(right)) => {
                Type::list(left.of.join(&right.of)?, larger(left.size, right.size))
            }
            (Type::Map(left), Type::Map(right)) => {
                let (key, value) = (left.key.join(&right.key)?, left.value.join(&right.value)?);
                Type::map(key, value, larger(left.size, right.size))
            }
            (Type::Optional(left), Type::Optional(right)) => Type::Optional(Arc::new(left.join(right)?)),
            (Type::Null, of) | (of, Type::Null) if of.may_be_null() => of.clone(),
            (left, right) if left == right => left.clone(),
            _ => return None,
        })
    }

    fn may_be_null(&self) -> bool {
        let is_one =
            |of: &Type| matches!(of, Type::Object(_) | Type::Timestamp | Type::Duration | Type::Opaque(_));
        is_one(self) || *self == Type::Null
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Dyn => f.write_str("dyn"),
            Type::Null => f.write_str("null"),
            Type::Bool => f.write_str("bool"),
            Type::Int => f.write_str("int"),
            Type::Uint => f.write_str("uint"),
            Type::Double => f.write_str("double"),
            Type::String(_) => f.write_str("string"),
            Type::Bytes(_) => f.write_str("bytes"),
            Type::Timestamp => f.write_str("timestamp"),
            Type::Duration => f.write_str("duration"),
            Type::List(list) => write!(f, "list({})", list.of),
            Type::Map(map) => write!(f, "map({}, {})", map.key, map.value),
            Type::Object(object) => f.write_str(&object.name),
            Type::Built(name) => f.write_str(name),
            Type::Optional(of) => write!(f, "optional_type({of})"),
            Type::Type => f.write_str("type"),
            Type::Opaque(opaque) => f.write_str(opaque.name()),
        }
    }
}

impl Opaque {
    /// The name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Opaque::Quantity => "kubernetes.Quantity",
            Opaque::Url => "kubernetes.URL",
            Opaque::Ip => "net.IP",
            Opaque::Cidr => "net.CIDR",
            Opaque::Semver => "kubernetes.Semver",
            Opaque::Format => "kubernetes.NamedFormat",
        }
    }
}
