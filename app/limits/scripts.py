"""What Redis does at one go for the limiter. All times in it are microseconds of Redis's own clock.

Every script is told the *epoch* key: the moment at which this Redis first held a limit. Whoever empties Redis takes the epoch
along, and what was leased before is unknown from then on; so a bucket without state begins only when everything
leased before the epoch must be over.
"""

import re

from app.limits import timeline

SHOWN_HOLD_SECONDS = 5.0
"""A hold that lasts so long is shown to people."""


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
local ask = cjson.decode(ARGV[1])
now, epoch = ask.now or now / 1000000, ask.epoch or epoch / 1000000
local s = {}
local stored = redis.call('HGETALL', KEYS[1])
for i = 1, #stored, 2 do s[stored[i]] = tonumber(stored[i + 1]) end
local function plus(one, other)
  return {one[1] + other[1], one[2] + other[2], one[3] + other[3], one[4] + other[4]}
end
local function duration(cost, intervals)
  local longest = cost[1] * intervals[1]
  for k = 2, 4 do longest = math.max(longest, cost[k] * intervals[k]) end
  return longest
end
local function remember(at, cost)
  redis.call('RPUSH', KEYS[3], string.format('%.6f %.9g %.9g %.9g %.9g', at, unpack(cost)))
end
local function sent()
  local since, total = math.huge, {0, 0, 0, 0}
  for _, entry in ipairs(redis.call('LRANGE', KEYS[3], 0, -1)) do
    local at, calls, tokens, input, output = string.match(entry, '(%S+) (%S+) (%S+) (%S+) (%S+)')
    since = math.min(since, tonumber(at))
    total = plus(total, {tonumber(calls), tonumber(tokens), tonumber(input), tonumber(output)})
  end
  return since, total
end
local function found_now()
  if s.doubling > 0 then return s.found / 2 ^ (s.paced / s.doubling) end
  return s.found / 1.01 ^ (2 ^ (math.max(0, s.paced - STEADY) / FASTER) - 1)
end

local fresh = not s.due
if ask.named and now - ask.named_age > (s.named_at or 0) then
  for k = 1, 4 do s['named' .. k] = ask.named[k] end
  s.named_at = now - ask.named_age
end
local is_named = s.named_at and now - s.named_at < NAMED
local known, slower = {}, false
for k = 1, 4 do
  known[k] = math.max(ask.operators[k], is_named and s['named' .. k] or 0)
  if known[k] > 1.000001 * (s['known' .. k] or 0) then slower = true end
  s['known' .. k] = known[k]
end
local function intervals()
  if not s.found then return known end
  local each = found_now()
  if each < math.max(known[1], FASTEST) then
    s.found = nil
    return known
  end
  return {math.max(known[1], each), known[2], known[3], known[4]}
end
local sent_at = now - ask.unleased_age
if ask.unleased[1] > 0 then remember(now, ask.unleased) end
local oldest = redis.call('LINDEX', KEYS[3], 0)
while oldest and tonumber(string.match(oldest, '%S+')) < now - MINUTE do
  redis.call('LPOP', KEYS[3])
  oldest = redis.call('LINDEX', KEYS[3], 0)
end
if slower and oldest then
  local since, total = sent()
  s.due = math.max(s.due or 0, since + duration(total, known))
elseif ask.unleased[1] > 0 and s.due then
  s.due = math.max(s.due, sent_at) + duration(ask.unleased, known)
end

