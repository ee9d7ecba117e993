//! What several tests need and one makes, also where each test is a process.

use std::any::Any;
use std::env;
use std::fs::{self, File};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::OnceLock;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// A value that the first test that asks for it makes; those that ask meanwhile wait. Where making it panics, all
/// do.
pub struct Once<T> {
    name: &'static str,
    value: OnceLock<T>,
}

impl<T: Serialize + DeserializeOwned> Once<T> {
    /// Not made yet; no other has this name.
    pub const fn named(name: &'static str) -> Self {
        Self { name, value: OnceLock::new() }
    }

    /// The value.
    pub fn get(&self, make: impl FnOnce() -> T) -> &T {
        self.value.get_or_init(|| once(self.name, make))
    }
}

/// Where the processes of a run of tests keep what they share, below the folder of `tools/test`; nothing if the
/// tests are one process.
fn shared_folder() -> Option<PathBuf> {
    let run = env::var("NEXTEST_RUN_ID").ok()?;
    let folder = env::var_os("HEARTH_TEST_FOLDER").map_or_else(env::temp_dir, PathBuf::from);
    let folder = folder.join(format!("hearth-tests-{run}"));
    fs::create_dir_all(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    Some(folder)
}

/// The value of a name, made once in a run of the tests. A test that is tried again makes it again.
///
/// # Panics
/// Where making it panics, or did in another test.
pub fn once<T: Serialize + DeserializeOwned>(name: &str, make: impl FnOnce() -> T) -> T {
    let Some(folder) = shared_folder() else { return make() };
    let attempt = env::var("NEXTEST_ATTEMPT").unwrap_or_default();
    let place = folder.join(format!("{name}-{attempt}"));
    let lock = File::create(place.with_extension("lock")).unwrap();
    lock.lock().unwrap();
    let made: Result<T, String> = match fs::read(&place) {
        Ok(text) => serde_json::from_slice(&text).unwrap(),
        Err(_) => {
            let made = catch_unwind(AssertUnwindSafe(make)).map_err(|panic| words(&*panic));
            fs::write(&place, serde_json::to_vec(&made).unwrap()).unwrap();
            made
        }
    };
    made.unwrap_or_else(|said| panic!("{said}"))
}

fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked").to_owned()
}
