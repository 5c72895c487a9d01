//! The properties P1 to P12 as functions over snapshots, plans and store history.
