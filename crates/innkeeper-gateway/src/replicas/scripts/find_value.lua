-- Returns a value. KEYS: its name.
local value = redis.call('GET', KEYS[1])
if value then
  return {'found', {value}}
end
return {'unknown'}
