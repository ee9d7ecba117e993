//! `hearth top`: what runs on each CPU, as it happens.

mod cache_fair;
mod draw;
mod rows;

use crate::linux::start;
use anyhow::anyhow;
use cache_fair::CacheFair;
use clap::Args;
use draw::Screen;
use hearth_command::failure::{Failure, Outcome};
use hearth_command::output;
use hearth_host::kernel;
use hearth_host::threads::{self, Sample};
use hearth_linux::Error;
use hearth_linux::daemon::{self, Status};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use rows::History;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

pub const EXAMPLES: &str = "\
Keys: q ends, c hides or shows CPUs, arrows and page keys scroll the tasks.

Columns: runs: the task that had most of the CPU; from: where a task ran before it came to its CPU;
moves: how often it moved inside a cache domain, inside a node, between nodes since it began, or,
where the scheduler does not tell, how often it was seen on another CPU;
credit: how often it went on by its credit, past one that had had less CPU time; slice: how long it kept a CPU on average;
waits: the share of the time for which it waited for one. Those of CPUs are explained by `status`.

Of cache-fair tasks, if there are any: ipc: instructions for each cycle; fair ipc: what they would be with a fair
part of the cache; share: what it gets of its own share of CPU time; given: cycles that it got beyond that, or
gave up, so far; confidence: whether its estimate is acted on, or why not.";

/// The scheduler is asked about so many tasks, the busiest.
const ASKED: usize = 200;

/// The width of text in a pipe.
const TEXT_WIDTH: u16 = 110;

#[derive(Debug, Args)]
pub struct Arguments {
    /// Print one screen as text, and end
    #[arg(long)]
    once: bool,
    /// How often to look, for example 500ms
    #[arg(short, long, default_value = "1s", value_parser = interval)]
    interval: Duration,
}

fn interval(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(time) if (Duration::from_millis(50)..=Duration::from_secs(3600)).contains(&time) => Ok(time),
        Ok(_) => Err("give from 50ms to 1h".to_owned()),
        Err(_) => Err("give a number with its unit, such as 500ms or 2s".to_owned()),
    }
}

pub fn run(arguments: &Arguments) -> Outcome {
    let mut watch = Watch::begin()?;
    if arguments.once {
        std::thread::sleep(arguments.interval);
        watch.look()?;
        return output::print(&text(&watch.screen)?);
    }
    if !std::io::stdout().is_terminal() {
        return Err(Failure::Input(anyhow!("this is no terminal; print one screen as text with --once")));
    }
    // Restores the terminal on the way out, after a panic too.
    let mut terminal = ratatui::try_init().map_err(Failure::failed)?;
    let result = follow(&mut terminal, &mut watch, arguments.interval);
    ratatui::restore();
    result
}

fn follow(terminal: &mut ratatui::DefaultTerminal, watch: &mut Watch, interval: Duration) -> Outcome {
    let mut next = Instant::now() + interval.min(Duration::from_millis(300));
    loop {
        terminal.draw(|frame| watch.screen.draw(frame)).map_err(Failure::failed)?;
        if event::poll(next.saturating_duration_since(Instant::now())).map_err(Failure::failed)? {
            if let Event::Key(key) = event::read().map_err(Failure::failed)?
                && key.kind == KeyEventKind::Press
                && watch.screen.press(key.code, key.modifiers)
            {
                return Ok(());
            }
            continue;
        }
        watch.look()?;
        next = Instant::now() + interval;
    }
}

impl Screen {
    /// Answers a key; true if it ends `top`.
    fn press(&mut self, key: KeyCode, modifiers: KeyModifiers) -> bool {
        let last = self.tasks.len().saturating_sub(1);
        match key {
            KeyCode::Char('q') | KeyCode::Esc => return true,
            KeyCode::Char('c') if modifiers.contains(KeyModifiers::CONTROL) => return true,
            KeyCode::Char('c') => self.show_cpus = !self.show_cpus,
            KeyCode::Down | KeyCode::Char('j') => self.skip = (self.skip + 1).min(last),
            KeyCode::Up | KeyCode::Char('k') => self.skip = self.skip.saturating_sub(1),
            KeyCode::PageDown => self.skip = (self.skip + 20).min(last),
            KeyCode::PageUp => self.skip = self.skip.saturating_sub(20),
            KeyCode::Home => self.skip = 0,
            _ => {}
        }
        false
    }
}

