-- Starts a reader after a position; without a position, after the newest event that a reader took.
if state() ~= ACTIVE then
  return {'not_active'}
end
local last = counter('last_position')
local function exists(position)
  local name = integer(position) .. '-0'
  return #redis.call('XRANGE', events, name, name) == 1
end
local position
if ARGV[COMMON + 1] then
  position = tonumber(ARGV[COMMON + 1])
  if position > last or (position < last and not exists(position + 1)) then
    return {'lost'}
  end
else
  position = counter('read_position')
  if position < last and not exists(position + 1) then
    local oldest = redis.call('XRANGE', events, '-', '+', 'COUNT', 1)[1]
    position = oldest and tonumber(string.match(oldest[1], '^%d+')) - 1 or last
  end
end
local reader = redis.call('HINCRBY', connection, 'reader', 1)
redis.call('PUBLISH', channel, id)
return {'opened', {integer(reader), integer(position)}}
