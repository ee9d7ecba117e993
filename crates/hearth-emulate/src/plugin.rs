//! The plugin that QEMU loads: where it is, and what it is told.

use crate::EmulateError;
use crate::counts::{Region, Report, SCHEMA};
use serde::Deserialize;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

const LIBRARY: &str = "libhearth_emulate_plugin.so";
/// Names the library where it is not beside the command.
pub const VARIABLE: &str = "HEARTH_EMULATE_PLUGIN";

/// The library: as `HEARTH_EMULATE_PLUGIN` says, or beside this program.
///
/// # Errors
/// It is not there.
pub fn library() -> Result<PathBuf, EmulateError> {
    let told = env::var_os(VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from);
    let beside = || env::current_exe().ok().and_then(|program| Some(program.parent()?.join(LIBRARY)));
    let Some(path) = told.clone().or_else(beside) else {
        return Err(EmulateError::NoPlugin(format!("this program's folder is not known; set {VARIABLE}")));
    };
    if path.is_file() {
        return Ok(path);
    }
    let mend = if told.is_some() {
        format!("{VARIABLE} names it; unset it, or name the library")
    } else {
        format!("run `make build`, or name the library in {VARIABLE}")
    };
    Err(EmulateError::NoPlugin(format!("QEMU's plugin {} is missing: {mend}", path.display())))
}

/// What the plugin is told, by name: the file of a machine, where to write, whether what CPUs do drives the clock,
/// and the MiB of each node. It leaves nothing to chance; the seed is there to tell runs apart.
pub fn arguments(
    machine: &Path,
    out: &Path,
    is_timed: bool,
    seed: u64,
    node_mib: &[usize],
) -> [(&'static str, String); 5] {
    let sizes: Vec<String> = node_mib.iter().map(usize::to_string).collect();
    [
        ("machine", machine.display().to_string()),
        ("out", out.display().to_string()),
        ("mode", if is_timed { "timed" } else { "counts" }.to_owned()),
        ("seed", seed.to_string()),
        ("node_mib", sizes.join(":")),
    ]
}

/// What a report of any format has.
#[derive(Deserialize)]
struct Format {
    schema: u32,
}

/// The picoseconds of a cycle and the counts of all regions, or what is wrong with them.
pub(crate) fn read(out: &Path) -> Result<(u64, Vec<Region>), String> {
    let text = fs::read(out).map_err(|error| format!("{}: {error}", out.display()))?;
    let Format { schema } = serde_json::from_slice(&text).map_err(|error| error.to_string())?;
    if schema != SCHEMA {
        return Err(format!(
            "its format is {schema}, and this program reads {SCHEMA}; build both together: make build"
        ));
    }
    let report: Report = serde_json::from_slice(&text).map_err(|error| error.to_string())?;
    Ok((report.cycle_ps, report.regions))
}

/// The region of a name, or what is wrong with it.
pub(crate) fn region(regions: &[Region], name: &str) -> Result<Region, String> {
    let found = regions.iter().find(|region| region.name == name);
    let region = found.ok_or_else(|| format!("there is no region {name:?}"))?;
    if !region.is_ended {
        return Err(format!("region {name:?} has no end, so what came after the command was counted, too"));
    }
    Ok(region.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    const REGION: &str = "command-1";

    fn read_text(text: &str) -> Result<(u64, Region), String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), text).unwrap();
        let (cycle_ps, regions) = read(file.path())?;
        Ok((cycle_ps, region(&regions, REGION)?))
    }

    fn report(schema: u32, name: &str) -> String {
        written(schema, Region { name: name.into(), is_ended: true, ..Region::default() })
    }

    fn written(schema: u32, region: Region) -> String {
        let report = Report { schema, machine: "m".into(), cycle_ps: 500, regions: vec![region] };
        serde_json::to_string(&report).unwrap()
    }

    #[test]
    fn the_commands_region_is_read() {
        let (cycle_ps, region) = read_text(&report(SCHEMA, REGION)).unwrap();
        assert_eq!((cycle_ps, region.name.as_str()), (500, REGION));
    }

    #[test]
    fn what_is_wrong_with_a_report_is_told() {
        assert!(read_text(&report(SCHEMA + 1, REGION)).unwrap_err().contains("make build"));
        let of_old = r#"{"schema":1,"regions":[{"name":"a"}]}"#;
        assert!(read_text(of_old).unwrap_err().contains("make build"));
        assert!(read_text(&report(SCHEMA, "other")).unwrap_err().contains("no region"));
        let endless = Region { name: REGION.into(), ..Region::default() };
        assert!(read_text(&written(SCHEMA, endless)).unwrap_err().contains("no end"));
        assert!(read_text("{").unwrap_err().contains("EOF"));
        assert!(read(Path::new("/no/such/file")).unwrap_err().contains("/no/such/file"));
    }

    #[test]
    fn memory_of_nodes_is_told_in_order() {
        let arguments = arguments(Path::new("/m.toml"), Path::new("/o.json"), true, 7, &[512, 0, 1024]);
        assert!(arguments.contains(&("node_mib", "512:0:1024".to_owned())));
        assert!(
            arguments.contains(&("seed", "7".to_owned()))
                && arguments.contains(&("mode", "timed".to_owned()))
        );
    }
}
