-- Returns the log of a stream. KEYS: the log, the requests of the stream. Returns the ids of the requests,
-- and for each entry its id, its kind and its text.
local response = {redis.call('GET', KEYS[2]) or ''}
for _, entry in ipairs(redis.call('XRANGE', KEYS[1], '-', '+')) do
  table.insert(response, entry[1])
  table.insert(response, entry[2][1])
  table.insert(response, entry[2][2])
end
return {'log', response}
