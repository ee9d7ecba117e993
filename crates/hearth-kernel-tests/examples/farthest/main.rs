//! A scheduler that is worse on purpose (`farthest.bpf.c`), or with `nearest` the same without its fault, until it is
//! interrupted: what a comparison of schedulers has to tell apart, to be believed.
//!
//! ```text
//! cargo build --release --workspace --examples
//! PATH=target/release/examples:$PATH hearth emulate --timed --rounds 6 --schedulers 'farthest nearest,farthest' -- ...
//! ```

#![allow(clippy::print_stdout)]

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use std::mem::MaybeUninit;
use std::thread;
use std::time::Duration;

#[allow(warnings, clippy::all)]
mod skeleton {
    include!(concat!(env!("OUT_DIR"), "/farthest.skel.rs"));
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut object = MaybeUninit::uninit();
    let to_nearest = match std::env::args().nth(1).as_deref() {
        None => false,
        Some("nearest") => true,
        Some(other) => return Err(format!("{other:?} is not known; say nearest, or nothing").into()),
    };
    let mut open = skeleton::FarthestSkelBuilder::default().open(&mut object)?;
    open.maps.rodata_data.as_deref_mut().ok_or("its constants are missing")?.to_nearest = to_nearest;
    let mut skeleton = open.load()?;
    let _link = skeleton.maps.farthest_ops.attach_struct_ops()?;
    println!("every wake-up goes to the {} idle CPU", if to_nearest { "nearest" } else { "farthest" });
    loop {
        thread::sleep(Duration::from_secs(3600));
    }
}
