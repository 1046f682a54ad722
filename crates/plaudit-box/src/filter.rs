//! The seccomp filter: which system calls a boxed program may make, as a BPF program.
//!
//! The list names what is refused; system calls newer than the last one reviewed do not exist for the program. The filter
//! is a binary search over ranges of numbers: the kernel emulates it once for each of about 900 system calls when it is
//! installed, so that a list of comparisons would cost more than the namespaces.

use crate::Isolation;
use crate::sys::Errno;

/// The last system call that was reviewed (`mseal`); the numbers of newer ones are equal on all architectures.
const LAST: u32 = 462;

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xc000_00b7;

const KILL: u32 = libc::SECCOMP_RET_KILL_PROCESS;
const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
const DENY: u32 = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
const ABSENT: u32 = libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32;

/// The namespaces of `clone` and `unshare`, with that of time.
const NAMESPACES: u32 = 0x7e02_0080;

/// What happens to a system call.
#[derive(Clone, Copy, PartialEq)]
enum Action {
    /// The same, whatever its arguments are.
    Always(u32),
    /// Refused when an argument has one of these bits.
    UnlessBits(u8, u32),
    /// Refused unless an argument has these bits, and refused when it has one of the namespaces.
    OnlyThreads,
    /// Refused when an argument is one of these.
    UnlessEqual(u8, &'static [u32]),
    /// Refused unless an argument is this.
    OnlyEqual(u8, u32),
    /// Refused unless an argument is the process itself; its number is put in later.
    OnlySelf(u8),
    /// A pair of sockets that stay connected with each other, so that they can reach nobody else; refused otherwise.
    OnlyConnectedPair,
}

/// System calls refused in both isolations: they reach other processes, the kernel's configuration, memory that no limit
/// counts, or facilities with a record of escapes.
const REFUSED: &[libc::c_long] = &[
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_process_mrelease,
    libc::SYS_kcmp,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_reboot,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_syslog,
    // They make the host write all that it has to write.
    libc::SYS_sync,
    libc::SYS_syncfs,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
    libc::SYS_personality,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_fanotify_mark,
    libc::SYS_inotify_init1,
    libc::SYS_inotify_add_watch,
    libc::SYS_memfd_create,
    libc::SYS_memfd_secret,
    // The host has one pool of such requests for everybody (`fs.aio-max-nr`).
    libc::SYS_io_setup,
    libc::SYS_io_destroy,
    libc::SYS_io_submit,
    libc::SYS_io_cancel,
    libc::SYS_io_getevents,
    SYS_IO_PGETEVENTS,
    // A pipe would keep whole huge pages that are no longer mapped.
    libc::SYS_vmsplice,
    // Filters are compiled into a pool of the host, and one could end the program by other signals than its own.
    libc::SYS_seccomp,
    libc::SYS_socket,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_connect,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    libc::SYS_setpriority,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setscheduler,
    libc::SYS_sched_setattr,
    libc::SYS_sched_setaffinity,
    libc::SYS_ioprio_set,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    libc::SYS_mbind,
    libc::SYS_set_mempolicy,
    libc::SYS_set_mempolicy_home_node,
    libc::SYS_get_robust_list,
    libc::SYS_mknodat,
    // Without capabilities these fail anyway; but as root a box's namespace knows the engine's user.
    libc::SYS_setuid,
    libc::SYS_setgid,
    libc::SYS_setreuid,
    libc::SYS_setregid,
    libc::SYS_setresuid,
    libc::SYS_setresgid,
    libc::SYS_setfsuid,
    libc::SYS_setfsgid,
    libc::SYS_setgroups,
];

#[cfg(target_arch = "x86_64")]
const SYS_IO_PGETEVENTS: libc::c_long = 333;
#[cfg(target_arch = "aarch64")]
const SYS_IO_PGETEVENTS: libc::c_long = 292;

/// The same, where only x86 has them.
#[cfg(target_arch = "x86_64")]
const REFUSED_HERE: &[libc::c_long] = &[
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
    libc::SYS_uselib,
    libc::SYS__sysctl,
    libc::SYS_inotify_init,
    libc::SYS_mknod,
    libc::SYS_lookup_dcookie,
];
#[cfg(target_arch = "aarch64")]
const REFUSED_HERE: &[libc::c_long] = &[libc::SYS_lookup_dcookie];

/// Refused with Landlock alone besides: signals to others, and changes of files that Landlock does not see.
const REFUSED_IN_B: &[libc::c_long] = &[
    libc::SYS_tkill,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    SYS_FCHMODAT2,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    libc::SYS_utimensat,
    libc::SYS_truncate,
    libc::SYS_fallocate,
];
const SYS_FCHMODAT2: libc::c_long = 452;

#[cfg(target_arch = "x86_64")]
const REFUSED_HERE_IN_B: &[libc::c_long] = &[
    libc::SYS_fork,
    libc::SYS_vfork,
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_futimesat,
    libc::SYS_creat,
];
#[cfg(target_arch = "aarch64")]
const REFUSED_HERE_IN_B: &[libc::c_long] = &[];

/// System calls that do not exist for the program, so that libraries fall back to others.
const ABSENT_CALLS: &[libc::c_long] = &[
    libc::SYS_clone3,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_openat2,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_pidfd_send_signal,
];
/// `cachestat`, `map_shadow_stack`, `listmount`, `statmount`, `lsm_*`: nothing that a program needs.
const ABSENT_NUMBERS: &[u32] = &[451, 453, 457, 458, 459, 460, 461];

/// `F_SETOWN`, `F_SETSIG`, `F_SETOWN_EX`, `F_NOTIFY`: they make the kernel send signals to a process of the caller's choice.
/// `F_SETLEASE` makes others wait for a file. `F_SETPIPE_SZ` makes a pipe hold more than is counted for a descriptor.
const REFUSED_COMMANDS: &[u32] = &[8, 10, 15, 1024, 1026, 1031];
/// `SO_SNDBUF`, `SO_RCVBUF` and their forced forms make a socket hold more than is counted; `SO_ATTACH_FILTER`, `SO_ATTACH_BPF` and
/// those of `SO_REUSEPORT` bring filters.
const REFUSED_OPTIONS: &[u32] = &[7, 8, 32, 33, 26, 50, 51, 52];
/// `PR_SET_PDEATHSIG`: a program that clears its death signal would outlive the engine. `PR_SET_SECCOMP`: as `seccomp`.
/// `PR_SET_DUMPABLE`: it would hide its descriptors from the supervisor.
const REFUSED_CONTROLS: &[u32] =
    &[libc::PR_SET_PDEATHSIG as u32, libc::PR_SET_SECCOMP as u32, libc::PR_SET_DUMPABLE as u32];
/// The same by `ioctl`, and input put into a terminal.
const OWNER_REQUESTS: &[u32] = &[0x8901, 0x8902, 0x5412, 0x541c];

/// A filter, and where the number of the process stands in it.
#[derive(Clone)]
pub(crate) struct Filter {
    pub(crate) program: Vec<libc::sock_filter>,
    own: Vec<usize>,
}

impl Filter {
    /// The filter of an isolation. `landlock` is the version of Landlock: before the third it does not see that a file is cut.
    pub(crate) fn new(isolation: Isolation, landlock: u32) -> Self {
        let mut actions = vec![Action::Always(ALLOW); LAST as usize + 1];
        let mut set = |numbers: &[libc::c_long], action: Action| {
            for number in numbers {
                if let Some(slot) = actions.get_mut(*number as usize) {
                    *slot = action;
                }
            }
        };
        set(REFUSED, Action::Always(DENY));
        set(REFUSED_HERE, Action::Always(DENY));
        set(ABSENT_CALLS, Action::Always(ABSENT));
        for number in ABSENT_NUMBERS {
            set(&[libc::c_long::from(*number)], Action::Always(ABSENT));
        }
        set(&[libc::SYS_socketpair], Action::OnlyConnectedPair);
        set(&[libc::SYS_prlimit64], Action::OnlyEqual(0, 0));
        set(&[libc::SYS_prctl], Action::UnlessEqual(0, REFUSED_CONTROLS));
        set(&[libc::SYS_fcntl], Action::UnlessEqual(1, REFUSED_COMMANDS));
        set(&[libc::SYS_setsockopt], Action::UnlessEqual(2, REFUSED_OPTIONS));
        set(&[libc::SYS_ioctl], Action::UnlessEqual(1, OWNER_REQUESTS));
        set(&[libc::SYS_clone], Action::UnlessBits(0, NAMESPACES));
        if isolation != Isolation::Namespaces {
            set(REFUSED_IN_B, Action::Always(DENY));
            set(REFUSED_HERE_IN_B, Action::Always(DENY));
            set(&[libc::SYS_clone], Action::OnlyThreads);
            set(&[libc::SYS_kill, libc::SYS_tgkill], Action::OnlySelf(0));
            if landlock < 3 {
                #[cfg(target_arch = "x86_64")]
                set(&[libc::SYS_open], Action::UnlessBits(1, libc::O_TRUNC as u32));
                set(&[libc::SYS_openat], Action::UnlessBits(2, libc::O_TRUNC as u32));
            }
        }
        let mut ranges: Vec<(u32, Action)> = Vec::new();
        for (number, action) in actions.into_iter().enumerate() {
            if ranges.last().is_none_or(|(_, last)| *last != action) {
                ranges.push((number as u32, action));
            }
        }
        // The x32 calls of x86 are other doors to the same rooms; everything else above is newer than this list.
        ranges.push((LAST + 1, Action::Always(ABSENT)));
        ranges.push((0x4000_0000, Action::Always(KILL)));

        let mut filter = Self { program: Vec::new(), own: Vec::new() };
        const NUMBER: u32 = 0;
        const ARCH: u32 = 4;
        filter.load(ARCH);
        filter.jump(libc::BPF_JEQ, ARCHITECTURE, 1, 0);
        filter.answer(KILL);
        filter.load(NUMBER);
        filter.search(&ranges);
        filter
    }

