-- Adds entries to the log of a stream, unless another replica owns the key. KEYS: the owner of the key,
-- the log, the requests of the stream. ARGV: the replica, the fence, the time in ms for which the log
-- stays, the ids of the requests of a new stream, the id of the oldest entry to keep, and for each entry
-- its id, its kind and its text.
if not is_owner(KEYS[1], ARGV[1], ARGV[2]) then
  return {'not_owner'}
end
if ARGV[4] ~= '' then
  redis.call('SET', KEYS[3], ARGV[4])
end
for entry = 6, #ARGV, 3 do
  redis.call('XADD', KEYS[2], ARGV[entry], ARGV[entry + 1], ARGV[entry + 2])
end
redis.call('XTRIM', KEYS[2], 'MINID', ARGV[5])
redis.call('PEXPIRE', KEYS[2], ARGV[3])
redis.call('PEXPIRE', KEYS[3], ARGV[3])
return {'added'}
