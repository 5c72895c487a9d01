//! Who else acts in the world, besides the processes under test: users and a node. They talk to the server directly, and
//! nothing goes wrong between them and it.

mod kubelet;
mod user;

pub(crate) use kubelet::Kubelet;
pub(crate) use user::User;