local first = false
if ask.rejected > 0 then remember(now, {-ask.rejected, 0, 0, 0}) end
if ask.limited_age then
  if now - ask.limited_age > (s.limited_at or 0) then
    if not s.seen then
      first = true
      local since, total = sent()
      s.seen, s.since, s.tries = total[1], math.min(since, now), 0
    end
    s.tries, s.probe_at, s.limited_at = s.tries + 1, 0, now
    local backoff = math.max(FIRST_HOLD, intervals()[1]) * HOLD_FACTOR ^ math.min(s.tries - 1, 10)
    local wait
    if not ask.retry_after then
      wait = backoff
      if s.since + MINUTE > now then wait = math.min(wait, s.since + MINUTE - now) end
      wait = math.min(wait, LONGEST_HOLD)
    elseif s.tries == 1 then
      wait = ask.retry_after
    else
      wait = math.max(ask.retry_after, math.min(backoff / HOLD_FACTOR, LONGEST_HOLD))
    end
    s.hold = math.max(s.hold or 0, now + wait)
  elseif s.seen and s.probe_at == 0 then
    s.hold = math.max(s.hold or 0, now + (ask.retry_after or 0))
  end
end
if s.seen and not first then s.seen = math.max(0, s.seen + ask.unleased[1] - ask.rejected) end
if ask.answered and s.seen and s.probe_at > 0 then
  if s.tries > 0 and s.seen >= 1 then
    local elapsed = s.probe_at - s.since
    local minute = elapsed >= WINDOW_SEEN
    local each = (minute and MINUTE or math.max(elapsed, 0.001)) / s.seen
    if s.found then
      local current, kept = found_now(), 0.5
      if s.doubling > 0 then kept = 1 - (1 - GUESS_KEPT) * (DOUBLING / s.doubling) ^ 0.5 end
      s.found = math.min(math.max(each, current / 0.98), current / kept)
      s.doubling = s.doubling < LONGEST_DOUBLING and s.doubling * 4 or 0
    else
      if known[1] > 0 then each = math.min(each, known[1] / LOWEST_SHARE) end
      local limited = known[1] > 0 or known[2] > 0 or known[3] > 0 or known[4] > 0
      s.found, s.doubling = each, (limited or not minute or s.seen < FEWEST_SEEN) and DOUBLING or 0
    end
    s.paced = 0
    s.due = math.max(s.due or 0, s.probe_at + s.found)
  end
  s.seen = nil
end
if ask.hold > 0 then
  s.hold = math.max(s.hold or 0, now + ask.hold)
  if not s.seen then s.seen, s.since, s.tries = 0, now, 0 end
  s.probe_at = 0
end

