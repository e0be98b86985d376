-- Returns a page: list, maximum of the position, number.
local set = ARGV[COMMON + 1] == 'open' and open or final
local response = {}
local ids = redis.call('ZRANGE', set, ARGV[COMMON + 2], '-inf', 'BYSCORE', 'REV', 'LIMIT', 0,
  ARGV[COMMON + 3])
for _, id in ipairs(ids) do
  local before = #response
  record(response, id)
  if #response == before then
    -- Redis keeps the question no longer.
    redis.call('ZREM', set, id)
  end
end
return {'found', response}
