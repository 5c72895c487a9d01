//! A deterministic world for the controllers: virtual time, faults, properties checked at every revision.
