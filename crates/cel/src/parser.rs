//! Words as an expression: operators by their precedence, and the macros, which look like functions and are not.

use crate::ast::{Expr, ExprKind, Fold, FoldKind, Literal, Logic, ObjectField};
use crate::lexer::{Token, Word, words};
use crate::{CompileError, Fault, library};

/// How deep expressions may nest. Everything that walks them does so by recursion, and the stack is finite.
const HEIGHT_MAX: usize = 100;

/// What can begin an operand, as messages list it.
const OPERANDS: &str = "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, \
                        BYTES, IDENTIFIER}";

/// Words that cannot be names, besides those of the grammar itself.
const RESERVED: [&str; 17] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// Whether a word belongs to the language, so that nothing can be called by it.
pub fn is_reserved(word: &str) -> bool {
    matches!(word, "true" | "false" | "null" | "in") || RESERVED.contains(&word)
}

/// Reads an expression.
pub(crate) fn parse(source: &str) -> Result<Expr, CompileError> {
    let mut parser = Parser { tokens: words(source)?, next: 0, depth: 0 };
    parser.whole().map_err(|fault| CompileError::one(source, fault))
}

struct Parser {
    tokens: Vec<Token>,
    next: usize,
    depth: usize,
}

type Parsed<T = Expr> = Result<T, Fault>;

impl Parser {
    fn word(&self) -> &Word {
        self.tokens.get(self.next).map_or(&Word::End, |token| &token.word)
    }

    /// Where the next word starts.
    fn at(&self) -> usize {
        self.tokens.get(self.next).or(self.tokens.last()).map_or(0, |token| token.at)
    }

    fn advance(&mut self) -> Word {
        let word = self.word().clone();
        self.next += 1;
        word
    }

    fn take(&mut self, mark: &str) -> bool {
        let is_next = matches!(self.word(), Word::Mark(next) if *next == mark);
        self.next += usize::from(is_next);
        is_next
    }

    fn expect(&mut self, mark: &str) -> Parsed<()> {
        if self.take(mark) { Ok(()) } else { Err(self.mismatch(&format!("'{mark}'"))) }
    }

    fn mismatch(&self, expected: &str) -> Fault {
        Fault::syntax(self.at(), format!("mismatched input '{}' expecting {expected}", self.shown()))
    }

    /// The next word as messages quote it.
    fn shown(&self) -> String {
        match self.word() {
            Word::Name(name) | Word::Quoted(name) | Word::Int(name) => name.clone(),
            Word::Uint(number) => format!("{number}u"),
            Word::Double(number) => number.to_string(),
            Word::String(text) => format!("'{text}'"),
            Word::Bytes(_) => "b''".to_owned(),
            Word::Mark(mark) => (*mark).to_owned(),
            Word::End => "<EOF>".to_owned(),
        }
    }

    fn whole(&mut self) -> Parsed {
        let expr = self.expr()?;
        match self.word() {
            Word::End => Ok(expr),
            _ => Err(self.mismatch("<EOF>")),
        }
    }

