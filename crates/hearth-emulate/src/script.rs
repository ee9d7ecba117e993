//! The shell script that a guest runs, and what it says.

use crate::files::KERNEL_CONFIG;
use crate::scheduler::Other;
use crate::{EmulateError, Job, Scheduler, measures};
use anstream::adapter::strip_str;
use hearth_guest::Output;
use std::collections::BTreeMap;
use std::path::Path;

/// Names the files that the guest has of this host, a line each.
pub(crate) const LIST_FILE: &str = "/hearth-files";
/// Where Hearth is in the guest, apart from the command's programs.
pub(crate) const HEARTH: &str = "/hearth";

/// What it means if the guest's kernel kills what runs before the command.
const OUT_OF_MEMORY: &str = "the guest has too little memory for its files; raise --memory";

/// Names the file into which a command writes what it measured itself: in its environment.
const MEASURES: &str = "HEARTH_MEASURES";
const MEASURES_FILE: &str = "/hearth-measures";

/// What the command says on standard error, and what runs before it.
const COMMAND_SAID: &str = "/hearth-said";
const BEFORE_SAID: &str = "/hearth-said-before";
/// How many lines of what was said are told if it fails.
const LAST_LINES: usize = 20;
/// Seeds let the command begin this much later, in microseconds: less than a tick, and in another
/// place of it for each of many seeds.
const LATER_US: u64 = 337;
const TICK_US: u64 = 4000;
/// Between the seeds of two rounds.
const SEEDS: u64 = 1_000_003;
/// So many rounds away are those of a job that is run again. A guest has fewer.
const AGAIN: u64 = 1000;

/// What the scheduler says when it starts.
const START: &str = "start";

/// How long what a boot or a start has begun may take to end. Idle time of a guest is skipped.
const SETTLE_S: u32 = 2;

/// How long what was started before the command may take to end when it is told to.
const END_S: u32 = 5;

/// Has `khugepaged` look at one page and then sleep for 49 days, where there is one. Every 10 s it would take
/// programs' memory away from them for as long as it needs to make huge pages; beside tasks that never sleep, whose
/// weight is 60 times its own, that is a second or more, in which a program waits, in some runs and not in others.
const QUIET: &str = "if cd /sys/kernel/mm/transparent_hugepage/khugepaged 2>/dev/null; then \
                     echo 1 >pages_to_scan; echo 4294967295 >scan_sleep_millisecs; cd /; fi";

/// The knob of the kernel's cache-aware scheduling.
const CACHE_KNOB: &str = "/sys/kernel/debug/sched/llc_balancing/enabled";
const STATE: &str = "/sys/kernel/sched_ext/state";
/// Counts how often a scheduler was loaded.
const LOADED: &str = "/sys/kernel/sched_ext/enable_seq";
/// What another scheduler prints.
const SCHEDULER_SAID: &str = "/hearth-scheduler-said";
/// How long another scheduler may take to be loaded, in the guest's time, and after its command has ended.
const LOAD_S: u32 = 120;
const LOAD_AFTER_S: u32 = 5;

/// The command and how it is run.
pub(crate) struct Work<'a> {
    pub(crate) command: &'a [String],
    /// What a shell runs before it, under the same scheduler, and uncounted.
    pub(crate) before: Option<&'a str>,
    pub(crate) folder: &'a Path,
    pub(crate) path: &'a str,
    pub(crate) copies: usize,
    /// The caches are to be as one run of it leaves them.
    pub(crate) is_warm: bool,
    /// How much memory of each node is to be free in any order.
    pub(crate) shuffled_mib: usize,
}

/// The region in which the command runs, by its round.
pub(crate) fn region(round: u32) -> String {
    format!("command-{round}")
}

/// Where Hearth's policy is in the guest.
pub(crate) const POLICY_FILE: &str = "/hearth-policy.toml";

/// What varies from round to round, from seed to seed, and where all is drawn again.
fn seed_of(job: &Job, round: u32) -> u64 {
    let draw = u64::from(round.saturating_sub(1)) + if job.is_again { AGAIN } else { 0 };
    job.seed + SEEDS * draw
}

/// Has the job's scheduler take over, in a guest that has nothing of the command yet. The script ends if it does not.
pub(crate) fn start(job: &Job, path: &str) -> String {
    format!(
        "cd / && umount -l /tmp; mkdir -p /tmp /root\n{QUIET}\nsection {START}\n{}\n",
        steps(&job.scheduler, path).start
    )
}

