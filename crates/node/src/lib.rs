//! Runs pods as ordinary processes of this machine.

pub mod container;
pub mod decide;
pub mod pod;
pub mod status;
pub mod supervisor;