    /// Goes one level deeper, if that is allowed.
    fn deeper<T>(&mut self, parse: impl FnOnce(&mut Parser) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= HEIGHT_MAX {
            return Err(too_deep(self.at()));
        }
        self.depth += 1;
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    fn expr(&mut self) -> Parsed {
        self.deeper(Parser::choice)
    }

    /// `condition ? yes : no`; what follows the colon may be a choice again.
    fn choice(&mut self) -> Parsed {
        let condition = self.logic(Logic::Or)?;
        let at = self.at();
        if !self.take("?") {
            return Ok(condition);
        }
        let yes = self.deeper(|parser| parser.logic(Logic::Or))?;
        self.expect(":")?;
        let no = self.expr()?;
        expr(at, ExprKind::Choice(Box::new([condition, yes, no])))
    }

    /// A chain of one logical operator; `||` binds weaker than `&&`, and that weaker than comparisons.
    fn logic(&mut self, operator: Logic) -> Parsed {
        let (mark, operand): (_, fn(&mut Parser) -> Parsed) = match operator {
            Logic::Or => ("||", |parser| parser.logic(Logic::And)),
            Logic::And => ("&&", |parser| parser.binary(0)),
        };
        let first = operand(self)?;
        let at = self.at();
        let mut operands = vec![first];
        while self.take(mark) {
            operands.push(operand(self)?);
        }
        match <[Expr; 1]>::try_from(operands) {
            Ok([only]) => Ok(only),
            Err(operands) => expr(at, ExprKind::Logic { operator, operands }),
        }
    }

    /// Comparisons, sums and products; operators of one level are taken from left to right.
    fn binary(&mut self, level: usize) -> Parsed {
        let mut left = match level {
            2 => self.unary()?,
            _ => self.binary(level + 1)?,
        };
        loop {
            let at = self.at();
            let Some(name) = self.operator(level) else { return Ok(left) };
            self.next += 1;
            let right = match level {
                2 => self.unary()?,
                _ => self.binary(level + 1)?,
            };
            left = call(at, name, vec![left, right])?;
        }
    }

    /// The name of the operator that comes next, if it is one of this level.
    fn operator(&self, level: usize) -> Option<&'static str> {
        let name = match self.word() {
            Word::Mark("==") => (0, "_==_"),
            Word::Mark("!=") => (0, "_!=_"),
            Word::Mark("<") => (0, "_<_"),
            Word::Mark("<=") => (0, "_<=_"),
            Word::Mark(">") => (0, "_>_"),
            Word::Mark(">=") => (0, "_>=_"),
            Word::Name(name) if name == "in" => (0, "@in"),
            Word::Mark("+") => (1, "_+_"),
            Word::Mark("-") => (1, "_-_"),
            Word::Mark("*") => (2, "_*_"),
            Word::Mark("/") => (2, "_/_"),
            Word::Mark("%") => (2, "_%_"),
            _ => return None,
        };
        (name.0 == level).then_some(name.1)
    }

    fn unary(&mut self) -> Parsed {
        let at = self.at();
        if self.take("!") {
            let operand = self.deeper(Parser::unary)?;
            return call(at, "!_", vec![operand]);
        }
        if self.take("-") {
            if let Some(number) = self.negative_number(at)? {
                return self.members(number);
            }
            let operand = self.deeper(Parser::unary)?;
            return call(at, "-_", vec![operand]);
        }
        let primary = self.primary()?;
        self.members(primary)
    }

    /// The smallest number exists only with its sign.
    fn negative_number(&mut self, at: usize) -> Parsed<Option<Expr>> {
        let literal = match self.word() {
            Word::Int(digits) => Literal::Int(int(&format!("-{digits}"), at)?),
            Word::Double(number) => Literal::Double(-number),
            _ => return Ok(None),
        };
        self.next += 1;
        expr(at, ExprKind::Literal(literal)).map(Some)
    }

    fn primary(&mut self) -> Parsed {
        let at = self.at();
        let literal = |literal| expr(at, ExprKind::Literal(literal));
        match self.word().clone() {
            Word::Name(name) => self.named(at, &name),
            Word::Mark("(") => {
                self.next += 1;
                let inner = self.expr()?;
                self.expect(")")?;
                Ok(inner)
            }
            Word::Mark("[") => {
                self.next += 1;
                let items = self.list("]", Parser::element)?;
                expr(at, ExprKind::List(items))
            }
            // The first element is an optional.
            Word::Mark("[?") => {
                self.next += 1;
                let first = self.expr()?;
                let mut items = vec![expr(first.at, ExprKind::Maybe(Box::new(first)))?];
                match self.take(",") {
                    true => items.extend(self.list("]", Parser::element)?),
                    false => self.expect("]")?,
                }
                expr(at, ExprKind::List(items))
            }
            Word::Mark("{") => {
                self.next += 1;
                let entries = self.list("}", Parser::entry)?;
                expr(at, ExprKind::Map(entries))
            }
            // A name from the root; there is but one container here.
            Word::Mark(".") => {
                self.next += 1;
                match self.word().clone() {
                    Word::Name(name) => self.named(at, &name),
                    _ => Err(self.mismatch("IDENTIFIER")),
                }
            }
            Word::Int(digits) => {
                self.next += 1;
                literal(Literal::Int(int(&digits, at)?))
            }
            Word::Uint(number) => {
                self.next += 1;
                literal(Literal::Uint(number))
            }
            Word::Double(number) => {
                self.next += 1;
                literal(Literal::Double(number))
            }
            Word::String(text) => {
                self.next += 1;
                literal(Literal::String(text))
            }
            Word::Bytes(bytes) => {
                self.next += 1;
                literal(Literal::Bytes(bytes))
            }
            Word::Quoted(_) | Word::Mark(_) | Word::End => Err(self.mismatch(OPERANDS)),
        }
    }