/// The last look, and what is shown of it.
struct Watch {
    sample: Sample,
    status: Option<Status>,
    history: History,
    screen: Screen,
}

impl Watch {
    fn begin() -> Result<Self, Failure> {
        let sample = threads::sample(None);
        let status = ask()?;
        let mut history = History::default();
        history.note(&sample);
        let screen = Screen { head: head(status.as_ref()), show_cpus: true, ..Screen::default() };
        Ok(Self { sample, status, history, screen })
    }

    fn look(&mut self) -> Outcome {
        let sample = threads::sample(Some(&self.sample));
        let status = ask()?;
        self.history.note(&sample);
        self.screen.tasks = rows::tasks(&self.sample, &sample, &self.history);
        let shown: Vec<i32> = self.screen.tasks.iter().take(ASKED).map(|task| task.tid).collect();
        // Only root may ask what single tasks do; the others see what `/proc` tells.
        if let Ok(Some(known)) = daemon::ask_tasks(&daemon::run_folder(), &shown) {
            rows::refine(&mut self.screen.tasks, &known.tasks);
        }
        self.screen.cpus = rows::cpus(&self.screen.tasks, self.status.as_ref(), status.as_ref());
        let isolation = status.as_ref().and_then(|status| status.isolation.as_ref());
        self.screen.cache_fair = isolation.and_then(|isolation| CacheFair::of(isolation, &sample));
        self.screen.head = head(status.as_ref());
        self.screen.skip = self.screen.skip.min(self.screen.tasks.len().saturating_sub(1));
        self.sample = sample;
        self.status = status;
        Ok(())
    }
}

/// The daemon's status. Without the right to ask, `top` shows what `/proc` tells.
fn ask() -> Result<Option<Status>, Failure> {
    match daemon::ask_status(&daemon::run_folder()) {
        Err(Error::Host(hearth_host::Error::File { source, .. }))
            if source.kind() == std::io::ErrorKind::PermissionDenied =>
        {
            Ok(None)
        }
        result => result.map_err(start::failure),
    }
}

fn head(status: Option<&Status>) -> String {
    match status {
        Some(status) => {
            let what =
                status.only.as_ref().map_or(String::new(), |only| format!(", only {}", only.display()));
            let up = humantime::format_duration(Duration::from_secs(status.up_s as u64));
            match &status.policy {
                Some(policy) => format!("Hearth: policy {policy}{what}, for {up}"),
                None => {
                    let moves = if status.services.contains_key(hearth_migration::NAME) {
                        "moves pages"
                    } else {
                        "runs"
                    };
                    format!("the kernel's own scheduler; Hearth {moves} beside it{what}, for {up}")
                }
            }
        }
        None => match kernel::loaded_scheduler() {
            Some(name) if name.starts_with("hearth") => "Hearth; run as root to see its counts".to_owned(),
            Some(name) => format!("the sched_ext scheduler {name}"),
            None => "the kernel's own scheduler".to_owned(),
        },
    }
}

/// One screen, as high as it needs to be.
fn text(screen: &Screen) -> Result<String, Failure> {
    let mut terminal =
        Terminal::new(TestBackend::new(TEXT_WIDTH, screen.height())).map_err(Failure::failed)?;
    terminal.draw(|frame| screen.draw(frame)).map_err(Failure::failed)?;
    let buffer = terminal.backend().buffer();
    let line = |y: u16| -> String {
        let line: String = (0..buffer.area.width).map(|x| buffer[(x, y)].symbol()).collect();
        line.trim_end().to_owned() + "\n"
    };
    Ok((0..buffer.area.height).map(line).collect())
}

#[cfg(test)]
mod tests {
    use super::rows::{CpuRow, Moves, TaskRow};
    use super::*;