/// The script of a job, behind that. Each of its sections ends with a `status=` line; those of a round have its number
/// behind their names.
pub(crate) fn text(work: &Work, job: &Job) -> String {
    // Files of the host may be below /tmp, which the guest's own would hide.
    let begin = format!(
        "cd / && mkdir -p {folder}\n\
         section symbols\nhearth-region symbols && hearth-region counters; echo status=$?\n",
        folder = quoted(&work.folder.to_string_lossy())
    );
    let lasts = steps(&job.scheduler, work.path).lasts;
    let rounds: String =
        job.rounds.clone().map(|round| round_text(work, round, seed_of(job, round), &lasts)).collect();
    begin + &rounds
}

fn round_text(work: &Work, round: u32, seed: u64, lasts: &str) -> String {
    let words: Vec<String> = work.command.iter().map(|word| quoted(word)).collect();
    let (copies, later_us, region) = (work.copies, seed * LATER_US % TICK_US, region(round));
    let caches = match (round, work.is_warm) {
        (0, _) => "uncounted",
        (_, true) => "warm",
        (_, false) => "cold",
    };
    let run = format!("/bin/hearth-region run {region} {copies} {seed} {caches} -- {}", words.join(" "));
    let (before, after) = work.before.map_or_else(Default::default, |text| before_steps(work, round, text));
    let shuffled_mib = work.shuffled_mib;
    format!(
        // Who has shuffled before holds memory until then.
        "killall hearth-region 2>/dev/null\n\
         section shuffle-{round}\nhearth-region shuffle {shuffled_mib} {seed} {LIST_FILE}; echo status=$?\n\
         rm -f {MEASURES_FILE}\n{before}\
         sleep {SETTLE_S}; usleep {later_us}\n\
         section {region}\n{}\necho status=$?\n\
         section said-{round}\n{}\n{after}\
         section measures-{round}\ncat {MEASURES_FILE} 2>/dev/null; echo status=0\n\
         section lasts-{round}\n{lasts}\n",
        with_surroundings(work, &run, COMMAND_SAID),
        last_lines(COMMAND_SAID)
    )
}

/// A command where the user's is: in its folder, with its programs and variables. What it says on standard error goes
/// to a file.
fn with_surroundings(work: &Work, command: &str, said: &str) -> String {
    let (folder, path) = (quoted(&work.folder.to_string_lossy()), quoted(work.path));
    format!(
        "(cd {folder}; PATH={path} HOME=/root {MEASURES}={MEASURES_FILE}; export PATH HOME {MEASURES}\n\
         exec {command}) </dev/null >/dev/null 2>{said}"
    )
}

/// Prints the last lines of a file, of which the very last may have no end.
fn last_lines(file: &str) -> String {
    format!("tail -n {LAST_LINES} {file}; [ -z \"$(tail -c 1 {file})\" ] || echo")
}

/// What prepares the command, in a session of its own; and what ends what it left running, softly at first.
fn before_steps(work: &Work, round: u32, text: &str) -> (String, String) {
    let run = with_surroundings(work, &format!("setsid sh -c {}", quoted(text)), BEFORE_SAID);
    let before = format!(
        "section before-{round}\n{run} &\nbefore=$!; wait $before; code=$?\n\
         [ $code = 0 ] || {{ {}; }}\necho status=$code\n",
        last_lines(BEFORE_SAID)
    );
    let after = format!(
        "kill -TERM -- -$before 2>/dev/null; left={END_S}0\n\
         while kill -0 -- -$before 2>/dev/null && [ $left -gt 0 ]; do usleep 100000; left=$((left - 1)); done\n\
         kill -KILL -- -$before 2>/dev/null\n"
    );
    (before, after)
}

struct Steps {
    start: String,
    lasts: String,
}

