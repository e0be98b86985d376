-- Removes records of calls. KEYS: for each record, the calls of its key. ARGV: the ids of the calls.
for index, calls in ipairs(KEYS) do
  redis.call('HDEL', calls, ARGV[index])
end
return {'removed'}
