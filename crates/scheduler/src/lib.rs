//! The gang scheduler: which pods go where, decided as a pure function.
