"""What Redis does at one go for the calls in flight. All times in it are microseconds of Redis's own clock."""

from app.limits.scripts import SHOWN_HOLD_SECONDS

SETTLING_SECONDS = 2.5
"""After the epoch nobody's share of the operator's limit grows for so long: by then all have registered theirs."""
TURN_SECONDS = 2.0
"""How long a process may start calls before it is others' turn, where there are more processes than slots."""
KEPT_SECONDS = 60.0
"""How long the limit that was found is kept while there are no calls."""
FIRST_PROBE_SECONDS = 1.0
LONGEST_PROBE_SECONDS = 10.0
"""Between two probes of a server that is away; the first waits double up to the second."""
LONGEST_MODEL_PROBE_SECONDS = 60.0
"""The same between two calls of a model that answers only errors."""
FORGOTTEN_SECONDS = 300.0
"""An outage is forgotten when nobody has asked for a share for so long: a job that comes later tries the server itself."""
GIVEN_UP_SECONDS = 3.0
"""For so long after an outage was given up all processes hear of it; then calls are tried as if there had been none."""
FEWEST = 4
"""Of at least so many slots that tenants share,"""
KEPT_OF = 16
MOST = 4
"""one in so many, but one at least and so many at most, are kept for tenants who have fewer than that."""


def _microseconds(seconds: float) -> str:
    return f"{seconds * 1e6:.0f}"