    /// A value, or `?` and an optional.
    fn element(&mut self) -> Parsed {
        if !self.take("?") {
            return self.expr();
        }
        let value = self.expr()?;
        expr(value.at, ExprKind::Maybe(Box::new(value)))
    }

    fn entry(&mut self) -> Parsed<(Expr, Expr)> {
        let is_optional = self.take("?");
        let key = self.expr()?;
        self.expect(":")?;
        Ok((key, self.entry_value(is_optional)?))
    }

    fn entry_value(&mut self, is_optional: bool) -> Parsed {
        let value = self.expr()?;
        if is_optional { expr(value.at, ExprKind::Maybe(Box::new(value))) } else { Ok(value) }
    }

    fn object_field(&mut self) -> Parsed<ObjectField> {
        let is_optional = self.take("?");
        let name = self.field()?;
        let at = self.at();
        self.expect(":")?;
        Ok(ObjectField { at, name, value: self.entry_value(is_optional)? })
    }

    /// Things between commas up to a closing mark; the last comma may have nothing after it.
    fn list<T>(&mut self, end: &str, item: fn(&mut Parser) -> Parsed<T>) -> Parsed<Vec<T>> {
        let mut items = Vec::new();
        if end == ")" && matches!(self.word(), Word::End) {
            return Err(self.mismatch(&OPERANDS.replace("'(', ", "'(', ')', ")));
        }
        while !self.take(end) {
            items.push(item(self)?);
            if !self.take(",") {
                self.expect(end)?;
                break;
            }
        }
        Ok(items)
    }

    /// A variable, a literal that is a word, or a function without receiver.
    fn named(&mut self, at: usize, name: &str) -> Parsed {
        if name == "in" {
            return Err(self.mismatch(OPERANDS));
        }
        self.next += 1;
        let literal = match name {
            "true" => Some(Literal::Bool(true)),
            "false" => Some(Literal::Bool(false)),
            "null" => Some(Literal::Null),
            _ => None,
        };
        if let Some(literal) = literal {
            return expr(at, ExprKind::Literal(literal));
        }
        let open = self.at();
        if self.take("(") {
            let arguments = self.list(")", Parser::expr)?;
            return if name == "has" { has(open, arguments) } else { call(open, name, arguments) };
        }
        if RESERVED.contains(&name) {
            return Err(Fault::syntax(at, format!("reserved identifier: {name}")));
        }
        expr(at, ExprKind::Name(name.to_owned()))
    }

    /// Fields, elements and member functions of what has been read.
    fn members(&mut self, mut operand: Expr) -> Parsed {
        loop {
            let at = self.at();
            if self.take("[") || self.take("[?") {
                let is_optional =
                    matches!(self.tokens.get(self.next - 1), Some(Token { word: Word::Mark("[?"), .. }));
                let index = self.expr()?;
                self.expect("]")?;
                operand = call(at, if is_optional { "_[?_]" } else { "_[_]" }, vec![operand, index])?;
            } else if let (Word::Mark("{"), Some(name)) = (self.word(), dotted(&operand)) {
                self.next += 1;
                let fields = self.list("}", Parser::object_field)?;
                operand = expr(at, ExprKind::Object { name, fields })?;
            } else if self.take(".?") {
                let field = self.field()?;
                operand =
                    expr(at, ExprKind::Select { operand: Box::new(operand), field, is_optional: true })?;
            } else if self.take(".") {
                let field = self.field()?;
                let open = self.at();
                operand = if self.take("(") {
                    let arguments = self.list(")", Parser::expr)?;
                    member_call(open, operand, &field, arguments)?
                } else {
                    let operand = Box::new(operand);
                    expr(at, ExprKind::Select { operand, field, is_optional: false })?
                };
            } else {
                return Ok(operand);
            }
        }
    }

    fn field(&mut self) -> Parsed<String> {
        match self.word() {
            Word::Name(_) | Word::Quoted(_) => match self.advance() {
                Word::Name(name) | Word::Quoted(name) => Ok(name),
                _ => Err(self.mismatch("IDENTIFIER")),
            },
            _ => Err(Fault::syntax(self.at(), "no viable alternative at input '.'")),
        }
    }
}

/// The name of a type: names with dots between them.
fn dotted(expr: &Expr) -> Option<String> {
    match &expr.kind {
        ExprKind::Name(name) => Some(name.clone()),
        ExprKind::Select { operand, field, is_optional: false } => {
            Some(format!("{}.{field}", dotted(operand)?))
        }
        _ => None,
    }
}