/// Has the scheduler take over; and says whether it still schedules.
fn steps(scheduler: &Scheduler, path: &str) -> Steps {
    let knob = |on: u32| format!("echo {on} 2>&1 >{CACHE_KNOB}; grep -qx {on} {CACHE_KNOB}; echo status=$?");
    let always = "echo status=0".to_owned();
    match scheduler {
        // A kernel without the knob has none to switch off.
        Scheduler::Kernel => Steps {
            start: format!("if [ -e {CACHE_KNOB} ]; then {}; else echo status=0; fi", knob(0)),
            lasts: always,
        },
        Scheduler::KernelCache => Steps { start: knob(1), lasts: always },
        Scheduler::Hearth(_) => Steps {
            // Its planner loads programs of its own when the scheduler runs already.
            start: format!(
                "{HEARTH} start --policy {POLICY_FILE}; started=$?; echo status=$started\n\
                 [ $started = 0 ] || exit 1\n\
                 for try in $(seq 100); do {HEARTH} status | grep -q 'last step' && break; usleep 100000; done"
            ),
            lasts: format!(
                "if grep -qx enabled {STATE}; then echo status=0; else {HEARTH} status; echo status=1; fi"
            ),
        },
        Scheduler::Other(other) => other_steps(other, path),
    }
}

/// A command that stays, or leaves a process behind. What it said, and the kernel of it, is told where it does not
/// start, and where it did not last: the kernel ended it, or it was loaded anew.
fn other_steps(other: &Other, path: &str) -> Steps {
    let words: Vec<String> = other.command.iter().map(|word| quoted(word)).collect();
    let (command, path) = (words.join(" "), quoted(path));
    let told = format!(
        "{}; dmesg | grep sched_ext | tail -n +$((said + 1)) | tail -n {LAST_LINES}",
        last_lines(SCHEDULER_SAID)
    );
    Steps {
        start: format!(
            "said=$(dmesg | grep -c sched_ext)\n\
             mkdir -p /boot; [ ! -e {KERNEL_CONFIG} ] || ln -sf {KERNEL_CONFIG} {KERNEL_CONFIG}-$(uname -r)\n\
             (PATH={path}; HOME=/root; export PATH HOME; exec {command}) </dev/null >{SCHEDULER_SAID} 2>&1 &\n\
             scheduler=$! left={LOAD_S}0\n\
             until grep -qx enabled {STATE} || [ $left -le 0 ]; do\n\
             usleep 100000; left=$((left - 1))\n\
             kill -0 $scheduler 2>/dev/null || [ $left -le {LOAD_AFTER_S}0 ] || left={LOAD_AFTER_S}0\n\
             done\n\
             loaded=$(cat {LOADED})\n\
             if grep -qx enabled {STATE}; then echo status=0; else\n\
             if kill -0 $scheduler 2>/dev/null; then echo \"(it runs, and has loaded none in {LOAD_S} s)\"\n\
             else wait $scheduler; echo \"(it ended with exit code $?, and has loaded none)\"; fi\n\
             {told}; echo status=1; exit 1; fi\n\
             sleep {SETTLE_S}"
        ),
        lasts: format!(
            "{told}\n\
             grep -qx enabled {STATE} && [ \"$(cat {LOADED})\" = \"$loaded\" ]; echo status=$?"
        ),
    }
}

/// A word for a shell, whatever is in it.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// What a guest said of a run that went well.
#[derive(Debug, PartialEq)]
pub(crate) struct Said {
    /// The checksum of the files' page frames.
    pub(crate) frames: String,
    /// The last lines that another scheduler printed, and the kernel of it.
    pub(crate) scheduler: Vec<String>,
    /// What the command measured itself.
    pub(crate) measures: BTreeMap<String, f64>,
}

/// Whether all went well in a round, of what the guest printed.
pub(crate) fn check(
    output: &Output,
    work: &Work,
    scheduler: &Scheduler,
    round: u32,
) -> Result<Said, EmulateError> {
    let name = scheduler.name();
    let of = |section: &str| format!("{section}-{round}");
    let (started, start) = status(output, START, &name)?;
    if started != 0 {
        return Err(EmulateError::NoScheduler { scheduler: name, last_lines: plain(start) });
    }
    let (ended, lasts) = status(output, &of("lasts"), &name)?;
    let lasts = plain(lasts);
    if ended != 0 {
        return Err(EmulateError::SchedulerEnded { scheduler: name, last_lines: lasts });
    }
    if work.before.is_some() {
        let (code, last_lines) = status(output, &of("before"), &name)?;
        if code != 0 {
            return Err(EmulateError::Before { scheduler: name, code, last_lines });
        }
    }
    let (code, _) = status(output, &region(round), &name)?;
    if code != 0 {
        let last_lines = output.section(&of("said")).map(|said| said.lines.clone()).unwrap_or_default();
        return Err(EmulateError::Command { scheduler: name, code, last_lines });
    }
    counted(output, "symbols", &name)?;
    let said = counted(output, &of("shuffle"), &name)?;
    let frames = said.iter().find_map(|line| line.strip_prefix("frames="));
    let what = || format!("the guest does not say where its files are: {}", said.join(" | "));
    let nowhere = || EmulateError::Counts { scheduler: name.clone(), what: what() };
    let frames = frames.map(str::to_owned).ok_or_else(nowhere)?;
    let (_, lines) = status(output, &of("measures"), &name)?;
    let measures = measures::read(&lines).map_err(|what| EmulateError::Measures { scheduler: name, what })?;
    let scheduler = if matches!(scheduler, Scheduler::Other(_)) { lasts } else { Vec::new() };
    Ok(Said { frames, scheduler, measures })
}

