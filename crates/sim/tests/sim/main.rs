//! The simulator tested: what ships keeps its promises, equal cases lead to equal runs, and planted faults are found.

mod determinism;
mod mutants;
mod scenarios;
mod writes;