local function when_window_has_room(start, cost)
  local begin, recent = start, nil
  for k = 1, 4 do
    if cost[k] * known[k] > COARSE * MINUTE then
      local room, used = 1.000001 * MINUTE / known[k] - cost[k], 0
      recent = recent or redis.call('LRANGE', KEYS[3], 0, -1)
      local ats, units = {}, {}
      for _, entry in ipairs(recent) do
        local numbers = {}
        for number in string.gmatch(entry, '%S+') do numbers[#numbers + 1] = tonumber(number) end
        if numbers[1] > begin - MINUTE + 1e-6 then
          ats[#ats + 1], units[#units + 1] = numbers[1], numbers[k + 1]
          used = used + numbers[k + 1]
        end
      end
      for i = 1, #ats do
        if used <= room then break end
        used = used - units[i]
        start = math.max(start, ats[i] + MINUTE)
      end
    end
  end
  return start
end

local rates, granted, start, probe = intervals(), 0, 0, 0
local function spend(at, cost)
  s.due = at + duration(cost, rates)
  remember(at, cost)
end
local held = math.max(0, (s.hold or 0) - now)
if held > 0 then
  start = held
elseif ask.calls == 0 then
  start = 0
elseif s.seen then
  if s.probe_at > 0 and now < s.probe_at + PROBE then
    start = PROBE_POLL
  else
    s.probe_at, granted, probe = now, 1, 1
    spend(math.max(s.due or 0, now), ask.first)
  end
elseif math.max(unpack(rates)) == 0 then
  granted = ask.calls
else
  local at = math.max(s.due or 0, now - CREDIT)
  if fresh then at = math.max(at, epoch + HORIZON + math.max(SPAN, duration(ask.largest, rates))) end
  local cost = plus(ask.cost, ask.beyond)
  at = when_window_has_room(at, cost)
  if at > now + HORIZON then
    start = at - now - HORIZON
  else
    granted, start = ask.calls, at - now
    spend(at, cost)
    if s.found then
      local paced = ask.cost[1] * found_now()
      s.paced = s.paced + (s.doubling > 0 and math.min(paced, LONGEST_STEP) or paced)
    end
  end
end

local bucket = ask.bucket or KEYS[1]
if held >= SHOWN_HOLD then
  local until_before, reason_before = string.match(redis.call('HGET', KEYS[4], bucket) or '', '(%S+) (.*)')
  local goes_on = until_before and tonumber(until_before) > now
  local reason = ask.reason or goes_on and reason_before or ''
  local ends = ask.ends and now + ask.ends or goes_on and tonumber(until_before) or 0
  redis.call('HSET', KEYS[4], bucket, string.format('%.3f %s', math.max(now + held, ends), reason))
  redis.call('EXPIRE', KEYS[4], 86400)
elseif s.hold and held == 0 then
  redis.call('HDEL', KEYS[4], bucket)
  s.hold = nil
end
if not s.seen then s.since, s.tries, s.probe_at = nil, nil, nil end
if not s.found then s.doubling, s.paced = nil, nil end
local fields = {}
for name, value in pairs(s) do
  fields[#fields + 1] = name
  fields[#fields + 1] = string.format('%.9f', value)
end
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], unpack(fields))
redis.call('EXPIRE', KEYS[1], 86400)
redis.call('EXPIRE', KEYS[3], 120)
local answer = {granted, start, rates[1], rates[2], rates[3], rates[4], probe, held}
for i = 1, #answer do answer[i] = string.format('%.9f', answer[i]) end
return answer
"""
)
for _name, _value in {
    "COARSE": timeline.COARSE_SHARE,
    "CREDIT": timeline.CREDIT_SECONDS,
    "DOUBLING": timeline.DOUBLING_SECONDS,
    "FASTER": timeline.FASTER_SECONDS,
    "FASTEST": timeline.FASTEST_SECONDS,
    "FEWEST_SEEN": timeline.FEWEST_SEEN,
    "FIRST_HOLD": timeline.FIRST_HOLD_SECONDS,
    "GUESS_KEPT": timeline.GUESS_KEPT,
    "HOLD_FACTOR": timeline.HOLD_FACTOR,
    "HORIZON": timeline.HORIZON_SECONDS,
    "LONGEST_DOUBLING": timeline.LONGEST_DOUBLING_SECONDS,
    "LONGEST_HOLD": timeline.LONGEST_HOLD_SECONDS,
    "LONGEST_STEP": timeline.LONGEST_STEP_SECONDS,
    "LOWEST_SHARE": timeline.LOWEST_SHARE,
    "MINUTE": timeline.MINUTE_SECONDS,
    "NAMED": timeline.NAMED_SECONDS,
    "PROBE": timeline.PROBE_SECONDS,
    "PROBE_POLL": timeline.PROBE_POLL_SECONDS,
    "SHOWN_HOLD": SHOWN_HOLD_SECONDS,
    "SPAN": timeline.SPAN_SECONDS,
    "STEADY": timeline.STEADY_SECONDS,
    "WINDOW_SEEN": timeline.WINDOW_SEEN_SECONDS,
}.items():
    LEASE = re.sub(rf"\b{_name}\b", repr(_value), LEASE)
"""Takes in what a process reports and leases it time (:mod:`app.limits.timeline`), on the state in Redis.

Keys: the bucket's state, the epoch, what was sent within the last minute, and the holds of all buckets. ``ARGV[1]`` is JSON: a report,
the calls' number and cost, that of the first, and of the largest that there was. Answers with a lease's fields as text.
"""
