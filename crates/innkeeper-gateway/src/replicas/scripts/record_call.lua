-- Records a call that is about to be sent. KEYS: the owner of the key, the lease of the replica, the
-- calls of the key. ARGV: the replica, the fence, the id of the call, its record, the time in ms until
-- unused keys are forgotten. A call is sent only if the response is 'recorded'.
if redis.call('EXISTS', KEYS[2]) == 0 then
  return {'no_lease'}
end
if not is_owner(KEYS[1], ARGV[1], ARGV[2]) then
  return {'not_owner'}
end
if redis.call('HSETNX', KEYS[3], ARGV[3], ARGV[4]) == 0 then
  return {'duplicate'}
end
redis.call('PEXPIRE', KEYS[3], ARGV[5])
return {'recorded'}