SHARE = (
    """
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local function whole(number) return string.format('%.0f', number) end
local me, in_use, held, want, lasting = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local ceiling, settles, starved = tonumber(ARGV[6]), ARGV[7] == '1', ARGV[8] == '1'
local version, next_state, next_limit = ARGV[9], ARGV[10], ARGV[11]
local event, words, give_up, model = ARGV[12], ARGV[13], tonumber(ARGV[14]), ARGV[17]
local tenants = cjson.decode(ARGV[#ARGV])

local epoch = tonumber(redis.call('GET', KEYS[2]) or 0)
if epoch == 0 then
  epoch = now
  redis.call('SET', KEYS[2], whole(now))
end

local function note(outage, news, reason)
  if news == 'back' and redis.call('DEL', outage) == 1 then
    redis.call('HDEL', KEYS[6], model)
  end
  if news == 'away' and redis.call('EXISTS', outage) == 0 then
    redis.call('HSET', outage, 'since', whole(now), 'probe', whole(now + FIRST_PROBE), 'interval', FIRST_PROBE, 'words', reason)
    redis.call('DEL', KEYS[3])
  end
end
note(KEYS[4], event, words)
note(KEYS[5], ARGV[15], ARGV[16])

local SUMS = {'ended', 'overloaded', 'latency', 'compared', 'expected'}
local known = redis.call('HMGET', KEYS[3], 'version', 'state', 'limit', 'began')
if not known[1] then
  known = {whole(now), '', next_limit, whole(now)}
  redis.call('HSET', KEYS[3], 'version', known[1], 'state', '', 'limit', known[3], 'began', known[4])
elseif known[1] == version then
  if next_state ~= '' then
    redis.call('DEL', KEYS[3])
    known = {whole(tonumber(version) + 1), next_state, next_limit, whole(now)}
    redis.call('HSET', KEYS[3], 'version', known[1], 'state', known[2], 'limit', known[3], 'began', known[4])
  else
    for i, name in ipairs(SUMS) do
      if tonumber(ARGV[17 + i]) ~= 0 then redis.call('HINCRBYFLOAT', KEYS[3], name, ARGV[17 + i]) end
    end
  end
end
redis.call('PEXPIRE', KEYS[3], KEPT / 1000)
local limit = math.min(ceiling, tonumber(known[3]))
local kept = 0
if next(tenants) and limit >= FEWEST then kept = math.max(1, math.min(MOST, math.floor(limit / KEPT_OF))) end
local usual = limit - kept

local elsewhere = {}
local others, claimants, rank, demand = {}, 1, 0, want
local entries = redis.call('HGETALL', KEYS[1])
for i = 1, #entries, 2 do
  local share, wanted, ends = string.match(entries[i + 1], '(%d+) (%d+) (%d+)')
  if tonumber(ends) <= now then
    redis.call('HDEL', KEYS[1], entries[i])
    redis.call('HDEL', KEYS[#KEYS], entries[i])
  elseif entries[i] ~= me then
    others[#others + 1] = {tonumber(share), tonumber(wanted)}
    local theirs = redis.call('HGET', KEYS[#KEYS], entries[i])
    for name, calls in pairs(theirs and cjson.decode(theirs) or {}) do elsewhere[name] = (elsewhere[name] or 0) + calls end
    demand = demand + tonumber(wanted)
    if tonumber(wanted) > 0 then
      claimants = claimants + 1
      if entries[i] < me then rank = rank + 1 end
    end
  end
end
local fair = math.max(1, math.floor(usual / claimants))
local taken, expected = 0, 0
for _, other in ipairs(others) do
  taken = taken + other[1]
  expected = expected + math.max(other[1], math.min(other[2], fair))
end
local share = math.min(want, usual - taken, math.max(fair, usual - expected))
if want > 0 and usual > expected + want then
  share = share + math.max(0, math.min(want + 8, math.floor((usual - expected - want) / 4)))
end
if claimants > usual and (rank + math.floor(now / TURN)) % claimants >= usual then share = 0 end
share = math.max(share, 0)
local first, entitled = 0, {}
for name, calls in pairs(tenants) do
  local left = kept - calls[1] - (elsewhere[name] or 0)
  if left > 0 then
    first = first + math.min(left, calls[2])
    entitled[#entitled + 1] = name
  end
end
first = math.max(0, math.min(first, kept, limit - taken - math.max(share, in_use)))
if first > 0 then share = math.max(share, in_use) + first end
if settles and now < epoch + SETTLING then share, first = math.min(want, held), 0 end

local function hold(outage, lasts, longest)
  local away = redis.call('HMGET', outage, 'since', 'probe', 'interval', 'words')
  if not away[1] then return -1, '' end
  local away_for = now - away[1]
  share, first = 0, 0
  if away_for >= lasts then
    if redis.call('PTTL', outage) > GIVEN_UP / 1000 then redis.call('PEXPIRE', outage, GIVEN_UP / 1000) end
  else
    redis.call('PEXPIRE', outage, FORGOTTEN / 1000)
    if starved and now >= tonumber(away[2]) then
      local interval = math.min(longest, 2 * away[3])
      away[2] = whole(now + interval)
      redis.call('HSET', outage, 'probe', away[2], 'interval', whole(interval))
      share = in_use + 1
    end
    if away[2] - now >= SHOWN_HOLD then
      redis.call('HSET', KEYS[6], model, string.format('%.3f %s', away[2] / 1000000, away[4]))
      redis.call('EXPIRE', KEYS[6], 86400)
    end
  end
  return away_for, away[4]
end
local away_for, reason = hold(KEYS[4], give_up, LONGEST_PROBE)
if away_for < 0 then hold(KEYS[5], math.huge, LONGEST_MODEL_PROBE) end

local room = math.max(0, share - in_use)
for name, calls in pairs(tenants) do tenants[name] = calls[1] + math.min(calls[2], room) end
redis.call('HSET', KEYS[#KEYS], me, cjson.encode(tenants))
redis.call('PEXPIRE', KEYS[#KEYS], math.ceil(lasting / 1000))
local counted = math.max(share, in_use)
if counted == 0 and want == 0 then
  redis.call('HDEL', KEYS[1], me)
  redis.call('HDEL', KEYS[#KEYS], me)
else
  redis.call('HSET', KEYS[1], me, string.format('%.0f %.0f %.0f', counted, want, now + lasting))
  redis.call('PEXPIRE', KEYS[1], math.ceil(lasting / 1000))
end
local sums = redis.call('HMGET', KEYS[3], unpack(SUMS))
for i = 1, #SUMS do sums[i] = sums[i] or '0' end
sums[#sums + 1], sums[#sums + 2], sums[#sums + 3] = first, kept, entitled
return {share, demand, known[1], known[2], now - known[4], away_for, reason, redis.call('EXISTS', KEYS[5]), unpack(sums)}
""".replace("SETTLING", _microseconds(SETTLING_SECONDS))
    .replace("TURN", _microseconds(TURN_SECONDS))
    .replace("KEPT_OF", str(KEPT_OF))
    .replace("FEWEST", str(FEWEST))
    .replace("MOST", str(MOST))
    .replace("KEPT", _microseconds(KEPT_SECONDS))
    .replace("FIRST_PROBE", _microseconds(FIRST_PROBE_SECONDS))
    .replace("SHOWN_HOLD", _microseconds(SHOWN_HOLD_SECONDS))
    .replace("LONGEST_MODEL_PROBE", _microseconds(LONGEST_MODEL_PROBE_SECONDS))
    .replace("LONGEST_PROBE", _microseconds(LONGEST_PROBE_SECONDS))
    .replace("FORGOTTEN", _microseconds(FORGOTTEN_SECONDS))
    .replace("GIVEN_UP", _microseconds(GIVEN_UP_SECONDS))
)
"""Gives a process its share of the calls that may be in flight at once, for ``ARGV[5]``; others get it back after that.

Keys: the shares; the epoch (see :mod:`app.limits.scripts`); the limit that was found, and the sample of calls under it; the outage of
the connection, and the model's; the holds that people are shown; last, how many slots the tenants have in each process.

Arguments: the process, its calls in flight, the share that it holds, the calls that it has or that wait, how long the share lasts; the highest
limit, whether that is the operator's, whether calls wait. Then the version of the state that the process knows, the state that shall follow it
(or nothing) and that one's limit; the news of the connection (``away``, ``back`` or nothing), the reason for it, and after how
long an outage is given up; the news of the model and the reason for it, and its name; what the process adds to the sample;
last, as JSON, of each of the tenants that share the model how many calls are in flight and how many wait.

Answers the share, the demand of all processes, version, text and age of the state, how long the connection has been away (-1: it is
not) and the reason, whether the model is, and the sample; how much of the share is of the slots that are kept, how many are kept in all, and for whom.

A share may be less than what is in flight: no call starts then until so many have ended, and all in flight are counted.
What others do not want is free for all; where all want more than there is, each gets the same, as soon as those that
have more have finished their calls. Where there are more processes than slots, they take turns. While the connection is away, one process at a
time has a share for one call, the probe. So it is while a model's server answers all its calls with errors, but that is never given
up: each of these calls counts as an attempt of its item, so that a few prompts that no server can take don't hold up the others for ever.
"""
