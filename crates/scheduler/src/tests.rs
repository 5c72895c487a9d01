//! Decision tables: a cluster in a few lines, and the plan for it.

mod fit;
mod fixture;
mod gang;
mod podgroup;
mod queue;
