//! Decision tables: a cluster in a few lines, and the plan for it.

mod fit;
mod fixture;
mod gang;
mod laws;
mod podgroup;
mod preempt;
mod queue;
mod reclaim;
mod told;
