//! Embedded Kubernetes-compatible API server: durable store, watch, HTTPS, garbage collection.

pub mod store;