fn call(at: usize, name: &str, arguments: Vec<Expr>) -> Parsed {
    expr(at, ExprKind::Call { name: name.to_owned(), is_member: false, arguments })
}

fn int(text: &str, at: usize) -> Parsed<i64> {
    let (sign, digits) = text.strip_prefix('-').map_or(("", text), |digits| ("-", digits));
    let number = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(digits) => i64::from_str_radix(&format!("{sign}{digits}"), 16),
        None => text.parse(),
    };
    number.map_err(|_| Fault::syntax(at, "invalid int literal"))
}

fn has(at: usize, arguments: Vec<Expr>) -> Parsed {
    match <[Expr; 1]>::try_from(arguments) {
        Ok([Expr { kind: ExprKind::Select { operand, field, is_optional: false }, .. }]) => {
            expr(at, ExprKind::Has { operand, field })
        }
        Ok([other]) => Err(Fault::new(other.at, "invalid argument to has() macro")),
        Err(_) => Err(Fault::new(at, "invalid argument to has() macro")),
    }
}

/// A macro, a function that belongs to a name (`sets.contains`), or a function of what stands before the dot.
fn member_call(at: usize, target: Expr, name: &str, arguments: Vec<Expr>) -> Parsed {
    if let ExprKind::Name(space) = &target.kind {
        let full = format!("{space}.{name}");
        if library::is_known(&full) {
            return call(at, &full, arguments);
        }
    }
    let shape = match (name, arguments.len()) {
        ("all", 2) => (FoldKind::All, 1, false),
        ("exists", 2) => (FoldKind::Exists, 1, false),
        ("exists_one", 2) => (FoldKind::ExistsOne, 1, false),
        ("filter", 2) => (FoldKind::Filter, 1, false),
        ("map", 2) => (FoldKind::Map, 1, false),
        ("map", 3) => (FoldKind::Map, 1, true),
        ("all", 3) => (FoldKind::All, 2, false),
        ("exists", 3) => (FoldKind::Exists, 2, false),
        ("existsOne", 3) => (FoldKind::ExistsOne, 2, false),
        ("transformList", 3) => (FoldKind::Map, 2, false),
        ("transformList", 4) => (FoldKind::Map, 2, true),
        ("transformMap", 3) => (FoldKind::MapValues, 2, false),
        ("transformMap", 4) => (FoldKind::MapValues, 2, true),
        ("optMap" | "optFlatMap", 2) => return opt_map(at, name == "optFlatMap", target, arguments),
        _ => {
            let arguments = std::iter::once(target).chain(arguments).collect();
            return expr(at, ExprKind::Call { name: name.to_owned(), is_member: true, arguments });
        }
    };
    fold(at, shape, target, arguments)
}

/// A macro over elements: of which kind, with how many variables, and whether it says which elements count.
fn fold(
    at: usize,
    (kind, n_variables, has_filter): (FoldKind, usize, bool),
    range: Expr,
    mut arguments: Vec<Expr>,
) -> Parsed {
    let body = arguments.pop().ok_or_else(|| Fault::new(at, "argument must be an expression"))?;
    let filter = if has_filter { arguments.pop() } else { None };
    let mut variables = Vec::new();
    for argument in arguments {
        match argument.kind {
            ExprKind::Name(name) => variables.push(name),
            _ => return Err(Fault::new(argument.at, "argument must be a simple name")),
        }
    }
    let second = if n_variables == 2 { variables.pop() } else { None };
    let variable = variables.pop().unwrap_or_default();
    expr(at, ExprKind::Fold(Box::new(Fold { kind, range, variable, second, filter, body })))
}

fn opt_map(at: usize, is_flat: bool, target: Expr, arguments: Vec<Expr>) -> Parsed {
    match <[Expr; 2]>::try_from(arguments) {
        Ok([Expr { kind: ExprKind::Name(variable), .. }, body]) => {
            expr(at, ExprKind::OptMap { variable, is_flat, parts: Box::new([target, body]) })
        }
        _ => Err(Fault::new(at, "optMap() variable name must be a simple identifier")),
    }
}

/// An expression, unless it is too high.
fn expr(at: usize, kind: ExprKind) -> Parsed {
    let expr = Expr::new(at, kind);
    if expr.height > HEIGHT_MAX { Err(too_deep(at)) } else { Ok(expr) }
}

fn too_deep(at: usize) -> Fault {
    Fault::new(at, format!("expression recursion limit exceeded: {HEIGHT_MAX}"))
}
