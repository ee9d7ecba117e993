//! Stub.
#![allow(missing_docs)]
use std::os::unix::fs::FileExt;
pub fn dir() -> std::path::PathBuf {
    std::env::var_os("HEARTH_DIR")
        .map(Into::into)
        .unwrap_or_else(|| format!("/dev/shm/hearth-{}", rustix::process::geteuid().as_raw()).into())
}
pub struct Leader;
impl Leader {
    pub fn new(dir: &std::path::Path) -> Self {
        use std::os::unix::fs::DirBuilderExt;
        let _ = std::fs::DirBuilder::new().mode(0o700).create(dir);
        Leader
    }
    pub fn step(&mut self) {
        step()
    }
}
fn step() {
    let cpus = 2u32;
    let Ok(entries) = std::fs::read_dir(dir()) else { return };
    let pids: Vec<u32> = entries.flatten().filter_map(|e| e.file_name().to_str()?.parse().ok()).collect();
    for (i, pid) in pids.iter().enumerate() {
        let path = dir().join(pid.to_string());
        if !std::path::Path::new(&format!("/proc/{pid}")).exists() {
            let _ = std::fs::remove_file(path);
            continue;
        }
        let n = pids.len() as u32;
        let mine = (cpus / n + u32::from((i as u32) < cpus % n)).max(1);
        let Ok(f) = std::fs::OpenOptions::new().read(true).write(true).open(path) else { continue };
        let t = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let told = (t.tv_sec as u64) * 1_000_000_000 + t.tv_nsec as u64;
        let mut b = Vec::new();
        b.extend(mine.to_le_bytes());
        b.extend(3u32.to_le_bytes());
        b.extend(told.to_le_bytes());
        let _ = f.write_at(&b, 24);
    }
}
