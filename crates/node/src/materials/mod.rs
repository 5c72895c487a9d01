//! What a container needs besides its command: environment, files, and where they come from.
//!
//! ```text
//!   references   which ConfigMaps and Secrets a pod names
//!   sources      what they hold, fetched by the shell
//!   fields       fields of the pod, requests and limits, as text
//!   environment  variables, and `$(NAME)` in commands and arguments
//!   volumes      directories and files
//! ```
//!
//! All of it is pure but [`volumes::write`]: the shell fetches the sources, and everything else follows from
//! them.

pub mod environment;
pub mod fields;
pub mod references;
pub mod sources;
pub mod volumes;
