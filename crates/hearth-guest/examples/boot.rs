//! Boots a guest for a script, and prints what it said:
//! `cargo run -p hearth-guest --example boot -- --file target/x/hearth=/bin/hearth -c 'hearth doctor'`

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::{Parser, ValueEnum};
use hearth_guest::{Guest, Kernel, Mode, Shape};

#[derive(Clone, Copy, ValueEnum)]
enum KernelName {
    Pinned,
    Second,
    Floor,
    Plain,
}

/// Runs a shell script in a real kernel under emulation.
#[derive(Parser)]
struct Options {
    /// The script's text
    #[arg(short = 'c')]
    script: String,
    /// A program of the host to put into the guest, with its shared libraries: HOST=GUEST
    #[arg(long, value_parser = file)]
    file: Vec<(PathBuf, PathBuf)>,
    /// Where to look for shared libraries first
    #[arg(long)]
    libraries: Vec<PathBuf>,
    /// The kernel
    #[arg(long, value_enum, default_value = "pinned")]
    kernel: KernelName,
    /// 64 CPUs in place of 8
    #[arg(long)]
    large: bool,
    /// The memory of each node in MiB, for example 1536,0,512: unequal, without memory, without CPUs
    #[arg(long, value_delimiter = ',')]
    nodes: Vec<usize>,
    /// CPUs that run at once, on a clock that means nothing
    #[arg(long)]
    concurrent: bool,
    /// Also print the kernel's log
    #[arg(long)]
    kernel_log: bool,
    /// Print all that the guest said as JSON
    #[arg(long)]
    json: bool,
    /// When the guest is killed, in seconds
    #[arg(long, default_value_t = 240)]
    limit: u64,
}

fn file(text: &str) -> Result<(PathBuf, PathBuf)> {
    let (host, guest) = text.split_once('=').context("a file is HOST=GUEST")?;
    Ok((host.into(), guest.into()))
}

fn main() -> Result<ExitCode> {
    let options = Options::parse();
    hearth_guest::available()?;
    let kernel = match options.kernel {
        KernelName::Pinned => Kernel::Pinned,
        KernelName::Second => Kernel::Second,
        KernelName::Floor => Kernel::Floor,
        KernelName::Plain => Kernel::Plain,
    };
    let mut guest = Guest::new(kernel)
        .shape(if options.large { Shape::LARGE } else { Shape::SMALL })
        .mode(if options.concurrent { Mode::Concurrent } else { Mode::Deterministic })
        .node_memory_mib(&options.nodes)
        .limit(Duration::from_secs(options.limit));
    for (host, inside) in &options.file {
        guest = guest.program(host, inside, &options.libraries)?;
    }
    let started = Instant::now();
    let output = guest.run(&options.script)?;
    if options.json {
        println!("{}", serde_json::to_string(&output)?);
        return Ok(ExitCode::SUCCESS);
    }
    for section in &output.sections {
        println!("== {}", section.name);
        section.lines.iter().for_each(|line| println!("{line}"));
    }
    if options.kernel_log {
        output.kernel_log.iter().for_each(|line| println!("kernel: {}", line.text));
    } else {
        output.kernel_trouble().iter().for_each(|line| println!("kernel: {line}"));
    }
    let end = if output.powered_off { "" } else { ", without shutting down" };
    println!("status {} after {:.1} s{end}", output.status, started.elapsed().as_secs_f64());
    Ok(ExitCode::from(u8::try_from(output.status).unwrap_or(1)))
}
