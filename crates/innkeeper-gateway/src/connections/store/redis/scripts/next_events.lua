-- Returns the events after a position: reader, position. The reader took everything up to the position.
-- Without an event, returns the time in ms after which the connection expires.
if state() ~= ACTIVE or redis.call('HGET', connection, 'reader') ~= ARGV[COMMON + 1] then
  return {'ended'}
end
local position, last = tonumber(ARGV[COMMON + 2]), counter('last_position')
local taken = math.min(position, last)
if taken > counter('read_position') then
  redis.call('HSET', connection, 'read_position', integer(taken))
end
if position >= last then
  return {'none', {integer(redis.call('PTTL', connection))}}
end
local after = redis.call('XRANGE', events, '(' .. integer(position) .. '-0', '+')
if #after == 0 or after[1][1] ~= integer(position + 1) .. '-0' then
  return {'lost'}
end
local response = {}
for _, event in ipairs(after) do
  table.insert(response, string.match(event[1], '^%d+'))
  table.insert(response, event[2][2])
end
return {'events', response}