/// Lines without the colours that some schedulers give them, terminal or not.
fn plain(lines: Vec<String>) -> Vec<String> {
    lines.iter().map(|line| strip_str(line).to_string()).collect()
}

/// What was said in a section without which nothing can be counted.
fn counted(output: &Output, section: &str, scheduler: &str) -> Result<Vec<String>, EmulateError> {
    let (status, said) = status(output, section, scheduler)?;
    if status == 0 {
        return Ok(said);
    }
    let is_killed = said.iter().any(|line| line.contains("Killed"));
    let what = if is_killed { OUT_OF_MEMORY.to_owned() } else { said.join("\n") };
    Err(EmulateError::Counts { scheduler: scheduler.to_owned(), what })
}

/// The status of a section, and its other lines.
fn status(output: &Output, section: &str, scheduler: &str) -> Result<(i32, Vec<String>), EmulateError> {
    let guest = |source| EmulateError::Guest { scheduler: scheduler.to_owned(), source };
    let section = output.section(section).map_err(guest)?;
    let is_status = |line: &&String| line.starts_with("status=");
    let status = section.lines.iter().rfind(is_status).and_then(|line| line["status=".len()..].parse().ok());
    let others = section.lines.iter().filter(|line| !is_status(line)).cloned().collect();
    status.map(|status| (status, others)).ok_or_else(|| {
        guest(hearth_guest::GuestError::Line { what: "no status=".into(), line: section.lines.join(" | ") })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Files;
    use hearth_guest::Section;
    use hearth_policy::Policy;

    fn work(command: &[String]) -> Work<'_> {
        let (folder, path) = (Path::new("/"), "/usr/bin:/bin");
        Work { command, before: None, folder, path, copies: 1, is_warm: false, shuffled_mib: 8 }
    }

    fn script(command: &[&str], scheduler: &Scheduler, seed: u64) -> String {
        let command: Vec<String> = command.iter().map(|&word| word.to_owned()).collect();
        let folder = Path::new("/home/it's here");
        let work = Work { copies: 3, shuffled_mib: 32, folder, ..work(&command) };
        let job = Job::one(scheduler.clone(), seed);
        start(&job, work.path) + &text(&work, &job)
    }

    fn hearth() -> Scheduler {
        Scheduler::Hearth(Box::new(Policy::load("light").unwrap()))
    }

    #[test]
    fn words_reach_the_command_as_they_are() {
        let text = script(&["sh", "-c", "echo '$x' \"y\""], &Scheduler::Kernel, 2);
        assert!(text.contains("run command-1 3 2 cold -- 'sh' '-c' 'echo '\\''$x'\\'' \"y\"')"), "{text}");
        assert!(text.contains("cd '/home/it'\\''s here';"), "{text}");
        assert!(text.contains("sleep 2; usleep 674\n"), "{text}");
    }

    #[test]
    fn each_round_and_each_draw_has_a_seed_of_its_own() {
        let command = ["true".to_owned()];
        let job = Job { rounds: 0..=2, ..Job::one(Scheduler::Kernel, 3) };
        let again = Job { is_again: true, ..job.clone() };
        let [once, twice] = [&job, &again].map(|job| text(&work(&command), job));
        for (round, seed) in [(0, 3), (1, 3), (2, 3 + SEEDS)] {
            assert!(once.contains(&format!("shuffle 8 {seed} ")), "{once}");
            let caches = if round == 0 { "uncounted" } else { "cold" };
            assert!(once.contains(&format!("run command-{round} 1 {seed} {caches} ")), "{once}");
        }
        assert!(twice.contains(&format!("run command-2 1 {} ", 3 + SEEDS * (AGAIN + 1))), "{twice}");
    }

    #[test]
    fn a_shell_reads_every_script() {
        for scheduler in [Scheduler::Kernel, Scheduler::KernelCache, hearth(), other()] {
            let text = script(&["true"], &scheduler, 1);
            let read = std::process::Command::new("sh").args(["-n", "-c", &text]).output().unwrap();
            assert!(read.status.success(), "{text}\n{}", String::from_utf8_lossy(&read.stderr));
        }
    }

    #[test]
    fn what_comes_before_is_uncounted_and_ended_behind_the_command() {
        let command = ["true".to_owned()];
        let text =
            text(&Work { before: Some("it's me &"), ..work(&command) }, &Job::one(Scheduler::Kernel, 1));
        let places = [
            "section before-1",
            "setsid sh -c 'it'\\''s me &'",
            "section command-1",
            "kill -TERM -- -$before",
            "section lasts-1",
        ]
        .map(|part| text.find(part).unwrap_or_else(|| panic!("no {part}: {text}")));
        assert!(places.is_sorted(), "{text}");
        let read = std::process::Command::new("sh").args(["-n", "-c", &text]).output().unwrap();
        assert!(read.status.success(), "{text}");
    }

    #[test]
    fn only_hearth_is_started() {
        assert!(script(&["true"], &hearth(), 1).contains("/hearth start --policy"));
        assert!(!script(&["true"], &Scheduler::Kernel, 1).contains("/hearth start"));
        let text = script(&["true"], &other(), 1);
        assert!(!text.contains("/hearth start"));
        assert!(text.contains("exec '/opt/it'\\''s mine/scx' '-s' '5000')"), "{text}");
        assert!(script(&["true"], &Scheduler::KernelCache, 1).contains("echo 1 2>&1 >"));
    }

    fn other() -> Scheduler {
        let command = ["/opt/it's mine/scx", "-s", "5000"].map(str::to_owned).into();
        Scheduler::Other(Other { name: "scx -s 5000".into(), command, files: Files::default() })
    }

    fn section(name: &str, lines: &[String]) -> Section {
        Section { name: name.into(), lines: lines.to_vec() }
    }

    fn with_status(name: &str, status: i32, said: &str) -> Section {
        section(name, &[said.to_owned(), format!("status={status}")])
    }

    fn output(start: i32, code: i32, lasts: i32) -> Output {
        Output {
            sections: vec![
                with_status("symbols", 0, "pid=1 comm=2"),
                with_status("shuffle-1", 0, "frames=1f"),
                with_status("start", start, "no BTF"),
                section("command-1", &[format!("status={code}")]),
                section("said-1", &["oh dear".to_owned()]),
                with_status("measures-1", 0, "p99_us 12"),
                with_status("lasts-1", lasts, "a stall"),
            ],
            status: 0,
            kernel_log: Vec::new(),
            powered_off: true,
        }
    }

    #[test]
    fn what_went_wrong_first_is_told_with_what_was_said() {
        let check = |output: &Output, scheduler| check(output, &work(&[]), &scheduler, 1);
        let error = |output: Output| check(&output, hearth()).unwrap_err().to_string();
        let coloured = Output {
            sections: vec![with_status("start", 1, "\u{1b}[31merror\u{1b}[0m no BTF")],
            ..output(1, 0, 0)
        };
        assert!(error(coloured).ends_with("error no BTF"));
        let said = |scheduler: Vec<String>| Said {
            frames: "1f".into(),
            scheduler,
            measures: [("p99_us".to_owned(), 12.0)].into(),
        };
        assert_eq!(check(&output(0, 0, 0), hearth()).unwrap(), said(Vec::new()));
        assert_eq!(check(&output(0, 0, 0), other()).unwrap(), said(vec!["a stall".into()]));
        assert!(
            error(output(1, 0, 0)).contains("hearth:light did not start in the guest; it had said:\nno BTF")
        );
        let text = error(output(0, 3, 0));
        assert!(text.contains("exit code 3") && text.ends_with("oh dear"), "{text}");
        assert!(error(output(0, 0, 1)).contains("a stall"));
        let mut killed = output(0, 0, 0);
        killed.sections[1].lines = vec!["Killed".into(), "status=137".into()];
        assert!(error(killed).contains("raise --memory"));
        assert!(error(output(0, 3, 1)).contains("a stall"));
    }
}
