"""What Redis does at one go for the limiter. All times in it are microseconds of Redis's own clock.

Every script is told the *epoch* key: the moment at which this Redis first held a limit. Whoever empties Redis takes the epoch
along, and what was leased before is unknown from then on; so a bucket without state begins only when everything
leased before the epoch must be over.
"""

CREDIT_SECONDS = 0.1
"""By how much a first slot may lie in the past, so that the round trip between two leases costs no calls."""
SPAN_SECONDS = 0.2
"""Seconds' worth of slots in one lease, unless one call alone is worth more."""
HORIZON_SECONDS = 0.3
"""Seconds ahead of time that a lease may begin. With the span: a pause holds everybody back within a second."""
RAMP_START = 4
"""After a pause the rate begins at this fraction of what is allowed."""
RAMP_DOUBLING_SECONDS = 2.0
"""After a pause the rate doubles every so many seconds until it is whole."""
RAMP_UNLIMITED_SECONDS = 0.1
"""Seconds between two calls right after a pause, where no limit is known; the ramp goes from there."""
RAMP_UNLIMITED_FOR_SECONDS = 20.0
"""After so long such a ramp has reached 10,000 calls a second and ends."""
LEARNED_SECONDS = 60.0
"""How long a limit that a provider named is kept without being named again."""
SETTLING_SECONDS = 2.5
"""After the epoch nobody's share of the concurrency grows for so long: by then all have registered theirs."""
TURN_SECONDS = 2.0
"""How long a process may start calls before it is others' turn, where there are more processes than slots."""


def _microseconds(seconds: float) -> str:
    return f"{seconds * 1e6:.0f}"


_NOW_AND_EPOCH = """
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local epoch = tonumber(redis.call('GET', KEYS[2]) or 0)
if epoch == 0 then
  epoch = now
  redis.call('SET', KEYS[2], string.format('%.0f', now))
end
"""

BEGIN = _NOW_AND_EPOCH
"""Notes the epoch, if there is none."""

LEASE = (
    _NOW_AND_EPOCH
    + """
local calls, tokens, longest = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local per_call, per_token = tonumber(ARGV[4]), tonumber(ARGV[5])
local state = redis.call('HMGET', KEYS[1], 'requests', 'tokens', 'pause', 'learned_call', 'learned_token', 'learned_at')
local learned_at = tonumber(state[6] or 0)
local learned_call, learned_token = tonumber(state[4] or 0), tonumber(state[5] or 0)
if tonumber(ARGV[8]) >= 0 and now - ARGV[8] > learned_at then
  learned_call, learned_token, learned_at = tonumber(ARGV[6]), tonumber(ARGV[7]), now - ARGV[8]
  redis.call('HSET', KEYS[1], 'learned_call', ARGV[6], 'learned_token', ARGV[7],
    'learned_at', string.format('%.0f', learned_at))
  redis.call('PEXPIRE', KEYS[1], math.max(redis.call('PTTL', KEYS[1]), LEARNED / 1000))
end
if now - learned_at < LEARNED then
  per_call, per_token = math.max(per_call, learned_call), math.max(per_token, learned_token)
end
local function answer(granted, first, second)
  return {granted, first, second, string.format('%.6f', per_call), string.format('%.6f', per_token)}
end
local pause = tonumber(state[3] or 0)
if pause > now then return answer(0, pause - now, 0) end
local free = now - CREDIT
local unseen = epoch + HORIZON + math.max(SPAN, per_call, per_token * longest)
if pause > 0 then
  local fading = 2 ^ ((pause - now) / DOUBLING)
  if per_call == 0 and per_token == 0 then
    if now - pause < UNLIMITED_FOR then per_call = UNLIMITED * fading end
  else
    local slower = math.max(1, START * fading)
    per_call, per_token = per_call * slower, per_token * slower
  end
end
if per_call == 0 and per_token == 0 then return answer(1, 0, 0) end
if not state[1] then free = math.max(free, unseen) end
local requests, used = math.max(tonumber(state[1] or 0), free), math.max(tonumber(state[2] or 0), free)
local start = math.max(requests, used)
if start > now + HORIZON then return answer(0, start - now - HORIZON, 0) end
local call_time, token_time = calls * per_call, tokens * per_token
redis.call('HSET', KEYS[1], 'requests', string.format('%.0f', requests + call_time),
  'tokens', string.format('%.0f', used + token_time))
redis.call('PEXPIRE', KEYS[1], math.max(redis.call('PTTL', KEYS[1]),
  math.ceil((start + call_time + token_time - now) / 1000) + 60000))
return answer(1, requests - now, used - now)
""".replace("CREDIT", _microseconds(CREDIT_SECONDS))
    .replace("UNLIMITED_FOR", _microseconds(RAMP_UNLIMITED_FOR_SECONDS))
    .replace("UNLIMITED", _microseconds(RAMP_UNLIMITED_SECONDS))
    .replace("HORIZON", _microseconds(HORIZON_SECONDS))
    .replace("SPAN", _microseconds(SPAN_SECONDS))
    .replace("LEARNED", _microseconds(LEARNED_SECONDS))
    .replace("DOUBLING", _microseconds(RAMP_DOUBLING_SECONDS))
    .replace("START", str(RAMP_START))
)
"""Leases a stretch for ``ARGV[1]`` calls of ``ARGV[2]`` tokens together, or says how long to wait.

Arguments: calls, tokens, tokens of the largest call; the operator's time per call and per token (0 for no limit); those that
the provider named last and how long ago (-1: none). Answers whether the stretch is leased, when its calls and its
tokens begin (or, if it is not, the time to wait), and the time per call and per token that is in force.
"""