    fn screen() -> Screen {
        let task = |tid: i32, cpu: usize| TaskRow {
            tid,
            name: format!("task-{tid}"),
            cpu,
            from: Some(7),
            moves: Moves::Counted([12, 3, 1]),
            by_credit: Some(5),
            switches: 12.0,
            slice_ms: Some(8.25),
            share: 0.5,
            waiting: 0.1,
        };
        Screen {
            head: "Hearth: policy fair".into(),
            cpus: vec![
                CpuRow {
                    cpu: 0,
                    runs: Some(task(10, 0)),
                    rates: Some([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]),
                },
                CpuRow { cpu: 1, runs: None, rates: None },
            ],
            tasks: (10..14).map(|tid| task(tid, 0)).collect(),
            cache_fair: None,
            skip: 0,
            show_cpus: true,
        }
    }

    #[test]
    fn one_screen_as_text_has_every_cpu_and_task() {
        insta::assert_snapshot!(text(&screen()).unwrap(), @r"
        Hearth: policy fair

         cpu runs                  share  from     kept      own   domain  foreign   direct  preempt     idle     late
           0 10 task-10             50 %     7      1/s      2/s      3/s      4/s      5/s      6/s      7/s      8/s
           1                                 -

            task name              cpu  from         moves   credit  switches       slice   share   waits
              10 task-10             0     7        12/3/1        5      12/s     8.25 ms    50 %    10 %
              11 task-11             0     7        12/3/1        5      12/s     8.25 ms    50 %    10 %
              12 task-12             0     7        12/3/1        5      12/s     8.25 ms    50 %    10 %
              13 task-13             0     7        12/3/1        5      12/s     8.25 ms    50 %    10 %
        ");
    }

    #[test]
    fn pages_are_said_to_move_where_they_do() {
        let head = |services: &str| {
            let text = format!(
                r#"{{"schema":1,"version":"1","pid":1,"policy":null,"only":null,"up_s":7.0,"cpus":[]{services}}}"#
            );
            head(Some(&serde_json::from_str(&text).unwrap()))
        };
        assert_eq!(head(""), "the kernel's own scheduler; Hearth runs beside it, for 7s");
        assert_eq!(
            head(r#","pages":{}"#),
            "the kernel's own scheduler; Hearth moves pages beside it, for 7s"
        );
    }

    #[test]
    fn cache_fair_tasks_have_a_table_below_the_others() {
        let cache_fair = CacheFair::of(&cache_fair::tests::status(), &cache_fair::tests::sample());
        let shown = text(&Screen { cache_fair, ..screen() }).unwrap();
        let (_, below) = shown.split_once("task-13").unwrap();
        insta::assert_snapshot!(below.split_once('\n').unwrap().1, @r"

        cache-fair: 3 tasks; best-effort: /batch has 75.0 %
           task name              ipc fair ipc   share     given confidence
              9                  0.50     0.62 125.0 %    +1.5 G strong
             11                  0.50     0.62 100.0 %    +1.5 G strong
              5                  0.50        - 100.0 %    +1.5 G weak: it may always miss more than its co-runners
        ");
    }

    #[test]
    fn keys_scroll_hide_and_end() {
        let mut screen = screen();
        let none = KeyModifiers::NONE;
        assert!(!screen.press(KeyCode::PageDown, none));
        assert_eq!(screen.skip, 3);
        screen.press(KeyCode::Up, none);
        screen.press(KeyCode::Char('c'), none);
        assert_eq!((screen.skip, screen.show_cpus), (2, false));
        assert!(!text(&screen).unwrap().contains("task-11"));
        assert!(screen.press(KeyCode::Char('q'), none));
        assert!(screen.press(KeyCode::Char('c'), KeyModifiers::CONTROL));
    }

    #[test]
    fn any_size_of_terminal_can_be_drawn() {
        for (width, height) in [(1, 1), (20, 3), (80, 5), (300, 100)] {
            let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
            terminal.draw(|frame| screen().draw(frame)).unwrap();
            let cache_fair = CacheFair::of(&cache_fair::tests::status(), &cache_fair::tests::sample());
            let screen = Screen { cache_fair, ..screen() };
            terminal.draw(|frame| screen.draw(frame)).unwrap();
        }
    }
}
