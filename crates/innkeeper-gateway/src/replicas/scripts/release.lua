-- Gives a key up. KEYS: the owner of the key, and what is removed with the key. ARGV: the replica, the
-- fence, whether nobody claims the key again.
if not is_owner(KEYS[1], ARGV[1], ARGV[2]) then
  return {'not_owner'}
end
if ARGV[3] == '1' then
  redis.call('DEL', unpack(KEYS))
else
  -- No lease has this name.
  redis.call('HSET', KEYS[1], 'replica', '')
end
return {'released'}
