-- Gives a key up. KEYS: the owner of the key, and what is removed with the key. ARGV: the replica, the
-- fence, whether nobody claims the key again.
if redis.call('HGET', KEYS[1], 'replica') ~= ARGV[1] or redis.call('HGET', KEYS[1], 'fence') ~= ARGV[2] then
  return {'not_owner'}
end
if ARGV[3] == '1' then
  redis.call('DEL', unpack(KEYS))
else
  -- No lease has this name.
  redis.call('HSET', KEYS[1], 'replica', '')
end
return {'released'}
