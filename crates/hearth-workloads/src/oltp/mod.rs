use crate::{Built, Description, Kind};
use hearth_sim::memory::Memory;
use hearth_sim::program::Application;
/// x
pub const DESCRIPTION: Description =
    Description { name: "oltp", description: "", kind: Kind::Synthetic, source: "" };
/// x
pub fn build(_: &Memory, _: f64, _: u64) -> Built {
    Built { application: Application::new("oltp"), check: Box::new(|| Ok(())) }
}
pub mod btree;
