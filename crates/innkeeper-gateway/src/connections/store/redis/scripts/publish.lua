-- Adds an event: maximum number, maximum size of all but the newest, message. Returns whether the
-- connection is active.
local max_events, max_bytes = tonumber(ARGV[COMMON + 1]), tonumber(ARGV[COMMON + 2])
local message = ARGV[COMMON + 3]
if state() ~= ACTIVE then
  return 'no'
end
local position = redis.call('HINCRBY', connection, 'last_position', 1)
redis.call('XADD', events, integer(position) .. '-0', 'message', message)
redis.call('PEXPIRE', events, redis.call('PTTL', connection))
local number = redis.call('XLEN', events)
local older = counter('event_bytes')
while number > max_events or (number > 1 and older > max_bytes) do
  local oldest = redis.call('XRANGE', events, '-', '+', 'COUNT', 1)[1]
  redis.call('XDEL', events, oldest[1])
  older = older - #oldest[2][2]
  number = number - 1
end
if number == 1 then
  older = 0
end
redis.call('HSET', connection, 'event_bytes', integer(older + #message))
redis.call('PUBLISH', channel, id)
return 'yes'
