-- Adds tokens to buckets. KEYS: for each bucket, the time in us at which it is full. ARGV: the times in us in
-- which the buckets get the tokens again. Returns the times in us until the buckets are full.
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local response = {}
for index, bucket in ipairs(KEYS) do
  local full = math.max(tonumber(redis.call('GET', bucket)) or 0, now) + tonumber(ARGV[index])
  local missing = full - now
  redis.call('SET', bucket, string.format('%.0f', full), 'PX', string.format('%.0f', math.ceil(missing / 1000) + 1))
  table.insert(response, string.format('%.0f', missing))
end
return {'added', response}
