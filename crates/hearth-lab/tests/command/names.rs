//! What comes with Hearth can be listed and shown; what does not is refused with a hint.

use crate::{complaint, json, output};

#[test]
fn everything_that_is_listed_can_be_shown() {
    for (plural, kind) in [
        ("machines", "machine"),
        ("policies", "policy"),
        ("page-policies", "page-policy"),
        ("workloads", "workload"),
        ("experiments", "experiment"),
    ] {
        let list = json(&["list", plural, "--json"]);
        assert_eq!(list["schema"], 1);
        let entries = list[plural.replace('-', "_")].as_array().unwrap();
        assert!(!entries.is_empty(), "{plural}");
        for entry in entries {
            let name = entry["name"].as_str().unwrap();
            assert!(!entry["description"].as_str().unwrap().is_empty(), "{name}");
            assert!(output(&["list", plural]).contains(name));
            let shown = json(&["show", kind, name, "--json"]);
            assert_eq!(shown["text"].as_str().unwrap(), output(&["show", kind, name]));
        }
    }
}

#[test]
fn a_shown_machine_is_a_machine_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mine.toml");
    std::fs::write(&file, output(&["show", "machine", "sgi-4d340"])).unwrap();
    let machine = file.to_str().unwrap();
    let compared = json(&[
        "compare",
        "--scale",
        "0.01",
        "--policies",
        "standard",
        "--machine",
        machine,
        "--json",
        "matrix",
    ]);
    assert_eq!(compared["machine"], "sgi-4d340");
}

#[test]
fn a_misspelt_name_is_answered_with_the_nearest() {
    for (arguments, hint) in [
        (&["compare", "matirx"][..], "did you mean matrix?"),
        (&["compare", "matrix+choleski"], "did you mean cholesky?"),
        (&["compare", "--policies", "standard,hevy"], "did you mean heavy?"),
        (&["compare", "--policies", "fair+maks"], "did you mean masks?"),
        (&["compare", "--machine", "sgi-4d34"], "did you mean sgi-4d340?"),
        (&["show", "policy", "lihgt"], "did you mean light?"),
        (&["show", "page-policy", "freze"], "did you mean freeze?"),
        (&["show", "machine", "zzz"], "choose from sgi-4d340"),
        (&["lab", "Q9"], "choose from T"),
    ] {
        let complaint = complaint(arguments, 2);
        assert!(complaint.contains(hint) && complaint.lines().count() == 1, "{arguments:?}: {complaint}");
    }
}

#[test]
fn a_program_that_has_no_cpu_on_the_machine_is_refused() {
    let complaint = complaint(&["compare", "--machine", "sgi-4d340", "containers"], 2);
    assert!(complaint.contains("spin#8 has none of the machine's 4 CPUs"), "{complaint}");
}

#[test]
fn an_unknown_program_in_a_staggered_workload_is_answered_with_its_file_line_and_entry() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("jobs.toml");
    let text =
        "name = \"jobs\"\ndescription = \"a test\"\n\n[[jobs]]\nprogram = \"ocaen\"\nstart = \"0 s\"\n";
    std::fs::write(&file, text).unwrap();
    let complaint = complaint(&["compare", file.to_str().unwrap()], 2);
    let wanted = "jobs.toml:5: jobs[0].program: no program is called \"ocaen\"; did you mean `ocean`?";
    assert!(complaint.contains(wanted), "{complaint}");
}

#[test]
fn a_page_policy_for_recorded_runs_says_so_and_is_refused_where_programs_run() {
    assert!(output(&["list", "page-policies"]).contains("for recorded runs only"));
    let shown = output(&["show", "page-policy", "post-facto"]);
    assert!(shown.contains("`hearth lab M` replays") && shown.contains("refused"), "{shown}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mine.toml");
    std::fs::write(&file, shown.replace("\"post-facto\"\ndesc", "\"mine\"\ndesc")).unwrap();
    let complaint = |policies: &str| complaint(&["compare", "--policies", policies, "matrix"], 2);
    for (policies, name) in
        [("both+post-facto".to_owned(), "post-facto"), (format!("both+{}", file.display()), "mine")]
    {
        let said = complaint(&policies);
        let wanted = format!("page policy {name}: it needs a recorded run");
        assert!(said.contains(&wanted) && said.contains("choose from none, competitive"), "{said}");
    }
}
