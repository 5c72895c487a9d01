//! What a function costs, before it runs by what its arguments can be, and when it runs by what they are.
//!
//! The figures are those of Kubernetes, so that a definition that passes there passes here: a text costs a tenth of its
//! length to look through, a regular expression a quarter of its own on top, everything else one.

use crate::types::Type;
use crate::value::Value;

/// How the cost of a function follows from the sizes of its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cost {
    /// Always one. Nothing is known of the size of what comes out.
    Flat,
    /// The first argument is looked through; what comes out is not larger.
    First,
    /// The second argument is looked through.
    Second,
    /// The shorter of both is looked through.
    Shorter,
    /// Both are copied into what comes out.
    Both,
    /// One is looked for in the other.
    Search,
    /// The second is a regular expression for the first.
    Regex,
    /// Every element of the first is looked at.
    Elements,
    /// Every element of the second is looked at.
    ElementsOfSecond,
    /// Every element of the first is compared with every element of the second.
    Pairs,
    /// All texts of a list, and what is put between them, are copied into what comes out.
    Join,
    /// Texts are put in the place of others.
    Replace,
}

/// How large arguments are: their sizes, and for lists of texts that of all their texts together.
struct Sizes {
    first: u64,
    second: u64,
    third: u64,
    texts: u64,
}

impl Cost {
    /// The highest cost for arguments of these types, and the largest size of what comes out.
    pub(crate) fn estimate(self, arguments: &[Type]) -> (u64, u64) {
        let size = |position: usize| arguments.get(position).map_or(0, Type::size);
        let texts = match arguments.first() {
            Some(Type::List(list)) => list.size.0.saturating_mul(list.of.size()),
            _ => u64::MAX,
        };
        self.of(&Sizes { first: size(0), second: size(1), third: size(2), texts })
    }

    /// The cost for these arguments.
    pub(crate) fn actual(self, arguments: &[Value<'_>]) -> u64 {
        let size = |position: usize| arguments.get(position).map_or(0, Value::size);
        let texts = match (self, arguments.first()) {
            (Cost::Join, Some(Value::List(list))) => {
                list.iter().fold(0, |sum, item| item.size().saturating_add(sum))
            }
            _ => 0,
        };
        self.of(&Sizes { first: size(0), second: size(1), third: size(2), texts }).0.max(1)
    }

    fn of(self, sizes: &Sizes) -> (u64, u64) {
        let Sizes { first, second, third, texts } = *sizes;
        let sum = first.saturating_add(second);
        match self {
            Cost::Flat => (1, u64::MAX),
            Cost::First => (tenth(first), first),
            Cost::Second => (tenth(second), first),
            Cost::Shorter => (tenth(first.min(second)), 1),
            Cost::Both => (tenth(sum), sum),
            Cost::Search => (tenth(first).saturating_mul(tenth(second)), 1),
            Cost::Regex => (tenth(first.saturating_add(1)).saturating_mul(quarter(second)), first),
            Cost::Elements => (first, first),
            Cost::ElementsOfSecond => (second, 1),
            Cost::Pairs => (first.saturating_mul(second), 1),
            Cost::Join => {
                let made = texts.saturating_add(first.saturating_mul(second));
                (tenth(made), made)
            }
            Cost::Replace => {
                // At worst, every character is replaced.
                let made = first.saturating_mul(third.max(1));
                (tenth(sum.saturating_add(made)), made)
            }
        }
    }
}

fn tenth(size: u64) -> u64 {
    size.div_ceil(10)
}

fn quarter(size: u64) -> u64 {
    size.div_ceil(4)
}
