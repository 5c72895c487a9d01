//! Runs pods as ordinary processes of this machine.
//!
//! ```text
//!   access       what pods need to talk to the API server
//!   agent        the node: takes pods from the server, one worker each
//!   decide       what should happen to a pod now: pure
//!   exec         commands that run beside a container's own
//!   attach       connections with what a container runs itself
//!   health       probes, and hooks around a container's life
//!   simulated    nodes that only pretend
//!   materials    environment and volumes: pure, but for writing files
//!   supervisor   the process that is the parent of all containers, and survives this one
//!   logs         what containers wrote
//!   pod, status  the parts of a Pod that a node reads and writes
//!   container    one attempt at a container, and its record
//!   mark         by which the processes of a container are known
//!   set_aside    files that no object owns any more
//!   tree         removes what containers leave in their directories
//!   within       opens parts of volumes
//!   usage        how much of the machine pods use
//! ```

mod access;
mod agent;
mod attach;
pub mod container;
pub mod decide;
mod exec;
pub mod health;
mod logs;
mod mark;
pub mod materials;
pub mod pod;
pub mod set_aside;
pub mod simulated;
pub mod status;
pub mod supervisor;
mod tree;
mod usage;
mod within;

pub use access::ServerAccess;
pub use agent::{NO_MOUNTS, Node, NodeConfig, capacity, forget};
pub use exec::{ExecError, Output, Session};
pub use logs::{LogError, LogStream};
pub use supervisor::Mode;
pub use tree::remove_tree;
pub use usage::{Amount, Usage};
