//! Cryptography that several parts need: TLS settings of clients, and ssh key pairs.

pub mod ssh;
pub mod tls;
