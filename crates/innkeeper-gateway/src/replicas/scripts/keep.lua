-- Keeps a key and what belongs to it. KEYS: the owner of the key, what belongs to it. ARGV: the replica,
-- the fence, the time in ms until unused keys are forgotten.
if not is_owner(KEYS[1], ARGV[1], ARGV[2]) then
  return {'not_owner'}
end
for _, key in ipairs(KEYS) do
  redis.call('PEXPIRE', key, ARGV[3])
end
return {'kept'}
