//! `hearth top`: what runs on each CPU, as it happens.

mod cache_fair;
mod columns;
mod draw;
mod rows;

use crate::linux::start;
use anyhow::anyhow;
use cache_fair::CacheFair;
use clap::Args;
use columns::Column;
use draw::{By, Keys, Places, Screen};
use hearth_command::failure::{Failure, Outcome};
use hearth_command::output;
use hearth_host::kernel;
use hearth_host::threads::{self, Sample};
use hearth_host::ticks::Ticks;
use hearth_linux::Error;
use hearth_linux::daemon::{self, Status};
use hearth_machine::list::show_list;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use rows::History;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

pub const EXAMPLES: &str = "\
Keys: q ends; c puts CPUs together by cache, by memory node, and hides them; s and S sort tasks by the next and the
previous column; / shows only tasks with a text in their name or number; arrows and page keys scroll; ? is this help.

Columns: busy: the part of the time for which a CPU was in use, and steal: for which a hypervisor had taken it;
runs: the task that had most of the CPU; from: where a task ran before it came to its CPU;
moves: how often it moved inside a cache domain, inside a node, between nodes since it began, or,
where the scheduler does not tell, how often it was seen on another CPU;
credit: how often it went on by its credit, past one that had had less CPU time; slice: how long it kept a CPU on average;
waits: the share of the time for which it waited for one. Those of CPUs are explained by `status`. A narrow terminal
has fewer columns.

Of cache-fair tasks, if there are any: ipc: instructions for each cycle; fair ipc: what they would be with a fair
part of the cache; share: what it gets of its own share of CPU time; given: cycles that it got beyond that, or
gave up, so far; confidence: whether its estimate is acted on, or why not.";

/// The scheduler is asked about so many tasks, the busiest.
const ASKED: usize = 200;

/// The width of text in a pipe.
const TEXT_WIDTH: u16 = 124;

#[derive(Debug, Args)]
pub struct Arguments {
    /// Print one screen as text, and end
    #[arg(long)]
    once: bool,
    /// How often to look, for example 500ms
    #[arg(short, long, default_value = "1s", value_parser = interval)]
    interval: Duration,
    /// Put CPUs together, or show none
    #[arg(long, value_enum, default_value_t)]
    by: By,
    /// Sort tasks by this column
    #[arg(long, value_enum, default_value_t, value_name = "COLUMN")]
    sort: Column,
    /// Show only tasks with this in their name or number
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    filter: String,
}

fn interval(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(time) if (Duration::from_millis(50)..=Duration::from_secs(3600)).contains(&time) => Ok(time),
        Ok(_) => Err("give from 50ms to 1h".to_owned()),
        Err(_) => Err("give a number with its unit, such as 500ms or 2s".to_owned()),
    }
}

pub fn run(arguments: &Arguments) -> Outcome {
    let Arguments { by, sort, ref filter, .. } = *arguments;
    let screen = Screen { by, sort, filter: filter.clone(), places: places(), ..Screen::default() };
    let mut watch = Watch::begin(screen)?;
    if arguments.once {
        std::thread::sleep(arguments.interval);
        watch.look()?;
        return output::print(&text(&watch.screen)?);
    }
    if !std::io::stdout().is_terminal() {
        return Err(Failure::Input(anyhow!("this is no terminal; print one screen as text with --once")));
    }
    watch.screen.keys = Some(Keys::Choose);
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
        if key == KeyCode::Char('c') && modifiers.contains(KeyModifiers::CONTROL) {
            return true;
        }
        match self.keys {
            Some(Keys::Help) => self.keys = Some(Keys::Choose),
            Some(Keys::Filter) => self.press_for_filter(key),
            _ => return self.press_to_choose(key),
        }
        false
    }

    fn press_for_filter(&mut self, key: KeyCode) {
        match key {
            KeyCode::Char(letter) => self.filter.push(letter),
            KeyCode::Backspace => drop(self.filter.pop()),
            KeyCode::Esc => self.filter.clear(),
            _ => {}
        }
        if matches!(key, KeyCode::Esc | KeyCode::Enter) {
            self.keys = Some(Keys::Choose);
        }
        self.skip = 0;
    }

    fn press_to_choose(&mut self, key: KeyCode) -> bool {
        let last = self.chosen().len().saturating_sub(1);
        match key {
            KeyCode::Char('q') | KeyCode::Esc => return true,
            KeyCode::Char('c') => self.by = self.by.next(),
            KeyCode::Char('s') => self.sort = self.sort.after(1),
            KeyCode::Char('S') => self.sort = self.sort.before(),
            KeyCode::Char('/') => self.keys = Some(Keys::Filter),
            KeyCode::Char('?' | 'h') => self.keys = Some(Keys::Help),
            KeyCode::Down | KeyCode::Char('j') => self.skip = (self.skip + 1).min(last),
            KeyCode::Up | KeyCode::Char('k') => self.skip = self.skip.saturating_sub(1),
            KeyCode::PageDown => self.skip = (self.skip + 20).min(last),
            KeyCode::PageUp => self.skip = self.skip.saturating_sub(20),
            KeyCode::Home => self.skip = 0,
            KeyCode::End => self.skip = last,
            _ => {}
        }
        false
    }
}

