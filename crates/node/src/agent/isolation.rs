//! Whether containers can have a view of the file system of their own on this machine. It is tried once, when
//! the first container needs it.

use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::sync::OnceCell;

use super::NodeConfig;
use crate::mark::unmarked;

/// Longer than the trial takes on any machine.
const WITHIN: Duration = Duration::from_secs(60);

#[derive(Default)]
pub(crate) struct Isolation(OnceCell<Result<(), String>>);

impl Isolation {
    /// An error says why not, for people.
    pub(crate) async fn check(&self, config: &NodeConfig) -> Result<(), String> {
        self.0.get_or_init(|| check(config)).await.clone()
    }
}

async fn check(config: &NodeConfig) -> Result<(), String> {
    if !config.isolation {
        return Err("it is switched off".to_owned());
    }
    let scratch = config.root.join("check");
    std::fs::create_dir_all(&scratch).map_err(|error| error.to_string())?;
    let Some((program, arguments)) = config.supervisor.split_first() else {
        return Err("NodeConfig::supervisor names no command".to_owned());
    };
    let mut check = Command::new(program);
    check.args(arguments).arg("check").arg(&scratch).stdin(Stdio::null()).kill_on_drop(true);
    // It is started at once. With the mark of a command it would be killed with what is left of that.
    let check = unmarked(|| check.output());
    match tokio::time::timeout(WITHIN, check).await {
        Ok(Ok(output)) if output.status.success() => Ok(()),
        Ok(Ok(output)) => Err(String::from_utf8_lossy(&output.stdout).trim_end().to_owned()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("the trial took too long".to_owned()),
    }
}
