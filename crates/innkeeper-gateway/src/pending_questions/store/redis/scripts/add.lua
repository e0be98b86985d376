-- Adds a question: id, JSON, kind, state, expiry, whether the process renews it, maximum, maximum of the
-- principal, principal.
local id, principal = ARGV[COMMON + 1], ARGV[COMMON + 9]
if redis.call('EXISTS', key(id)) == 1 then
  return 'exists'
end
if redis.call('ZCARD', open) >= tonumber(ARGV[COMMON + 7]) then
  return 'total_limit'
end
if redis.call('SCARD', principal_set(principal)) >= tonumber(ARGV[COMMON + 8]) then
  return 'principal_limit'
end
local expires = now + tonumber(ARGV[COMMON + 5])
local has_lease = ARGV[COMMON + 6] == '1'
redis.call('HSET', key(id), 'content', ARGV[COMMON + 2], 'kind', ARGV[COMMON + 3],
  'state', ARGV[COMMON + 4], 'created', integer(now), 'expires', integer(expires),
  'principal', principal)
redis.call('SADD', principal_set(principal), id)
redis.call('PEXPIREAT', principal_set(principal), integer(expires + keep_time))
redis.call('ZADD', open, integer(announce(id)), id)
if has_lease then
  redis.call('HSET', key(id), 'has_lease', '1')
  set_deadline(id, math.min(expires, now + lease_time))
else
  set_deadline(id, expires)
end
return 'added'
