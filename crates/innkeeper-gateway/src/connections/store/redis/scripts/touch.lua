-- Renews the expiry of a connection of a user that has not ended, and returns the connection: user.
local current = state()
if not current then
  return missing()
end
if redis.call('HGET', connection, 'user') ~= ARGV[COMMON + 1] then
  return {'unknown'}
end
if current ~= TERMINATED then
  redis.call('HSET', connection, 'last_activity', integer(now))
  renew(current)
end
return found()
