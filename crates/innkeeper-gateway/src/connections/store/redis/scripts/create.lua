-- Adds a connection: maximum, maximum of the user, set of the user, state, JSON, user,
-- data of the application.
local maximum, user_maximum = tonumber(ARGV[COMMON + 1]), tonumber(ARGV[COMMON + 2])
local user_set = ARGV[COMMON + 3]
if redis.call('EXISTS', connection, mark) > 0 then
  return 'exists'
end
remove_expired(all)
if redis.call('ZCARD', all) >= maximum then
  return 'total_limit'
end
if user_set ~= '' then
  remove_expired(user_set)
  if redis.call('ZCARD', user_set) >= user_maximum then
    return 'user_limit'
  end
end
redis.call('DEL', events)
redis.call('HSET', connection, 'user_set', user_set, 'state', ARGV[COMMON + 4],
  'connection', ARGV[COMMON + 5], 'user', ARGV[COMMON + 6])
for index = COMMON + 7, #ARGV, 2 do
  redis.call('HSET', connection, ARGV[index], ARGV[index + 1])
end
renew(ARGV[COMMON + 4])
return 'added'
