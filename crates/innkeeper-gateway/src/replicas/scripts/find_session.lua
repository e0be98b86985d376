-- Returns the record of a session. KEYS: the record.
local record = redis.call('GET', KEYS[1])
if record then
  return {'found', {record}}
end
return {'unknown'}