    /// Puts the number of the process where the filter compares with it.
    pub(crate) fn set_own_process(program: &mut [libc::sock_filter], own: &[usize], process: u32) {
        for at in own {
            if let Some(statement) = program.get_mut(*at) {
                statement.k = process;
            }
        }
    }

    pub(crate) fn own(&self) -> &[usize] {
        &self.own
    }

    fn statement(&mut self, code: u32, jt: u8, jf: u8, k: u32) {
        self.program.push(libc::sock_filter { code: code as u16, jt, jf, k });
    }

    fn load(&mut self, offset: u32) {
        self.statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, offset);
    }

    /// Loads the low half of an argument.
    fn load_argument(&mut self, index: u8) {
        self.load(16 + 8 * u32::from(index));
    }

    fn jump(&mut self, test: u32, value: u32, yes: u8, no: u8) {
        self.statement(libc::BPF_JMP | test | libc::BPF_K, yes, no, value);
    }

    fn answer(&mut self, answer: u32) {
        self.statement(libc::BPF_RET | libc::BPF_K, 0, 0, answer);
    }

    /// Finds the range of a number, and answers as its action says.
    fn search(&mut self, ranges: &[(u32, Action)]) {
        match ranges {
            [] => self.answer(KILL),
            [(_, action)] => self.act(*action),
            _ => {
                let (left, right) = ranges.split_at(ranges.len() / 2);
                let pivot = right.first().map_or(0, |(start, _)| *start);
                self.jump(libc::BPF_JGE, pivot, 0, 1);
                let over = self.program.len();
                self.statement(libc::BPF_JMP | libc::BPF_JA, 0, 0, 0);
                self.search(left);
                let distance = (self.program.len() - over - 1) as u32;
                self.program[over].k = distance;
                self.search(right);
            }
        }
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Always(answer) => self.answer(answer),
            Action::UnlessBits(index, bits) => {
                self.load_argument(index);
                self.jump(libc::BPF_JSET, bits, 0, 1);
                self.answer(DENY);
                self.answer(ALLOW);
            }
            Action::OnlyThreads => {
                self.load_argument(0);
                self.jump(libc::BPF_JSET, NAMESPACES, 1, 0);
                self.jump(libc::BPF_JSET, libc::CLONE_THREAD as u32, 1, 0);
                self.answer(DENY);
                self.answer(ALLOW);
            }
            Action::UnlessEqual(index, values) => {
                self.load_argument(index);
                for value in values {
                    self.jump(libc::BPF_JEQ, *value, 0, 1);
                    self.answer(DENY);
                }
                self.answer(ALLOW);
            }
            Action::OnlyEqual(index, value) => {
                self.load_argument(index);
                self.jump(libc::BPF_JEQ, value, 1, 0);
                self.answer(DENY);
                self.answer(ALLOW);
            }
            Action::OnlySelf(index) => {
                self.own.push(self.program.len() + 1);
                self.act(Action::OnlyEqual(index, u32::MAX));
            }
            Action::OnlyConnectedPair => {
                self.load_argument(0);
                self.jump(libc::BPF_JEQ, libc::AF_UNIX as u32, 1, 0);
                self.answer(DENY);
                self.load_argument(1);
                self.statement(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, 0, 0, 0xf);
                self.jump(libc::BPF_JEQ, libc::SOCK_STREAM as u32, 2, 0);
                self.jump(libc::BPF_JEQ, libc::SOCK_SEQPACKET as u32, 1, 0);
                self.answer(DENY);
                self.answer(ALLOW);
            }
        }
    }
}

