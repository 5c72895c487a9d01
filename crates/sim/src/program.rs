//! What is being tested: the processes, each with its controllers.

use std::collections::BTreeSet;
use std::sync::Arc;

use krafla_api::Kind;
use krafla_cluster::Client;
use krafla_plan::Controller;

/// What is being tested: the processes that run beside the server.
#[derive(Clone, Debug)]
pub struct Program {
    /// The processes. A crash of one does not touch the others.
    pub parts: Vec<Part>,
}

/// One process.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// Its name in timelines.
    pub name: &'static str,
    /// The controllers that run in it.
    pub controllers: fn() -> Vec<Box<dyn Controller>>,
    /// What it does with its client before using it: nothing, unless a test plants a fault there.
    pub client: fn(Arc<dyn Client>) -> Arc<dyn Client>,
}

impl Part {
    /// The kinds that the process watches.
    pub fn kinds(&self) -> BTreeSet<Kind> {
        let controllers = (self.controllers)();
        controllers.iter().flat_map(|it| it.watches().iter().copied().chain([it.root()])).collect()
    }
}

impl Program {
    /// What ships: the controllers in one process, the scheduler in another.
    pub fn as_shipped() -> Program {
        Program::with_controllers(krafla_plan::controllers)
    }

    /// The same with other controllers.
    pub fn with_controllers(controllers: fn() -> Vec<Box<dyn Controller>>) -> Program {
        let scheduler: fn() -> Vec<Box<dyn Controller>> =
            || vec![Box::new(krafla_scheduler::Scheduler::default())];
        let part = |name, controllers| Part { name, controllers, client: |client| client };
        Program { parts: vec![part("controllers", controllers), part("scheduler", scheduler)] }
    }
}
