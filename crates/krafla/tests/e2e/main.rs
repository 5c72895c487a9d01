//! What users do, through the real binary, real kubectl and real processes.

mod kubectl;
mod run;
mod support;
mod survival;
