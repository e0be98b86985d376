-- Renews the expiry of a connection that has not ended, and returns the connection.
local current = state()
if not current then
  return missing()
end
if current ~= TERMINATED then
  redis.call('HSET', connection, 'last_activity', integer(now))
  renew(current)
end
return found()
