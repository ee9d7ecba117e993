use super::*;
use hearth_policy::Target;
use std::process::Command;

fn own() -> i32 {
    std::process::id() as i32
}

fn snapshot(tasks: &[(i32, i32)]) -> Snapshot {
    let mut snapshot = Snapshot::new(0, [(0, 0, 0), (1, 0, 0)]);
    for &(process, parent) in tasks {
        snapshot.add(Task { tid: process, process, parent, ..Task::default() });
    }
    snapshot
}

#[test]
fn children_belong_to_the_program_and_it_ends_with_its_last_process() {
    let mut child = Command::new("sleep").arg("60").spawn().unwrap();
    let pid = child.id() as i32;
    let programs = Programs::default();
    let id = programs.ask(Asks::Set, None, &[own()]).unwrap();
    let mut both = snapshot(&[(pid, own()), (own(), 1), (1, 0)]);
    programs.follow(&mut both);
    assert_eq!(both.programs[0].processes, [own(), pid].into());
    // The child has a program of its own: the first one keeps the parent alone.
    let other = programs.ask(Asks::Gang, Some(1), &[pid]).unwrap();
    programs.follow(&mut both);
    let of = |snapshot: &Snapshot, place: usize| snapshot.programs[place].processes.clone();
    assert_eq!((of(&both, 0), of(&both, 1)), ([own()].into(), [pid].into()));
    child.kill().unwrap();
    child.wait().unwrap();
    let mut one = snapshot(&[(own(), 1)]);
    programs.follow(&mut one);
    assert_eq!(programs.list().iter().map(|program| program.id).collect::<Vec<_>>(), [id]);
    assert!(matches!(programs.forget(other), Err(Refused::NoProgram(id)) if id == other));
    programs.forget(id).unwrap();
}

#[test]
fn a_set_may_be_made_before_its_processes() {
    let programs = Programs::default();
    let id = programs.ask(Asks::Set, Some(1), &[]).unwrap();
    let mut empty = snapshot(&[(own(), 1)]);
    programs.follow(&mut empty);
    assert!(empty.programs[0].processes.is_empty());
    assert!(matches!(programs.bind(id, &[i32::MAX]), Err(Refused::NoProcess(i32::MAX))));
    assert!(matches!(programs.bind(id + 1, &[own()]), Err(Refused::NoProgram(other)) if other == id + 1));
    programs.bind(id, &[own()]).unwrap();
    let mut one = snapshot(&[(own(), 1)]);
    programs.follow(&mut one);
    let plan = Plan {
        parts: vec![vec![1], vec![0]],
        tasks: [(own(), Target { part: Some(0), ..Target::default() })].into(),
        ..Plan::default()
    };
    programs.note(&one, &plan);
    let status = &programs.list()[0];
    assert_eq!((status.tasks, &status.cpus, &status.rows), (1, &vec![1], &Vec::new()));
}