/// Which CPUs share a cache, and which a memory node. Where the host does not tell, CPUs are not put together.
fn places() -> Places {
    let Ok(host) = hearth_machine::host::read("/".as_ref()) else { return Places::default() };
    let nodes = host.nodes.iter().filter(|node| !node.cpus.is_empty());
    Places {
        caches: host.domains().into_iter().map(|cpus| (show_list(&cpus), cpus)).collect(),
        nodes: nodes.map(|node| (node.id.to_string(), node.cpus.clone())).collect(),
    }
}

/// The last look, and what is shown of it.
struct Watch {
    sample: Sample,
    ticks: Ticks,
    status: Option<Status>,
    history: History,
    screen: Screen,
}

impl Watch {
    fn begin(screen: Screen) -> Result<Self, Failure> {
        let (ticks, sample) = (Ticks::now(), threads::sample(None));
        let status = ask()?;
        let mut history = History::default();
        history.note(&sample);
        let screen = Screen { head: head(status.as_ref()), ..screen };
        Ok(Self { sample, ticks, status, history, screen })
    }

    fn look(&mut self) -> Outcome {
        let (ticks, sample) = (Ticks::now(), threads::sample(Some(&self.sample)));
        let status = ask()?;
        self.history.note(&sample);
        self.screen.tasks = rows::tasks(&self.sample, &sample, &self.history);
        let shown: Vec<i32> = self.screen.tasks.iter().take(ASKED).map(|task| task.tid).collect();
        // Only root may ask what single tasks do; the others see what `/proc` tells.
        if let Ok(Some(known)) = daemon::ask_tasks(&daemon::run_folder(), &shown) {
            rows::refine(&mut self.screen.tasks, &known.tasks);
        }
        self.screen.cpus =
            rows::cpus(&self.screen.tasks, [&self.ticks, &ticks], self.status.as_ref(), status.as_ref());
        let isolation = status.as_ref().and_then(|status| status.isolation.as_ref());
        self.screen.cache_fair = isolation.and_then(|isolation| CacheFair::of(isolation, &sample));
        self.screen.head = head(status.as_ref());
        self.screen.skip = self.screen.skip.min(self.screen.chosen().len().saturating_sub(1));
        self.ticks = ticks;
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
    use super::rows::{Busy, Moves, PlaceRow, TaskRow};
    use super::*;

    fn task(tid: i32, cpu: usize) -> TaskRow {
        TaskRow {
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
        }
    }

    fn screen() -> Screen {
        let cpu = |cpu: usize, busy: f64, runs: Option<TaskRow>, rates: Option<[f64; 8]>| {
            let busy = Some(Busy { busy, stolen: 0.0 });
            PlaceRow { name: cpu.to_string(), cpus: vec![cpu], busy, runs, rates }
        };
        let place = |name: &str, cpus: &[usize]| (name.to_owned(), cpus.to_vec());
        Screen {
            head: "Hearth: policy fair".into(),
            cpus: vec![
                cpu(0, 0.55, Some(task(10, 0)), Some([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 71_000.0, 8.0])),
                cpu(1, 0.0, None, Some([1.0; 8])),
                cpu(2, 1.0, Some(TaskRow { share: 0.75, ..task(11, 2) }), None),
            ],
            tasks: (10..14)
                .map(|tid| TaskRow { waiting: f64::from(tid - 9) / 10.0, ..task(tid, 0) })
                .collect(),
            places: Places {
                caches: vec![place("0-1", &[0, 1]), place("2", &[2]), place("9", &[9])],
                nodes: vec![place("0", &[0, 1, 2])],
            },
            ..Screen::default()
        }
    }

    #[test]
    fn one_screen_as_text_has_every_cpu_and_task() {
        insta::assert_snapshot!(text(&screen()).unwrap(), @r"
        Hearth: policy fair

          cpu busy             runs                      share  from    kept     own  domain foreign    idle  direct preempt    late
            0 █████▌      55 % 10 task-10                 50 %     7     1/s     2/s     3/s     4/s     5/s     6/s   71k/s     8/s
            1              0 %                                     -     1/s     1/s     1/s     1/s     1/s     1/s     1/s     1/s
            2 ██████████ 100 % 11 task-11                 75 %     7

            task name              cpu  from         moves   credit  switches       slice  share  waits
              10 task-10             0     7        12/3/1        5      12/s     8.25 ms   50 %   10 %
              11 task-11             0     7        12/3/1        5      12/s     8.25 ms   50 %   20 %
              12 task-12             0     7        12/3/1        5      12/s     8.25 ms   50 %   30 %
              13 task-13             0     7        12/3/1        5      12/s     8.25 ms   50 %   40 %
        ");
    }

    #[test]
    fn cpus_are_put_together_by_cache_and_by_node() {
        let first = |by: By| {
            let shown = text(&Screen { by, ..screen() }).unwrap();
            shown
                .lines()
                .skip(2)
                .take_while(|line| !line.is_empty())
                .map(|line| format!("{line}\n"))
                .collect::<String>()
        };
        insta::assert_snapshot!(first(By::Cache), @r"
        cache busy             runs                      share  from    kept     own  domain foreign    idle  direct preempt    late
          0-1 ██▊         28 % 10 task-10                 50 %     7     2/s     3/s     4/s     5/s     6/s     7/s   71k/s     9/s
            2 ██████████ 100 % 11 task-11                 75 %     7
        ");
        insta::assert_snapshot!(first(By::Node), @r"
         node busy             runs                      share  from    kept     own  domain foreign    idle  direct preempt    late
            0 █████▏      52 % 11 task-11                 75 %     7     2/s     3/s     4/s     5/s     6/s     7/s   71k/s     9/s
        ");
        assert!(!first(By::None).contains("busy"));
    }

    #[test]
    fn time_that_a_hypervisor_took_has_a_column_where_there_is_any() {
        let mut screen = screen();
        screen.cpus[1].busy = Some(Busy { busy: 0.25, stolen: 0.125 });
        let shown = text(&screen).unwrap();
        assert!(shown.contains("steal") && shown.contains("12 %"), "{shown}");
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

    fn press(screen: &mut Screen, keys: &str) {
        for key in keys.chars() {
            let key = if key == '\n' { KeyCode::Enter } else { KeyCode::Char(key) };
            assert!(!screen.press(key, KeyModifiers::NONE));
        }
    }

    #[test]
    fn keys_scroll_and_end() {
        let mut screen = screen();
        let none = KeyModifiers::NONE;
        assert!(!screen.press(KeyCode::PageDown, none));
        assert_eq!(screen.skip, 3);
        screen.press(KeyCode::Up, none);
        assert_eq!(screen.skip, 2);
        assert!(!text(&screen).unwrap().contains("0 % task-11\n"));
        assert!(screen.press(KeyCode::Char('q'), none));
        assert!(screen.press(KeyCode::Char('c'), KeyModifiers::CONTROL));
    }

    #[test]
    fn keys_choose_what_is_put_together_and_sorted() {
        let mut screen = screen();
        let seen: Vec<By> = (0..4).map(|_| (press(&mut screen, "c"), screen.by).1).collect();
        assert_eq!(seen, [By::Cache, By::Node, By::None, By::Cpu]);
        let tids = |screen: &Screen| screen.chosen().iter().map(|task| task.tid).collect::<Vec<_>>();
        assert_eq!(tids(&screen), [10, 11, 12, 13]);
        press(&mut screen, "s");
        assert_eq!((screen.sort, tids(&screen)), (Column::Waits, vec![13, 12, 11, 10]));
        press(&mut screen, "SS");
        assert_eq!((screen.sort, tids(&screen)), (Column::Task, vec![10, 11, 12, 13]));
    }

    #[test]
    fn a_filter_is_typed_kept_and_taken_away() {
        let mut screen = Screen { keys: Some(Keys::Choose), ..screen() };
        press(&mut screen, "/K-12q");
        assert!(screen.chosen().is_empty(), "q is a letter here");
        assert!(!screen.press(KeyCode::Backspace, KeyModifiers::NONE));
        press(&mut screen, "\n");
        assert_eq!(screen.chosen().iter().map(|task| task.tid).collect::<Vec<_>>(), [12]);
        let shown = text(&screen).unwrap();
        assert!(shown.ends_with("/ filter: K-12  \u{2191}\u{2193} scroll  ? help\n"), "{shown}");
        press(&mut screen, "/");
        assert!(!screen.press(KeyCode::Esc, KeyModifiers::NONE), "it ends the filter, not `top`");
        assert_eq!((screen.chosen().len(), screen.keys), (4, Some(Keys::Choose)));
        press(&mut screen, "?");
        assert!(text(&screen).unwrap().starts_with("Keys: q ends"));
        press(&mut screen, "q");
        assert_eq!(screen.keys, Some(Keys::Choose));
    }

    /// What is left out on narrow terminals is never what tasks are sorted by.
    #[test]
    fn any_size_of_terminal_can_be_drawn_and_80_columns_hold_what_they_show() {
        let draw = |screen: &Screen, width: u16, height: u16| {
            let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
            terminal.draw(|frame| screen.draw(frame)).unwrap();
            terminal.backend().to_string()
        };
        for keys in [None, Some(Keys::Choose), Some(Keys::Filter), Some(Keys::Help)] {
            for (width, height) in [(1, 1), (20, 3), (80, 5), (300, 100)] {
                draw(&Screen { keys, ..screen() }, width, height);
                let cache_fair = CacheFair::of(&cache_fair::tests::status(), &cache_fair::tests::sample());
                draw(&Screen { keys, cache_fair, ..screen() }, width, height);
            }
        }
        let narrow = draw(&Screen { sort: Column::Credit, ..screen() }, 80, 24);
        for shown in ["kept", "12/3/1", "credit", "40 %"] {
            assert!(narrow.contains(shown), "{shown}: {narrow}");
        }
        assert!(!narrow.contains("slice"), "{narrow}");
    }
}
