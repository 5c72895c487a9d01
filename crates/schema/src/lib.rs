//! What Kubernetes' built-in types look like, as one table, and everything that follows from it.
//!
//! ```text
//!   builtin.txt --> table    types, fields, protobuf numbers, merge keys, list types, defaults
//!                     |
//!       +-----------+-+---------+------------+-----------+-------------+
//!       |           |           |            |           |             |
//!    decode      protobuf   strategic      apply      openapi      structural
//!    JSON, YAML  encode     merge patch    server-    documents    schemas of CRDs: emit,
//!    -> objects  to and fro                side                    prune, default, validate
//! ```
//!
//! Rules that definitions state as expressions are in [`rules`].
//!
//! Everything here is a pure function over JSON values: no clock, no store, no I/O.

pub mod apply;
mod complete;
pub mod decode;
pub mod encode;
pub mod field;
#[cfg(test)]
pub(crate) mod golden;
pub mod json;
pub mod names;
pub mod object;
pub mod openapi;
pub mod plain;
pub mod protobuf;
pub mod rules;
pub mod scalar;
pub mod spelling;
pub mod strategic;
pub mod structural;
pub mod table;
pub mod wire;
pub mod yaml;
pub mod yaml_out;

pub use complete::complete;
pub use table::{Field, ListType, Shape, Type, TypeId, TypeRef, builtin};
