//! Lua scripts: the steps that must be atomic in Redis.

use redis::{Cmd, Script};

/// Claims a question and counts its call, unless another asks it, it is answered, or the budget is spent.
///
/// `KEYS`: the judgment, the claim, what was spent. `ARGV`: who asks, for how many milliseconds, the budget of calls, the
/// budget of cost, what the call may cost, what the sign of life of a process begins with. A sum that cannot be read keeps
/// the purse shut.
const INTEND: &str = "\
if redis.call('EXISTS', KEYS[1]) == 1 then return 'elsewhere' end
local holder = redis.call('GET', KEYS[2])
if holder and holder ~= ARGV[1] and redis.call('EXISTS', ARGV[6] .. holder:match('^[^:]*')) == 1 then
  return 'elsewhere'
end
local function spent(field) return tonumber(redis.call('HGET', KEYS[3], field) or '0') or math.huge end
if ARGV[3] ~= '' and spent('calls') >= tonumber(ARGV[3]) then return 'spent' end
if ARGV[4] ~= '' then
  local cost = spent('cost') + tonumber(ARGV[5])
  if cost > tonumber(ARGV[4]) then return 'spent' end
  if cost + spent('held') > tonumber(ARGV[4]) then return 'depends' end
end
redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[2])
redis.call('HINCRBY', KEYS[3], 'calls', 1)
if tonumber(ARGV[5]) > 0 then redis.call('HINCRBYFLOAT', KEYS[3], 'held', ARGV[5]) end
return 'granted'";

/// Looks for a judgment: it, 1 where a process that is alive asks for it, else nothing.
///
/// `KEYS`: the judgment, the claim. `ARGV`: what the sign of life of a process begins with.
const LOOK: &str = "\
local judgment = redis.call('GET', KEYS[1])
if judgment then return judgment end
local holder = redis.call('GET', KEYS[2])
if holder and redis.call('EXISTS', ARGV[1] .. holder:match('^[^:]*')) == 1 then return 1 end
return false";

/// Keeps a judgment, of which the first counts, and lets go of the claim.
///
/// `KEYS`: the judgment, the claim, the number of judgments. `ARGV`: who asks, the judgment.
const KEEP: &str = "\
if redis.call('SET', KEYS[1], ARGV[2], 'NX') then redis.call('INCR', KEYS[3]) end
if redis.call('GET', KEYS[2]) == ARGV[1] then redis.call('DEL', KEYS[2]) end
return 1";

/// Lets go of a claim, if it is still one's own.
///
/// `KEYS`: the claim. `ARGV`: who asked.
const RELEASE: &str = "\
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
return 1";

/// Puts what a call has cost in the place of what was held for it.
///
/// `KEYS`: what was spent. `ARGV`: what was held, what it cost.
const SPEND: &str = "\
if tonumber(ARGV[1]) > 0 then redis.call('HINCRBYFLOAT', KEYS[1], 'held', '-' .. ARGV[1]) end
if tonumber(ARGV[2]) > 0 then redis.call('HINCRBYFLOAT', KEYS[1], 'cost', ARGV[2]) end
return 1";

const ALL: [&str; 5] = [INTEND, LOOK, KEEP, RELEASE, SPEND];

/// The scripts, by their hashes.
pub(super) struct Scripts {
    pub(super) intend: Script,
    pub(super) look: Script,
    pub(super) keep: Script,
    pub(super) release: Script,
    pub(super) spend: Script,
}

impl Scripts {
    pub(super) fn new() -> Self {
        let [intend, look, keep, release, spend] = ALL.map(Script::new);
        Self { intend, look, keep, release, spend }
    }

    /// What makes a server know all of them.
    pub(super) fn load(pipeline: &mut redis::Pipeline) {
        for text in ALL {
            pipeline.cmd("SCRIPT").arg("LOAD").arg(text).ignore();
        }
    }
}

/// The command that runs a script, still without its arguments.
pub(super) fn invoke(script: &Script, keys: &[String]) -> Cmd {
    let mut command = redis::cmd("EVALSHA");
    command.arg(script.get_hash()).arg(keys.len()).arg(keys);
    command
}
