-- Returns whether a replica has a lease. KEYS: its lease.
if redis.call('EXISTS', KEYS[1]) == 1 then
  return {'yes'}
end
return {'no'}
