-- Sets a field of the data of the application: name, and value unless the field is to be removed.
-- Returns whether the connection has not ended.
local current = state()
if not current or current == TERMINATED then
  return 'no'
end
if ARGV[COMMON + 2] then
  redis.call('HSET', connection, ARGV[COMMON + 1], ARGV[COMMON + 2])
else
  redis.call('HDEL', connection, ARGV[COMMON + 1])
end
return 'yes'
