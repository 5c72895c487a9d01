//! What an expression is once it is read.

/// An expression, and where in the source it stands: the byte at which messages about it point.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Expr {
    pub at: usize,
    pub kind: ExprKind,
    /// How many levels of expressions it has.
    pub height: usize,
}

impl Expr {
    pub(crate) fn new(at: usize, kind: ExprKind) -> Expr {
        let below = kind.parts().into_iter().map(|part| part.height).max();
        Expr { at, kind, height: below.map_or(1, |below| below + 1) }
    }

    /// Whether the expression mentions a variable. A variable of a macro that has its name counts too.
    pub(crate) fn mentions(&self, name: &str) -> bool {
        matches!(&self.kind, ExprKind::Name(own) if own == name)
            || self.kind.parts().into_iter().any(|part| part.mentions(name))
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ExprKind {
    Literal(Literal),
    /// A variable.
    Name(String),
    /// `operand.field`; with `.?` it is an optional that may be empty.
    Select {
        operand: Box<Expr>,
        field: String,
        is_optional: bool,
    },
    /// `has(operand.field)`.
    Has {
        operand: Box<Expr>,
        field: String,
    },
    /// A function, or an operator by its name in messages: `_+_`. The receiver of a member function comes first.
    Call {
        name: String,
        is_member: bool,
        arguments: Vec<Expr>,
    },
    /// A chain of `&&` or of `||`.
    Logic {
        operator: Logic,
        operands: Vec<Expr>,
    },
    /// `condition ? yes : no`.
    Choice(Box<[Expr; 3]>),
    List(Vec<Expr>),
    Map(Vec<(Expr, Expr)>),
    /// `Name.name{field: value}`.
    Object {
        name: String,
        fields: Vec<ObjectField>,
    },
    /// `?value` in a list, a map or an object: an optional, whose value is left out if it has none.
    Maybe(Box<Expr>),
    /// One of the macros that look at every element of a list or a map.
    Fold(Box<Fold>),
    /// `optional.optMap(variable, body)`, and `optFlatMap` whose body is an optional itself.
    OptMap {
        variable: String,
        is_flat: bool,
        /// The optional and the body.
        parts: Box<[Expr; 2]>,
    },
}

impl ExprKind {
    /// The expressions that it is made of.
    fn parts(&self) -> Vec<&Expr> {
        match self {
            ExprKind::Literal(_) | ExprKind::Name(_) => Vec::new(),
            ExprKind::Select { operand, .. } | ExprKind::Has { operand, .. } | ExprKind::Maybe(operand) => {
                vec![operand]
            }
            ExprKind::Object { fields, .. } => fields.iter().map(|field| &field.value).collect(),
            ExprKind::Call { arguments: parts, .. }
            | ExprKind::Logic { operands: parts, .. }
            | ExprKind::List(parts) => parts.iter().collect(),
            ExprKind::Choice(parts) => parts.iter().collect(),
            ExprKind::OptMap { parts, .. } => parts.iter().collect(),
            ExprKind::Map(entries) => entries.iter().flat_map(|(key, value)| [key, value]).collect(),
            ExprKind::Fold(fold) => [&fold.range, &fold.body].into_iter().chain(&fold.filter).collect(),
        }
    }
}

/// A field of an object that is built.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ObjectField {
    /// Where messages about it point.
    pub at: usize,
    pub name: String,
    pub value: Expr,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(String),
    Bytes(Vec<u8>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Logic {
    And,
    Or,
}

/// `range.all(variable, body)` and its like.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fold {
    pub kind: FoldKind,
    pub range: Expr,
    /// The element of a list or the key of a map; with a second variable the index, or the key.
    pub variable: String,
    /// With two variables, the value.
    pub second: Option<String>,
    /// Which elements count, where that is said apart from what is made of them.
    pub filter: Option<Expr>,
    pub body: Expr,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FoldKind {
    All,
    Exists,
    ExistsOne,
    Filter,
    /// `map` and `transformList`.
    Map,
    /// `transformMap`.
    MapValues,
}
