-- Moves the connection: pairs of a state and the state after it. Returns the connection, or the state
-- without a pair.
local current = state()
if not current then
  return missing()
end
for index = COMMON + 1, #ARGV, 2 do
  if ARGV[index] == current then
    local after = ARGV[index + 1]
    redis.call('HSET', connection, 'state', after, 'last_activity', integer(now))
    renew(after)
    redis.call('PUBLISH', channel, id)
    return found()
  end
end
return {'invalid', {current}}
