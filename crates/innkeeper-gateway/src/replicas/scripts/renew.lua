-- Extends the lease of a replica. KEYS: its lease. ARGV: its URL, duration of the lease in ms.
-- Returns whether the lease had not ended.
local existed = redis.call('EXISTS', KEYS[1]) == 1
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
if existed then
  return {'renewed'}
end
return {'new'}