/// Installs a filter for the calling process. Takes no memory.
pub(crate) fn install(program: &[libc::sock_filter]) -> Result<(), Errno> {
    let header = libc::sock_fprog { len: program.len() as u16, filter: program.as_ptr().cast_mut() };
    let address = &raw const header as usize;
    let mode = libc::SECCOMP_SET_MODE_FILTER as usize;
    crate::sys::call(libc::SYS_seccomp, [mode, 0, address, 0, 0, 0]).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a filter as the kernel does, on a call with its arguments.
    fn answer(filter: &Filter, architecture: u32, number: u32, arguments: [u32; 3]) -> u32 {
        let (mut at, mut value) = (0, 0_u32);
        loop {
            let statement = filter.program[at];
            let (code, k) = (u32::from(statement.code), statement.k);
            at += 1;
            let jump = |yes: bool| usize::from(if yes { statement.jt } else { statement.jf });
            match code {
                _ if code == libc::BPF_LD | libc::BPF_W | libc::BPF_ABS => {
                    value = match k {
                        0 => number,
                        4 => architecture,
                        k => arguments[(k as usize - 16) / 8],
                    }
                }
                _ if code == libc::BPF_RET | libc::BPF_K => return k,
                _ if code == libc::BPF_JMP | libc::BPF_JA => at += k as usize,
                _ if code == libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K => at += jump(value == k),
                _ if code == libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K => at += jump(value >= k),
                _ if code == libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K => at += jump(value & k != 0),
                _ if code == libc::BPF_ALU | libc::BPF_AND | libc::BPF_K => value &= k,
                _ => panic!("{code}"),
            }
        }
    }

    fn call(filter: &Filter, number: libc::c_long, arguments: [u32; 3]) -> u32 {
        answer(filter, ARCHITECTURE, number as u32, arguments)
    }

    #[test]
    fn refused_calls_are_refused_and_others_are_not() {
        for isolation in [Isolation::Namespaces, Isolation::Landlock] {
            let filter = Filter::new(isolation, 7);
            assert!(filter.program.len() < 4096);
            for number in REFUSED.iter().chain(REFUSED_HERE) {
                assert_eq!(call(&filter, *number, [0; 3]), DENY, "{number}");
            }
            for number in ABSENT_CALLS {
                assert_eq!(call(&filter, *number, [0; 3]), ABSENT, "{number}");
            }
            for number in REFUSED_IN_B.iter().chain(REFUSED_HERE_IN_B) {
                assert_eq!(
                    call(&filter, *number, [0; 3]),
                    if isolation == Isolation::Namespaces { ALLOW } else { DENY },
                    "{number}"
                );
            }
            let allowed = [
                libc::SYS_read,
                libc::SYS_write,
                libc::SYS_mmap,
                libc::SYS_execve,
                libc::SYS_openat,
                libc::SYS_exit_group,
            ];
            for number in allowed {
                assert_eq!(call(&filter, number, [0; 3]), ALLOW, "{number}");
            }
            assert_eq!(answer(&filter, ARCHITECTURE, LAST + 1, [0; 3]), ABSENT);
            assert_eq!(answer(&filter, ARCHITECTURE, 0x4000_0000, [0; 3]), KILL);
            assert_eq!(answer(&filter, 0x4000_0003, 1, [0; 3]), KILL);
        }
    }

    #[test]
    fn arguments_decide() {
        let (a, b) = (Filter::new(Isolation::Namespaces, 7), Filter::new(Isolation::Landlock, 7));
        let (thread, child) = (libc::CLONE_THREAD as u32, libc::SIGCHLD as u32);
        let user = libc::CLONE_NEWUSER as u32;
        assert_eq!(
            [thread, child, user].map(|flags| call(&a, libc::SYS_clone, [flags, 0, 0])),
            [ALLOW, ALLOW, DENY]
        );
        assert_eq!(
            [thread, child, user].map(|flags| call(&b, libc::SYS_clone, [flags, 0, 0])),
            [ALLOW, DENY, DENY]
        );
        assert_eq!(call(&b, libc::SYS_clone, [thread | user, 0, 0]), DENY);
        for filter in [&a, &b] {
            let pair = |family, kind| call(filter, libc::SYS_socketpair, [family, kind, 0]);
            assert_eq!(
                [pair(1, 1), pair(1, 0x80801), pair(1, 5), pair(1, 2), pair(2, 1)],
                [ALLOW, ALLOW, ALLOW, DENY, DENY]
            );
            assert_eq!([0, 1].map(|pid| call(filter, libc::SYS_prlimit64, [pid, 0, 0])), [ALLOW, DENY]);
            assert_eq!([1, 15].map(|option| call(filter, libc::SYS_prctl, [option, 0, 0])), [DENY, ALLOW]);
            assert_eq!(
                [3, 8, 1026, 1031].map(|command| call(filter, libc::SYS_fcntl, [0, command, 0])),
                [ALLOW, DENY, DENY, DENY]
            );
            assert_eq!(
                [2, 7, 33].map(|option| call(filter, libc::SYS_setsockopt, [3, 1, option])),
                [ALLOW, DENY, DENY]
            );
        }
        let mut own = b.clone();
        Filter::set_own_process(&mut own.program, b.own(), 77);
        assert_eq!(
            [77, 78, 0, u32::MAX].map(|pid| call(&own, libc::SYS_kill, [pid, 9, 0])),
            [ALLOW, DENY, DENY, DENY]
        );
        assert_eq!([77, 78].map(|pid| call(&own, libc::SYS_tgkill, [pid, 9, 0])), [ALLOW, DENY]);
        let truncating = libc::O_TRUNC as u32;
        assert_eq!(call(&Filter::new(Isolation::Landlock, 2), libc::SYS_openat, [0, 0, truncating]), DENY);
        assert_eq!(call(&b, libc::SYS_openat, [0, 0, truncating]), ALLOW);
    }
}