PAUSE = """
local clock = redis.call('TIME')
local pause = clock[1] * 1000000 + clock[2] + tonumber(ARGV[1])
if pause > tonumber(redis.call('HGET', KEYS[1], 'pause') or 0) then
  redis.call('HSET', KEYS[1], 'pause', string.format('%.0f', pause))
  redis.call('PEXPIRE', KEYS[1], math.max(redis.call('PTTL', KEYS[1]), math.ceil(ARGV[1] / 1000) + 60000))
end
"""
"""Lets nothing go for ``ARGV[1]``, after which the rate ramps up; never shortens a pause."""

SHARE = (
    _NOW_AND_EPOCH
    + """
local me, limit, in_use, held, want, lasting = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]),
  tonumber(ARGV[5]), tonumber(ARGV[6])
local others, claimants, rank = {}, 1, 0
local entries = redis.call('HGETALL', KEYS[1])
for i = 1, #entries, 2 do
  local share, wanted, ends = string.match(entries[i + 1], '(%d+) (%d+) (%d+)')
  if tonumber(ends) <= now then
    redis.call('HDEL', KEYS[1], entries[i])
  elseif entries[i] ~= me then
    others[#others + 1] = {tonumber(share), tonumber(wanted)}
    if tonumber(wanted) > 0 then
      claimants = claimants + 1
      if entries[i] < me then rank = rank + 1 end
    end
  end
end
local fair = math.max(1, math.floor(limit / claimants))
local taken, expected = 0, 0
for _, other in ipairs(others) do
  taken = taken + other[1]
  expected = expected + math.max(other[1], math.min(other[2], fair))
end
local share = math.min(want, limit - taken, math.max(fair, limit - expected))
if claimants > limit and (rank + math.floor(now / TURN)) % claimants >= limit then share = 0 end
if now < epoch + SETTLING then share = math.min(want, held) end
share = math.max(share, 0)
local counted = math.max(share, in_use)
if counted == 0 and want == 0 then
  redis.call('HDEL', KEYS[1], me)
else
  redis.call('HSET', KEYS[1], me, string.format('%.0f %.0f %.0f', counted, want, now + lasting))
  redis.call('PEXPIRE', KEYS[1], math.ceil(lasting / 1000))
end
return share
""".replace("SETTLING", _microseconds(SETTLING_SECONDS)).replace("TURN", _microseconds(TURN_SECONDS))
)
"""Gives a process its share of the calls that may be in flight at once, for ``ARGV[6]``; others get it back after that.

Arguments: the process, the limit, its calls in flight, the share that it holds, the share that it wants, how long it lasts. A
share may be less than what is in flight: no call starts then until so many have ended, and all in flight are counted.
What others do not want is free for all; where all want more than there is, each gets the same, as soon as those that
have more have finished their calls. Where there are more processes than slots, they take turns.
"""
