//! Decision tables: a pod and what its containers did as text, the decision as text.

mod fixture;
mod health;
mod report;
mod restart;
mod sidecars;
mod start;
mod stop;
