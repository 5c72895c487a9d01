//! Runs pods as ordinary processes of this machine.
