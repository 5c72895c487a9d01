//! What a node may lack, apart from room. These do not depend on the node, so no search allocates one.

use krafla_why::Lack;

pub(crate) static CORDONED: Lack = Lack::Cordoned;
pub(crate) static EXISTING_ANTI_AFFINITY: Lack = Lack::ExistingAntiAffinity;
pub(crate) static LEAVING: Lack = Lack::Leaving;
pub(crate) static NOT_READY: Lack = Lack::NotReady;
pub(crate) static POD_AFFINITY: Lack = Lack::PodAffinity;
pub(crate) static POD_ANTI_AFFINITY: Lack = Lack::PodAntiAffinity;
pub(crate) static PORTS: Lack = Lack::Ports;
pub(crate) static SELECTOR: Lack = Lack::Selector;
pub(crate) static SPREAD: Lack = Lack::Spread;
pub(crate) static SPREAD_LABEL: Lack = Lack::SpreadLabel;
pub(crate) static TAINTS: Lack = Lack::Taints;
