//! Why pages cannot follow their processes on a machine.

use hearth_policy::pages::PlannerError;

/// What a machine cannot do.
#[derive(Debug, thiserror::Error)]
pub enum MigrationError {
    /// Pages of more nodes than there may be.
    #[error("pages cannot be followed: {0}; leave them with --pages none")]
    Planner(#[from] PlannerError),
    /// Nowhere to move pages to.
    #[error(
        "only one memory node has memory, so no page can be nearer to a CPU than it is; nothing was started"
    )]
    OneNode,
}

impl From<MigrationError> for hearth_host::Error {
    fn from(error: MigrationError) -> Self {
        Self::Impossible(Box::new(error))
    }
}
