//! Admission policies: rules of the cluster that are written as expressions.
//!
//! ```text
//!   environment.rs   what expressions can look at, and which types they may come to
//!   definition.rs    what policies and their bindings may say     (defaults, validation)
//! ```

mod definition;
mod environment;

pub use definition::{
    default_binding, default_policy, validate_mutating, validate_mutating_binding, validate_validating,
    validate_validating_binding,
};
pub use environment::{Environment, type_of};
