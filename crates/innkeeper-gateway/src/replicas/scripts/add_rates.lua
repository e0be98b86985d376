-- Adds tokens to buckets. KEYS: for each bucket, the time in us at which it is full. ARGV: for each bucket the
-- time in us in which it gets the tokens again, and the time in us since the first of them was taken, from
-- which on the bucket got tokens. Returns the times in us until the buckets are full.
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local response = {}
for index, bucket in ipairs(KEYS) do
  local tokens, since = tonumber(ARGV[2 * index - 1]), now - tonumber(ARGV[2 * index])
  local full = math.max(tonumber(redis.call('GET', bucket)) or 0, since) + tokens
  local missing = math.max(full - now, 0)
  redis.call('SET', bucket, string.format('%.0f', full), 'PX', string.format('%.0f', math.ceil(missing / 1000) + 1))
  table.insert(response, string.format('%.0f', missing))
end
return {'added', response}
