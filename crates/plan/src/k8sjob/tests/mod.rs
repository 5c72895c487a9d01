//! Decision tables: Jobs and their pods in a few words, and what follows. The rows are upstream's own cases.

mod attempts;
mod concerned;
mod counting;
mod ending;
mod fixture;
mod indexed;
mod limits;
mod release;
mod reports;
mod running;
mod said;
mod upstream;
