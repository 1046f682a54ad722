//! What the processes of a box use together: CPU time, memory and threads, read from `/proc`.

use std::time::Duration;

/// The sum over all processes of a box.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    pub(crate) cpu: Duration,
    pub(crate) resident: u64,
    pub(crate) tasks: u32,
    /// Whether some process wants a processor or has one.
    pub(crate) runnable: bool,
}

/// At most so many processes are looked at; no box may have more.
const MOST_PROCESSES: usize = 4096;

/// Adds up a process and all its descendants. One that has just ended counts for nothing here.
pub(crate) fn of_tree(process: i32) -> Usage {
    let mut usage = Usage::default();
    let mut open = vec![process];
    let mut seen = 0;
    while let Some(process) = open.pop() {
        seen += 1;
        if seen > MOST_PROCESSES {
            break;
        }
        add(process, &mut usage);
        let Ok(threads) = std::fs::read_dir(format!("/proc/{process}/task")) else { continue };
        for thread in threads.flatten() {
            let Ok(children) = std::fs::read_to_string(thread.path().join("children")) else { continue };
            open.extend(children.split_ascii_whitespace().filter_map(|child| child.parse::<i32>().ok()));
        }
    }
    usage
}

fn add(process: i32, usage: &mut Usage) {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{process}/stat")) else { return };
    // The name stands in parentheses and may contain anything.
    let Some((_, rest)) = stat.rsplit_once(") ") else { return };
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let number = |index: usize| fields.get(index).and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
    let ticks: u64 = (11..=14).map(number).sum();
    // The kernel always reports in hundredths of a second.
    usage.cpu += Duration::from_millis(ticks * 10);
    usage.tasks += number(17) as u32;
    usage.resident += number(21) * page_size();
    usage.runnable |= fields.first() == Some(&"R");
}

fn page_size() -> u64 {
    // SAFETY: takes a number and returns one.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(size).unwrap_or(4096)
}
