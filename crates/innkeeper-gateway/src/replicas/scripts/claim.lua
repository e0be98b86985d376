-- Claims a key. KEYS: the owner of the key, the lease of the replica. ARGV: the replica, the prefix
-- of leases, the time in ms until an unused key is forgotten, whether to create the key.
-- Returns the owner: this replica with its fence and the number of moves, or another with its URL.
local replica, prefix, lifetime, create = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
if redis.call('EXISTS', KEYS[2]) == 0 then
  return {'no_lease'}
end
local owner = redis.call('HMGET', KEYS[1], 'replica', 'fence', 'moves')
if not owner[1] and create ~= '1' then
  return {'unknown'}
end
if owner[1] == replica then
  redis.call('PEXPIRE', KEYS[1], lifetime)
  return {'owned', {owner[2], owner[3]}}
end
if owner[1] then
  local other = redis.call('GET', prefix .. owner[1])
  if other then
    return {'elsewhere', {owner[1], other}}
  end
end
-- A fence is a time of Redis, so that it also grows when Redis lost its data.
local time = redis.call('TIME')
local fence = tonumber(time[1]) * 1000000 + tonumber(time[2])
local moves = 0
if owner[1] then
  fence = math.max(fence, tonumber(owner[2]) + 1)
  moves = tonumber(owner[3]) + 1
end
fence, moves = string.format('%.0f', fence), string.format('%.0f', moves)
redis.call('HSET', KEYS[1], 'replica', replica, 'fence', fence, 'moves', moves)
redis.call('PEXPIRE', KEYS[1], lifetime)
return {'claimed', {fence, moves}}
