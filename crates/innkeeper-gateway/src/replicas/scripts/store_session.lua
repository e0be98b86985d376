-- Stores the record of a session. KEYS: the owner of its key, the record. ARGV: the replica, the fence,
-- the record, the time in ms until unused keys are forgotten.
if not is_owner(KEYS[1], ARGV[1], ARGV[2]) then
  return {'not_owner'}
end
redis.call('SET', KEYS[2], ARGV[3], 'PX', ARGV[4])
return {'stored'}
